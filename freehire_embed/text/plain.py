"""HTML -> plain text for embedding: pure and total.

``html_to_text`` is the whole of it, top to bottom: prepare the source, let a real parser read it, clean what
came out. The parser calls a target and builds no tree, so there is no depth below which content silently
disappears.
"""

from __future__ import annotations

import html
import re
import threading
from typing import TYPE_CHECKING, Any, cast

from lxml import etree

from freehire_embed.text import reference
from freehire_embed.text.markup import (
    BLOCK,
    BREAK,
    SKIPPED,
    has_tags,
    is_hidden,
    repair_markup,
    repair_references,
    undo_extra_escaping,
)
from freehire_embed.text.mojibake import repair_mojibake

if TYPE_CHECKING:
    from collections.abc import Mapping


def html_to_text(description: str | bytes | None) -> str:
    """The text a reader of `description` sees: trimmed lines joined with "\\n", none of them empty.

    Takes HTML, HTML that was escaped up to three times more, and plain text; bytes are read as UTF-8. Never
    raises; the result encodes as UTF-8 and holds no control character but the line ends. No text gives "".
    """
    if not description:
        return ""
    source = description.decode("utf-8", "replace") if isinstance(description, bytes) else description
    source = prepare(source)
    return clean(repair_mojibake(_read(source) if has_tags(source) else html.unescape(source)))


def one_line(value: str | None, limit: int) -> str:
    """`value` (a title, a company) read like a description, on one line of at most `limit` code points."""
    line = html_to_text(value).replace("\n", " ")
    if len(line) <= limit:
        return line
    cut = line[:limit]
    at_word, space, _ = cut.rpartition(" ")
    return at_word if space and line[limit] != " " else cut.rstrip()


def prepare(source: str) -> str:
    """`source` as a parser can take it: escaped once at most, no controls, its slips repaired."""
    source = undo_extra_escaping(_without_controls(source))
    source = _without_controls(repair_references(source))
    return repair_markup(source) if has_tags(source) else source


_CONTROLS = bytes({*range(0x20), 0x7F} - set(b"\t\n\v\f\r"))


def _without_controls(source: str) -> str:
    try:
        encoded = source.encode()
    except UnicodeEncodeError:  # surrogates: pairs become the character they spell, lone halves go
        encoded = source.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore").encode()
    return encoded.translate(None, _CONTROLS).decode()


_DROPPED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]+"
)
_LINE_ENDS = ("\r\n", "\r", "\x85", "\u2028", "\u2029")
_INVISIBLE = "\u034f\u200c\u200d\ufe0e\ufe0f "


def clean(text: str) -> str:
    """`text` without controls, zero-width characters and bidi controls, blank runs folded, no empty line.

    Idempotent. ZWJ and ZWNJ stay, for emoji and Persian are spelled with them; a line of nothing else goes.
    """
    for line_end in _LINE_ENDS:
        text = text.replace(line_end, "\n")
    lines = []
    for raw in text.split("\n"):
        line = raw.strip()
        if not line:  # half of the lines: where one element ends and the next begins
            continue
        # Printable lines (no blank but the space, no control, no format character) are clean: most are.
        if "  " in line or not line.isprintable():
            line = " ".join(_DROPPED.sub("", line).split())
        if line.strip(_INVISIBLE):
            lines.append(line)
    return "\n".join(lines)


class _Reader:
    """Parser target: collects the text, "\\n" for each line border; ready for the next source when closed."""

    __slots__ = ("_pieces", "_skipped")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._skipped = 0  # how deep we are in a dropped element

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._skipped:
            self._skipped += 1
        elif tag in SKIPPED or (attributes and is_hidden(attributes)):
            self._skipped = 1
        elif tag in BLOCK or tag in BREAK:
            self._pieces.append("\n")

    def end(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif tag in BLOCK:
            self._pieces.append("\n")

    def data(self, data: str) -> None:
        if not self._skipped:
            self._pieces.append(data)

    def close(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        self._skipped = 0
        return text


class _Idle(threading.local):
    """A parser a thread, for the next source: to make one takes a third of the time of reading a posting."""

    parser: etree.HTMLParser | None = None


_idle = _Idle()


def _read(source: str) -> str:
    parser, _idle.parser = _idle.parser or _new_parser(), None
    try:
        parser.feed(source.encode())
        text = cast("str", parser.close())
    except etree.LxmlError:
        return reference.read(source, "html.parser")
    # Only one that came to the end of its source: any other may still hold a part of it.
    _idle.parser = parser
    return text


def _new_parser() -> etree.HTMLParser:
    reader: Any = _Reader()  # the stubs want targets to take bytes, too, and to build elements
    return etree.HTMLParser(target=reader, encoding="utf-8", huge_tree=True)
