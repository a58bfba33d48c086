"""Plain text -> chunks -> passages, the exact inputs of the embedder. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from freehire_embed.text import html_to_text, one_line, token_budget
from freehire_embed.text.token_budget import Budget
from freehire_embed.text.tokens import count_pieces, pieces_within
from freehire_embed.text.tokens import estimate_tokens as estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehire_embed.profiles import Profile

CHUNK_CHARACTERS = 2000
"""Code points of one chunk at most, before the prefix."""

MAX_CHUNKS = 32_768
"""Chunks of one posting at most: chunk_index is a smallint."""

NAME_CHARACTERS = 300
"""Code points of a title or a company at most; the longest of 14,876 real ones are 219 and 260."""


class TooManyChunks(Exception):
    """A posting that does not fit chunk_index; its own fault. The message has counts and no text."""


def passages(
    title: str | None, company: str | None, description: str | bytes | None, profile: Profile
) -> list[str]:
    """The embedder's inputs for one posting, in chunk order; [] when it has no text.

    Raises TooManyChunks beyond MAX_CHUNKS.
    """
    text = html_to_text(description)
    if not text:
        return []
    prefix = passage_prefix(title, company, profile)
    chunks = chunk_text(text, profile, prefix)
    if len(chunks) > MAX_CHUNKS:
        raise TooManyChunks(
            f"the text of {len(text)} characters makes {len(chunks)} chunks; a posting can have {MAX_CHUNKS}"
        )
    return [prefix + chunk for chunk in chunks]


def passage_sha256(identity: str, passage: str) -> bytes:
    """The key under which a stored vector stands for `passage`: 32 bytes, of identity + NUL + passage."""
    return hashlib.sha256(f"{identity}\0{passage}".encode()).digest()


def chunk_text(text: str, profile: Profile, prefix: str = "") -> list[str]:
    """`text`, lines joined with "\\n", cut by the rule of `profile`; no chunk is empty.

    The chunks joined equal the text, blanks apart. By rule v2 each also leaves room for `prefix` within the
    token limit; v1 does not look at it.
    """
    if profile.chunking == "v1":
        return list(_pack_paragraphs(text))
    if not text:
        return []
    pieces = pieces_within(profile.token_limit) - count_pieces(prefix)
    return token_budget.cut(text, Budget(CHUNK_CHARACTERS, max(pieces, 1)))


def passage_prefix(title: str | None, company: str | None, profile: Profile) -> str:
    """What every passage begins with; by rule v2 names give way that would leave the text too little room."""
    longest = NAME_CHARACTERS
    prefix = profile.passage_prefix + _introduction(title, company, longest)
    if profile.chunking == "v2":
        while longest and count_pieces(prefix) > pieces_within(profile.token_limit) // 2:
            longest //= 2
            prefix = profile.passage_prefix + _introduction(title, company, longest)
    return prefix


def _introduction(title: str | None, company: str | None, longest: int) -> str:
    named = [name for name in (one_line(title, longest), one_line(company, longest)) if name]
    return f"{' at '.join(named)}. " if named else ""


def _pack_paragraphs(text: str) -> Iterator[str]:
    """Rule v1: whole paragraphs, greedily; one that is too long is packed by words, alone."""
    packed: list[str] = []
    length = -1  # of the packed paragraphs and the line ends between them
    for line in text.split("\n"):
        paragraph = line.strip()
        if not paragraph:
            continue
        if packed and length + 1 + len(paragraph) > CHUNK_CHARACTERS:
            yield "\n".join(packed)
            packed, length = [], -1
        if len(paragraph) > CHUNK_CHARACTERS:
            yield from _pack_words(paragraph)
        else:
            packed.append(paragraph)
            length += 1 + len(paragraph)
    if packed:
        yield "\n".join(packed)


def _pack_words(paragraph: str) -> Iterator[str]:
    packed = ""
    for word in paragraph.split():
        if packed and len(packed) + 1 + len(word) <= CHUNK_CHARACTERS:
            packed += f" {word}"
            continue
        if packed:
            yield packed
        packed = word
        while len(packed) > CHUNK_CHARACTERS:
            yield packed[:CHUNK_CHARACTERS]
            packed = packed[CHUNK_CHARACTERS:]
    yield packed
