"""The rows of CSV.

They are read by the standard library: pandas counts records where a description has line ends, so that its line
numbers are wrong, and drops surplus fields of the first row in silence.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

from freehire_embed.postings_file.layout import KEYS, MAX_ROW_BYTES, NOT_UTF8, BadLine, ImportFileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from freehire_embed.posting import Fields
    from freehire_embed.postings_file.layout import Columns
    from freehire_embed.postings_file.source import Source

_DELIMITERS = ";\t|,"
_FLOAT = re.compile(r"(-?\d+)\.0", re.ASCII)
_EXACT_FLOATS = 2**53
_LINES_AT_ONCE = 1000


class _TooLong(Exception):
    """A record that is longer than any posting."""


def csv_rows(source: Source, columns: Columns) -> Iterator[tuple[int, Fields] | BadLine]:
    """The fields of each row with the line at which it begins. Raises ImportFileError."""
    with io.TextIOWrapper(source.file, "utf-8", "surrogateescape", newline="") as text:
        yield from _rows(source, columns, text)


def _rows(source: Source, columns: Columns, text: TextIO) -> Iterator[tuple[int, Fields] | BadLine]:
    delimiter = columns.layout.delimiter or ","
    csv.field_size_limit(MAX_ROW_BYTES)
    lines = _Lines(text, delimiter)
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    try:
        header = next(reader, [])
    except (csv.Error, _TooLong) as error:
        raise ImportFileError(f"{source.path}: the first line is not valid CSV: {error}") from error
    if not _is_utf8(header):
        raise ImportFileError(f"{source.path}: the first line is not UTF-8: save the file as UTF-8")
    if lacking := columns.lacking(header, _on_delimiter(header, delimiter)):
        raise ImportFileError(f"{source.path} {lacking}")
    while True:
        number = lines.begin()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except _TooLong:
            lines.skip()
            yield BadLine(number, f"longer than {MAX_ROW_BYTES} characters")
        except csv.Error as error:
            yield BadLine(number, f"not valid CSV: {error}")
        else:
            if fields:
                yield _row(number, header, fields, columns)


def _row(number: int, header: list[str], fields: list[str], columns: Columns) -> tuple[int, Fields] | BadLine:
    if not _is_utf8(fields):
        return BadLine(number, NOT_UTF8)
    if len(fields) != len(header):
        return BadLine(number, f"has {len(fields)} fields where the header has {len(header)}")
    row = columns.row(dict(zip(header, fields, strict=True)))
    if isinstance(row, str):
        return BadLine(number, row)
    keys = {name: _key(row[name]) for name in KEYS if name in row}
    lost = [name for name, key in keys.items() if key is None]
    if lost:
        return BadLine(number, f"{lost[0]} is a number that may have lost digits: export it as text")
    return number, {**row, **keys}


def _is_utf8(fields: list[str]) -> bool:
    """Whether `surrogateescape` had nothing to escape."""
    return not re.search("[\udc80-\udcff]", "".join(fields))


def _key(text: str) -> str | None:
    """A key as it was before a data frame made a float of it; None = its digits are lost."""
    whole = _FLOAT.fullmatch(text.strip())
    if whole is None:
        return text
    return whole[1] if abs(float(whole[1])) < _EXACT_FLOATS else None


def _on_delimiter(header: list[str], delimiter: str) -> str:
    """A word on the delimiter, which may be what is wrong."""
    other = next((each for each in _DELIMITERS if len(header) == 1 and each in header[0]), None)
    advice = f"; perhaps --delimiter {_shown(other)}" if other else ""
    return f" (delimiter {_shown(delimiter)}{advice})"


def _shown(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else f"'{delimiter}'"


class _Lines:
    """The lines of a file for the csv module, as long as their record stays below the limit."""

    def __init__(self, text: TextIO, delimiter: str) -> None:
        self._text = text
        self._marks = re.compile(f'"+|{re.escape(delimiter)}|[\r\n]')
        self._ended = 0
        self._size = 0
        self._field = _AT_START
        self._unfollowed: list[str] = []

    def begin(self) -> int:
        """A record begins; returns the number of its first line, from 1."""
        self._size, self._field = 0, _AT_START
        self._unfollowed = []
        return self._ended + 1

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._read()
        if not line:
            raise StopIteration
        self._size += len(line)
        self._unfollowed.append(line)
        if len(self._unfollowed) == _LINES_AT_ONCE:
            self._follow_record()
        if self._size > MAX_ROW_BYTES:
            raise _TooLong(f"longer than {MAX_ROW_BYTES} characters")
        return line

    def skip(self) -> None:
        """Reads on to the end of the record, keeping nothing."""
        ended = self._follow_record()
        while not ended and (line := self._read()):
            self._field, ended = _follow(line, self._field, self._marks)

    def _follow_record(self) -> bool:
        lines, self._unfollowed = self._unfollowed, []
        self._field, ended = _follow("".join(lines), self._field, self._marks)
        return ended

    def _read(self) -> str:
        line = self._text.readline(MAX_ROW_BYTES + 1)
        self._ended += line.endswith(("\n", "\r"))
        return line


_AT_START, _BARE, _QUOTED, _CLOSED = range(4)
"""Where in a field a piece of CSV ends; after a closing quote another one makes a quote of the two."""


def _follow(piece: str, field: int, marks: re.Pattern[str]) -> tuple[int, bool]:
    """Where `piece` ends when it began in `field`, and whether the record ends with it."""
    place = 0
    for mark in marks.finditer(piece):
        if mark.start() > place and field in (_AT_START, _CLOSED):
            field = _BARE
        place = mark.end()
        if mark[0].startswith('"'):
            if field != _BARE:
                field = _QUOTED if (field == _QUOTED) is (len(mark[0]) % 2 == 0) else _CLOSED
        elif field != _QUOTED:
            if mark[0] in "\r\n":
                return _AT_START, True
            field = _AT_START
    if place < len(piece) and field in (_AT_START, _CLOSED):
        field = _BARE
    return field, False
