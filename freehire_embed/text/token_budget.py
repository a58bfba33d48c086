"""Rule v2 of chunking: chunks that hug the model's token limit and break where a reader would.

A chunk takes whole lines while they fit. If it is not full enough then, it takes sentences of the next line,
then words, then graphemes: the finer the border, the emptier a chunk has to be to be cut there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import regex

from freehire_embed.text.tokens import count_pieces

if TYPE_CHECKING:
    from collections.abc import Callable


class Budget(NamedTuple):
    """What one chunk may hold, its prefix not counted."""

    characters: int
    """Code points."""
    pieces: int
    """Of the vocabulary, see ``tokens.count_pieces``."""


def cut(text: str, budget: Budget) -> list[str]:
    """The chunks of `text` (lines joined with "\\n"), each within `budget`.

    Only a single code point that passes the budget makes a chunk that does. A last chunk that would be a crumb
    is balanced with its neighbour.
    """
    lines = text.split("\n")
    end = _Position(len(lines), 0)
    starts = [_Position(0, 0)]
    chunks: list[_Chunk] = []
    while starts[-1] < end:
        chunk, after = _take(lines, starts[-1], budget)
        chunks.append(chunk)
        starts.append(after)
    if len(chunks) > 1 and chunks[-1].fill < _CRUMB:
        share = _BALANCED * (chunks[-2].fill + chunks[-1].fill)
        smaller = Budget(int(budget.characters * share), int(budget.pieces * share) or 1)
        first, middle = _take(lines, starts[-3], smaller)
        last, after = _take(lines, middle, budget)
        if after == end:
            chunks[-2:] = [first, last]
    return [chunk.text for chunk in chunks]


class _Position(NamedTuple):
    """How far a text is cut: the lines before `line`, and of that one the first `offset` code points."""

    line: int
    offset: int


class _Chunk(NamedTuple):
    budget: Budget
    text: str = ""
    pieces: int = 0

    @property
    def fill(self) -> float:
        """The share of the budget that is used, by the measure that is scarcer."""
        return max(len(self.text) / self.budget.characters, self.pieces / self.budget.pieces)

    def plus(self, line: str) -> _Chunk | None:
        """The chunk with `line` (or the part of one); None if that does not fit."""
        text = f"{self.text}\n{line}" if self.text else line
        if len(text) > self.budget.characters:
            return None
        pieces = self.pieces + count_pieces(line)
        return _Chunk(self.budget, text, pieces) if pieces <= self.budget.pieces else None


def _take(lines: list[str], start: _Position, budget: Budget) -> tuple[_Chunk, _Position]:
    """The next chunk from `start` on, and where it ends."""
    chunk = _Chunk(budget)
    line, offset = start
    while line < len(lines) and (grown := chunk.plus(lines[line][offset:])):
        chunk = grown
        line, offset = line + 1, 0
    if line == len(lines):
        return chunk, _Position(line, 0)
    if chunk.fill >= _ENOUGH_AT_LINE:
        return _without_headings(chunk, lines, start.line, line)
    chunk, offset = _with_part(chunk, lines[line], offset)
    return chunk, _Position(line, offset)


def _with_part(chunk: _Chunk, line: str, start: int) -> tuple[_Chunk, int]:
    """`chunk` with what it can take of `line` from `start` on, and where in `line` that ends."""
    filled = chunk
    end = start
    for ends_of, enough in _FINER_BORDERS:
        ends = ends_of(line, end, min(start + chunk.budget.characters + 1, len(line)))
        while ends:  # the last end that fits is found by halving
            middle = len(ends) // 2
            if grown := chunk.plus(line[start : ends[middle]].rstrip()):
                filled, end = grown, ends[middle]
                ends = ends[middle + 1 :]
            else:
                ends = ends[:middle]
        if filled.fill >= enough:
            return filled, end
    if end == start and not chunk.text:
        return _Chunk(chunk.budget, line[start], chunk.budget.pieces), start + 1
    return filled, end


_MOST_HEADINGS = 2
_HEADING_CHARACTERS = 80
_ENDS_LIKE_HEADING = re.compile(r"(?:[:：]|[^\W_][)\]?？]?)\Z")
_STARTS_LIKE_ITEM = re.compile(r"[^\w\s#(\[¿【]|\d+[.)]\s")


def _without_headings(chunk: _Chunk, lines: list[str], first: int, line: int) -> tuple[_Chunk, _Position]:
    """`chunk` without the headings that end it, and where it ends then; `line` is the one after it."""
    kept = line
    while line - kept < _MOST_HEADINGS and kept - 1 > first and _is_heading(lines[kept - 1]):
        kept -= 1
    if kept < line:
        headings = "\n".join(lines[kept:line])
        text = chunk.text.removesuffix(f"\n{headings}")
        chunk = _Chunk(chunk.budget, text, chunk.pieces - count_pieces(headings))
    return chunk, _Position(kept, 0)


def _is_heading(line: str) -> bool:
    return (
        len(line) <= _HEADING_CHARACTERS
        and bool(_ENDS_LIKE_HEADING.search(line))
        and not _STARTS_LIKE_ITEM.match(line)
    )


# What ends a sentence with or without a blank after it, and a bullet inside a line.
_SENTENCE_END = re.compile(
    r"[.!?…;؟؛۔।॥።፧][\"'”’»)\]]*\s+|[。！？；｡][”’」』）】]*\s*|\s+(?=[•·▪●■◦‣*–—-]\s)"
)
_WORD_END = re.compile(r"\s+|[，、：・]")
_GRAPHEME = regex.compile(r"\X")


def _sentence_ends(line: str, start: int, stop: int) -> list[int]:
    return [match.end() for match in _SENTENCE_END.finditer(line, start, stop)]


def _word_ends(line: str, start: int, stop: int) -> list[int]:
    return [match.end() for match in _WORD_END.finditer(line, start, stop)]


def _grapheme_ends(line: str, start: int, stop: int) -> list[int]:
    if line.isascii():
        return _code_point_ends(line, start, stop)
    ends = [match.end() for match in _GRAPHEME.finditer(line, start, stop)]
    return ends if stop == len(line) else ends[:-1]  # `stop` may cut the last cluster


def _code_point_ends(_: str, start: int, stop: int) -> list[int]:
    return list(range(start + 1, stop + 1))


# How full a chunk has to be to end at a border of each kind, as a share of its budget.
_ENOUGH_AT_LINE = 0.7
_FINER_BORDERS: tuple[tuple[Callable[[str, int, int], list[int]], float], ...] = (
    (_sentence_ends, 0.4),
    (_word_ends, 0.1),
    (_grapheme_ends, 0.01),
    (_code_point_ends, 0.0),
)
_CRUMB = 0.25
_BALANCED = 0.6  # of both: the first then takes 0.42 to 0.6 of them, and the rest fits into one chunk
