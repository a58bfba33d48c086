"""Postings from JSON, CSV or Parquet files, one at a time, in bounded memory.

Columns are found by name (`layout.py`). A row that cannot be used becomes a `BadLine` and the rest of the file goes
on. Text is UTF-8; a line that is not is bad: what another encoding meant cannot be known.
"""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

from freehire_embed.posting import Posting, UnusableRow, posting_of
from freehire_embed.postings_file.csv_file import csv_rows
from freehire_embed.postings_file.json_file import json_rows
from freehire_embed.postings_file.layout import FIELDS, BadLine, Columns, ImportFileError, Layout
from freehire_embed.postings_file.parquet_file import parquet_rows
from freehire_embed.postings_file.source import CSV, PARQUET, STANDARD_INPUT, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from freehire_embed.posting import Fields
    from freehire_embed.postings_file.source import Source

__all__ = ["FIELDS", "STANDARD_INPUT", "BadLine", "ImportFileError", "Layout", "read_postings"]


def read_postings(
    path: Path, layout: Layout | None = None, not_taken: set[str] | None = None
) -> Iterator[Posting | BadLine]:
    """The postings of a file in its order; `path` is a .jsonl, .ndjson, .json or .csv (each also .gz) or .parquet.

    STANDARD_INPUT is read by what it begins with. `not_taken` receives the names of columns that are not used.
    Raises ImportFileError, at the first use or where the file breaks off, when it is of another kind, cannot be
    read, lacks a needed column, or is damaged.
    """
    columns = Columns(layout or Layout(), not_taken)
    try:
        with opened(path) as source:
            for row in _rows(source, columns):
                yield row if isinstance(row, BadLine) else _posting(*row, source.stem)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ImportFileError(f"{path} is damaged: {error}; what came before was read") from error
    except OSError as error:
        raise ImportFileError(f"cannot read {path}: {error.strerror or error}") from error


def _rows(source: Source, columns: Columns) -> Iterator[tuple[int, Fields] | BadLine]:
    if columns.layout.records is not None and source.kind in (CSV, PARQUET):
        raise ImportFileError(f"{source.path} is {source.kind}: --records is for a list inside of JSON")
    if source.kind == PARQUET:
        return parquet_rows(source, columns)
    return csv_rows(source, columns) if source.kind == CSV else json_rows(source, columns)


def _posting(number: int, row: Fields, stem: str) -> Posting | BadLine:
    try:
        return posting_of(row, stem)
    except UnusableRow as error:
        return BadLine(number, str(error))
