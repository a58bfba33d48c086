"""The rows of JSON: one object a line, or the list of objects in a document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from freehire_embed.postings_file.json_document import JsonDocument, NotADocument
from freehire_embed.postings_file.layout import MAX_ROW_BYTES, NOT_UTF8, BadLine, ImportFileError
from freehire_embed.postings_file.source import LINES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from freehire_embed.posting import Fields
    from freehire_embed.postings_file.layout import Columns
    from freehire_embed.postings_file.source import Source

_CHUNK_BYTES = 1 << 16
_NOWHERE = "\0"
"""A path that no list has."""


def json_rows(source: Source, columns: Columns) -> Iterator[tuple[int, Fields] | BadLine]:
    """The fields of each row with its line, or its place in the document's list. Raises ImportFileError."""
    path = columns.layout.records
    if path is None and source.file.peek(512).lstrip().startswith(b"["):
        path = ""
    if path is not None:
        return _document_rows(source, columns, path)
    begin = b"" if source.kind == LINES else _first_line(source, columns)
    return _line_rows(source.file, columns, begin)


def _line_rows(file: BinaryIO, columns: Columns, begin: bytes) -> Iterator[tuple[int, Fields] | BadLine]:
    number = 0
    while line := begin or file.readline(MAX_ROW_BYTES):
        begin = b""
        number += 1
        if not line.endswith(b"\n") and len(line) == MAX_ROW_BYTES:
            while (rest := file.readline(MAX_ROW_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield BadLine(number, _too_long())
        elif line.strip():
            row = _row(line, columns)
            yield BadLine(number, row) if isinstance(row, str) else (number, row)


def _document_rows(source: Source, columns: Columns, path: str) -> Iterator[tuple[int, Fields] | BadLine]:
    document = JsonDocument(_chunks(source.file))
    number = 0
    try:
        for record in document.records(path):
            number += 1
            row = _too_long() if record is None else _row(record, columns)
            yield BadLine(number, row, "record") if isinstance(row, str) else (number, row)
    except NotADocument as error:
        raise ImportFileError(
            f"{source.path} is not valid JSON: {error} (after record {number}); what came before was read"
        ) from error
    if not document.found:
        where = f"no list under --records {path}" if path else "no list of postings"
        raise ImportFileError(f"{source.path} has {where}{_which(document)}")


def _first_line(source: Source, columns: Columns) -> bytes:
    """The first line of a file that may hold one object a line. Raises ImportFileError where it does not."""
    begin = source.file.readline(MAX_ROW_BYTES)
    row = _object(begin)
    if isinstance(row, dict) and (not isinstance(columns.row(row), str) or source.file.peek(1)):
        return begin
    document = JsonDocument(_chunks(source.file, begin))
    try:
        for _ in document.records(_NOWHERE):
            pass
    except NotADocument as error:
        raise ImportFileError(f"{source.path} is not valid JSON: {error}") from error
    if isinstance(row, dict) and not document.lists:
        return begin
    raise ImportFileError(
        f"{source.path} is neither a list of postings nor one posting a line{_which(document)}"
    )


def _which(document: JsonDocument) -> str:
    named = [path for path in document.lists if path]
    if not named:
        return ""
    return f"; say which list holds them, such as --records {named[0]} (lists: {', '.join(named)})"


def _chunks(file: BinaryIO, begin: bytes = b"") -> Iterator[bytes]:
    if begin:
        yield begin
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def _too_long() -> str:
    return f"longer than {MAX_ROW_BYTES} bytes"


def _row(text: bytes, columns: Columns) -> Fields | str:
    row = _object(text)
    return row if isinstance(row, str) else columns.row(row)


def _object(text: bytes) -> dict[str, Any] | str:
    """The object that `text` is, or why it is none.

    Read by the standard library: others make floats of integers beyond 64 bits, so that two keys become one. It
    also takes lone surrogates and NaN, which are strictly no JSON, but the posting can be saved.
    """
    try:
        row = json.loads(text.decode())
    except UnicodeDecodeError:
        return NOT_UTF8
    except (ValueError, RecursionError):
        return "not valid JSON"
    return row if isinstance(row, dict) else "not a JSON object"
