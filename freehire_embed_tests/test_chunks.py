"""Laws of chunks and passages, for both rules."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehire_embed import chunks
from freehire_embed.chunks import CHUNK_CHARACTERS, TooManyChunks, chunk_text, passage_sha256, passages
from freehire_embed.profiles import BUILT_IN, DEFAULT_IDENTITY, LOCAL_IDENTITY, Profile
from freehire_embed.text import clean

V1 = BUILT_IN[DEFAULT_IDENTITY]
RULES = pytest.mark.parametrize("profile", [V1], ids=["v1"])

WORDS = st.text(st.characters(codec="utf-8", categories=("L", "M", "N", "P", "S")), min_size=1, max_size=30)
LONG_WORDS = st.builds(lambda word, times: word * times, WORDS, st.integers(1, 400))
LINES = st.builds(" ".join, st.lists(WORDS | LONG_WORDS, max_size=60)) | st.builds(
    lambda line, times: " ".join([line] * times),
    st.builds(" ".join, st.lists(WORDS, max_size=8)),
    st.integers(1, 80),
)
TEXTS = st.builds("\n".join, st.lists(LINES, max_size=12)).map(clean)


def _no_blank(text: str) -> str:
    return "".join(text.split())


@RULES
@given(text=TEXTS)
@settings(max_examples=60, deadline=None)
def test_chunks_lose_nothing_and_stay_within_the_budget(text: str, profile: Profile) -> None:
    cut = chunk_text(text, profile)
    assert _no_blank("".join(cut)) == _no_blank(text)
    assert all(chunk == chunk.strip() and 0 < len(chunk) <= CHUNK_CHARACTERS for chunk in cut)
    assert chunk_text(text, profile) == cut


@given(st.lists(st.integers(1, CHUNK_CHARACTERS), min_size=1, max_size=30))
def test_v1_starts_a_chunk_only_where_the_next_paragraph_would_not_fit(lengths: list[int]) -> None:
    cut = chunk_text("\n".join("x" * length for length in lengths), V1)
    assert [len(line) for chunk in cut for line in chunk.split("\n")] == lengths
    for chunk, following in itertools.pairwise(cut):
        assert len(chunk) + 1 + len(following.split("\n")[0]) > CHUNK_CHARACTERS


def test_v1_packs_a_long_paragraph_alone_and_by_words() -> None:
    text = "\n".join(["before", " ".join(["ninechars"] * 201), "after", "it"])
    assert chunk_text(text, V1) == ["before", " ".join(["ninechars"] * 200), "ninechars", "after\nit"]


def test_v1_cuts_a_long_word_and_lets_its_rest_take_words() -> None:
    assert chunk_text(f"a {'w' * 4001} b", V1) == ["a", "w" * 2000, "w" * 2000, "w b"]


@pytest.mark.parametrize(
    ("title", "company", "prefix"),
    [
        ("Welder", "Kiln & Co", "passage: Welder at Kiln & Co. "),
        ("Welder", None, "passage: Welder. "),
        (None, "Kiln", "passage: Kiln. "),
        ("", "&nbsp;", "passage: "),
    ],
)
def test_every_passage_begins_with_who_seeks_whom(
    title: str | None, company: str | None, prefix: str
) -> None:
    made = passages(title, company, "<p>" + "Some work. " * 400, V1)
    assert len(made) > 1
    assert [passage.removeprefix(prefix) for passage in made] == chunk_text("Some work. " * 400, V1)


@pytest.mark.parametrize("description", [None, "", " ", "<p>&nbsp;</p>", b"", "<script>x</script>"])
def test_no_text_means_no_passage(description: str | bytes | None) -> None:
    assert passages("Welder", "Kiln", description, V1) == []


def test_a_posting_that_does_not_fit_chunk_index_is_refused_without_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "MAX_CHUNKS", 3)
    assert len(passages("T", "C", "secret " * 800, V1)) == 3
    with pytest.raises(
        TooManyChunks, match=r"8399 characters makes 5 chunks; a posting can have 3"
    ) as refused:
        passages("T", "C", "secret " * 1200, V1)
    assert "secret" not in str(refused.value)


def test_a_passage_is_kept_under_its_identity_and_exact_text() -> None:
    expected = hashlib.sha256(b"some/model\0passage: caf\xc3\xa9").digest()
    assert passage_sha256("some/model", "passage: café") == expected
    assert passage_sha256("other/model", "passage: café") != expected


def test_the_prefix_is_the_profiles() -> None:
    profile = dataclasses.replace(BUILT_IN[LOCAL_IDENTITY], passage_prefix="")
    assert passages("Welder", "Kiln", "Text", profile) == ["Welder at Kiln. Text"]
