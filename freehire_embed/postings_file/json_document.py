"""The records of a list inside a JSON document, cut out one after another without reading them.

A reader of events would do, but the well-known one crashes on an integer of 5,000 digits, and each ends the file
at the first record that is no JSON. Cut out, a record is read and judged like a line of JSON lines: a bad one is
named, one that never ends fills no memory, and the others are kept.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from freehire_embed.postings_file.layout import MAX_ROW_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OUTSIDE = re.compile(rb'[^\[\]{},:"]*+')
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_LONGEST_KEY = 1000
_MOST_LISTS = 20
_DEEPEST = 100


class NotADocument(Exception):
    """The text is no JSON as a whole; it says where that shows."""


class JsonDocument:
    """One pass over a document; `lists` then has the paths of the lists that were met, the first ones."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.lists: list[str] = []
        self.found = False
        """Whether there was a list at the path."""

    def records(self, path: str) -> Iterator[bytes | None]:
        """The text of each element of the list at `path` (its keys joined by dots), None for one that is too long.

        Lists on the way are passed through: `pages.jobs` finds the jobs of all pages. Raises NotADocument.
        """
        keys: list[str | None] = []  # of the objects around the place; None stands for a list
        key = b""
        record: _Record | None = None
        for mark, text in _tokens(self._chunks):
            if record is not None:
                if record.add(mark, text):
                    continue
                if record.given:
                    yield record.text
                record = _Record() if mark == b"," else None
                continue
            if mark == b'"':
                key = b""
            elif not mark:
                key = (key + text)[:_LONGEST_KEY]
            elif mark == b":" and keys and keys[-1] is not None:
                keys[-1] = _name(key)
            elif mark in (b"[", b"{") and len(keys) == _DEEPEST:
                raise NotADocument(f"it is nested more than {_DEEPEST} deep")
            elif mark == b"[":
                here = ".".join(each for each in keys if each is not None)
                if here == path:
                    self.found, record = True, _Record()
                else:
                    self._remember(here)
                    keys.append(None)
            elif mark == b"{":
                keys.append("")
            elif mark in (b"]", b"}"):
                if not keys:
                    raise NotADocument("it closes more brackets than it opens")
                keys.pop()
        if keys or record is not None:
            raise NotADocument("it breaks off")

    def _remember(self, path: str) -> None:
        if len(self.lists) < _MOST_LISTS and path not in self.lists:
            self.lists.append(path)


class _Record:
    """An element of the list, as far as it has been met."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._size = 0
        self._depth = 0

    def add(self, mark: bytes, text: bytes) -> bool:
        """Takes what comes next; False = it is behind the element."""
        if self._depth == 0 and mark in (b",", b"]"):
            return False
        self._depth += (mark in (b"[", b"{")) - (mark in (b"]", b"}"))
        self._size += len(text)
        if self._size <= MAX_ROW_BYTES:
            self._text += text
        else:
            self._text.clear()
        return True

    @property
    def text(self) -> bytes | None:
        return bytes(self._text) if self._size <= MAX_ROW_BYTES else None

    @property
    def given(self) -> bool:
        """False = nothing stands between the commas or brackets."""
        return self._size > MAX_ROW_BYTES or (not self._text.isspace() and bool(self._text))


def _tokens(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The document in pieces, whose texts are all of it: a mark and its text, or b"" and what stands between marks.

    A mark is a bracket, comma, colon or opening quote outside of strings.
    """
    inside = False
    rest = b""
    for piece in chunks:
        chunk = rest + piece
        place, end = 0, len(chunk)
        while place < end:
            match = (_INSIDE if inside else _OUTSIDE).match(chunk, place)
            assert match is not None  # noqa: S101 - both match the empty text
            stop = match.end()
            if stop > place:
                yield b"", chunk[place:stop]
            if stop == end or chunk[stop : stop + 1] == b"\\":
                place = stop
                break
            mark = chunk[stop : stop + 1]
            place = stop + 1
            if inside:
                inside = False
                yield b"", mark
            else:
                inside = mark == b'"'
                yield mark, mark
        rest = chunk[place:]  # a backslash whose other half is in the next chunk
    if inside:
        raise NotADocument("it breaks off inside of a text")


def _name(key: bytes) -> str:
    try:
        return str(json.loads(b'"' + key.rstrip().removesuffix(b'"') + b'"'))
    except ValueError:
        return ""
