"""Laws of HTML -> plain text, and the agreement of its two readings."""

from __future__ import annotations

import gzip
import json
import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from freehire_embed.text import clean, html_to_text, one_line, plain, prepare, reference
from freehire_embed.text.markup import BLOCK, BREAK, SKIPPED, has_tags

ANY_TEXT = st.text(st.characters(codec=None) | st.sampled_from("<>&;/ \n\r\0\ud83d\ude00\u200b\u200d"))

_INLINE = ("a", "b", "span", "wbr", "o:p", "font", "sub", "img", "button")
_ATTRIBUTES = ("", "", "", " hidden", " style='display:none'", " style='color:red'", " title='a>b'", ' x="<"')
_TEXTS = (
    *(
        "one",
        "two words",
        " ",
        "\n",
        "&nbsp;",
        "&amp;",
        "&lt;p&gt;",
        "&amp;lt;br&amp;gt;",
        "&#0;",
        "&#x1f600;",
    ),
    *(
        "<",
        ">",
        "a<b",
        "<3",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?x ?>",
        "é",
        "日本",
        "\0",
        "\ud83d",
        "\x85",
    ),
)


@st.composite
def markup(draw: st.DrawFn) -> str:
    """HTML as people write it: unclosed, wrongly closed, hidden, escaped, broken off."""
    names = st.sampled_from((*sorted(BLOCK | BREAK | SKIPPED), *_INLINE))
    opening = st.builds("<{}{}>".format, names, st.sampled_from(_ATTRIBUTES))
    closing = st.builds("</{}>".format, names)
    return "".join(draw(st.lists(opening | closing | st.sampled_from(_TEXTS), max_size=14)))


def _assert_is_plain(plain: str) -> None:
    plain.encode()
    for line in plain.split("\n") if plain else ():
        assert line
        assert line == " ".join(line.split())
    categories = {unicodedata.category(character) for character in plain.replace("\n", "")}
    assert not categories & {"Cc", "Cs", "Zl", "Zp"}


@given(ANY_TEXT | markup())
@example("&#xD800;&#0;")
@example("<p>\ud83d</p>\udc00")
def test_any_string_becomes_plain_lines(source: str) -> None:
    _assert_is_plain(html_to_text(source))


@given(st.binary())
def test_any_bytes_become_plain_lines(source: bytes) -> None:
    _assert_is_plain(html_to_text(source))


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing(source: str) -> None:
    assert clean(clean(source)) == clean(source)


@given(st.text(st.characters(codec="utf-8", exclude_characters="&<", categories=("L", "N", "P", "Zs"))))
def test_plain_text_keeps_every_character_that_shows(source: str) -> None:
    assert set(html_to_text(source)) - {"\n"} >= {c for c in source if c.isascii() and not c.isspace()}


@given(markup())
@settings(max_examples=300)
def test_both_readings_of_the_rule_table_agree(source: str) -> None:
    prepared = prepare(source)
    if has_tags(prepared):
        assert html_to_text(source) == html_to_text_by_reference(source)


def html_to_text_by_reference(source: str) -> str:
    return clean(plain.repair_mojibake(reference.read(prepare(source))))


@pytest.mark.skipif(
    "FREEHIRE_POSTINGS" not in os.environ, reason="FREEHIRE_POSTINGS names no file of postings"
)
def test_both_readings_agree_on_real_postings() -> None:
    path = Path(os.environ["FREEHIRE_POSTINGS"])
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            posting = json.loads(line)
            if has_tags(prepare(posting["description"])):
                agreed = html_to_text(posting["description"]) == html_to_text_by_reference(
                    posting["description"]
                )
                assert agreed, posting.get("id")


def test_bytes_are_read_as_utf8_and_broken_ones_replaced() -> None:
    assert html_to_text("<p>Zoë</p>".encode()) == "Zoë"
    assert html_to_text(b"<p>Zo\xff</p>") == "Zo�"


class EndsBadly:
    """A parser that takes a source and raises when asked for its text."""

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._parser = plain._new_parser()

    def feed(self, source: bytes) -> None:
        self._parser.feed(source)

    def close(self) -> None:
        raise self._error


def test_a_source_that_lxml_refuses_is_read_by_the_other_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain._idle, "parser", EndsBadly(etree.ParserError("refused")))
    assert html_to_text("<p>One<p>Two<script>no</script>") == "One\nTwo"
    assert html_to_text("<p>next") == "next"


def test_nothing_of_a_source_is_left_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert html_to_text("<div><script>the last <b>element is open") == ""
    assert html_to_text("<p>next") == "next"
    monkeypatch.setattr(plain._idle, "parser", EndsBadly(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        html_to_text("<p>interrupted")
    assert html_to_text("<p>next") == "next"


def test_markup_that_every_parser_refuses_still_gives_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*_: object, **__: object) -> None:
        raise reference.ParserRejectedMarkup("rejected")

    monkeypatch.setattr(reference, "BeautifulSoup", reject)
    assert clean(reference.read("<p>One &amp; all<p>Two")) == "One & all\nTwo"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, ""),
        (" \n&nbsp;", ""),
        ("R&amp;D\n<b>Lead</b>", "R&D Lead"),
        ("Nurse (x)\t", "Nurse (x)"),
        ("Anything but short", "Anything"),
        ("Anything at", "Anything"),
        ("Incomprehensible", "Incomprehe"),
    ],
)
def test_a_name_is_one_bounded_line_cut_between_words(value: str | None, line: str) -> None:
    assert one_line(value, 10) == line


@given(ANY_TEXT | markup(), st.integers(1, 40))
def test_a_name_never_has_a_line_end_or_passes_its_bound(value: str, limit: int) -> None:
    line = one_line(value, limit)
    assert "\n" not in line
    assert len(line) <= limit
    assert line == line.strip()
