"""Postings from a JSONL, CSV or Parquet file, one at a time, in bounded memory.

Columns are found by name: `title` and `description` are needed; `source`, `external_id` (or `id`), `url`,
`company`, `posted_at`, `is_tech` and `closed_at` are used where they are there; others are ignored. A row that
cannot be used becomes a `BadLine` and the rest of the file goes on.

CSV is read by the standard library: pandas counts records where a description has line ends, so that its line
numbers are wrong, and drops surplus fields of the first row in silence.

Text is UTF-8. A line that is not is bad: what another encoding meant cannot be known.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

import orjson

from freehire_embed.posting import Posting, UnusableRow, posting_of
from freehire_embed.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from freehire_embed.posting import Fields

    NumberedRows = Iterator[tuple[int, Fields | str]]
    """Rows with their numbers; a text stands for a row that could not be read, and says why."""

FORMATS = (".jsonl", ".ndjson", ".csv", ".parquet")
NEEDED = ("title", "description")
COLUMNS = (*NEEDED, "source", "external_id", "id", "url", "company", "posted_at", "is_tech", "closed_at")
MAX_LINE_BYTES = 32 * 1024 * 1024
"""A longer line is no posting (the longest of 14,876 real ones has 0.1 MB) and must not fill the memory."""
ROWS_AT_ONCE = 500
NOT_UTF8 = "not UTF-8"


class ImportFileError(SettingsError):
    """A file that cannot be imported at all; the text names the file and what to do. Exit code 2."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A row that cannot be imported, and why; never its text."""

    number: int
    """Line of the file at which it begins, from 1; in Parquet the row, from 1."""
    reason: str


def read_postings(path: Path) -> Iterator[Posting | BadLine]:
    """The postings of a .jsonl, .ndjson, .csv (each also .gz) or .parquet file, in its order.

    Raises ImportFileError, at the first use or where the file breaks off, when it is of another kind, cannot be
    read, lacks a needed column, or is damaged.
    """
    stem, kind, compressed = _kind(path)
    try:
        rows = _parquet_rows(path) if kind == ".parquet" else _text_rows(path, kind, compressed=compressed)
        for number, row in rows:
            yield BadLine(number, row) if isinstance(row, str) else _posting(number, row, stem)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ImportFileError(f"{path} is damaged: {error}; what came before was read") from error
    except OSError as error:
        raise ImportFileError(f"cannot read {path}: {error.strerror or error}") from error


def _kind(path: Path) -> tuple[str, str, bool]:
    name = path.name.lower()
    compressed = name.endswith(".gz")
    plain = name.removesuffix(".gz")
    for kind in FORMATS:
        if plain.endswith(kind) and not (compressed and kind == ".parquet"):
            return path.name[: len(plain) - len(kind)] or "import", kind, compressed
    raise ImportFileError(
        f"{path}: the name says no known format; it must end with one of .jsonl, .ndjson, .csv "
        "(each also with .gz) or .parquet"
    )


def _text_rows(path: Path, kind: str, *, compressed: bool) -> NumberedRows:
    with path.open("rb") as raw:
        file = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if compressed else raw
        if kind == ".csv":
            with io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="") as text:
                yield from _csv_rows(path, text)
        else:
            yield from _json_rows(file)


def _json_rows(file: BinaryIO) -> NumberedRows:
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        if not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
            while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, f"longer than {MAX_LINE_BYTES} bytes"
            continue
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if line.strip():
            yield number, _json_object(line)


def _json_object(line: bytes) -> Fields | str:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            # Lone surrogates and NaN are strictly no JSON, but the posting can be saved.
            row = json.loads(line.decode())
        except UnicodeDecodeError:
            return NOT_UTF8
        except (ValueError, RecursionError):
            return "not valid JSON"
    if not isinstance(row, dict):
        return "not a JSON object"
    missing = [name for name in NEEDED if name not in row]
    return f"has no field {' and no '.join(missing)}" if missing else row


def _csv_rows(path: Path, text: TextIO) -> NumberedRows:
    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(text, strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
    except csv.Error as error:
        raise ImportFileError(f"{path}: the first line is not valid CSV: {error}") from error
    if not _is_utf8(header):
        raise ImportFileError(f"{path}: the first line is not UTF-8: save the file as UTF-8")
    _check_columns(path, header)
    while True:
        number = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield number, f"not valid CSV: {error}"
            continue
        if not _is_utf8(fields):
            yield number, NOT_UTF8
        elif len(fields) == len(header):
            yield number, dict(zip(header, fields, strict=True))
        elif fields:
            yield number, f"has {len(fields)} fields where the header has {len(header)}"


def _is_utf8(fields: list[str]) -> bool:
    """Whether `surrogateescape` had nothing to escape."""
    return not re.search("[\udc80-\udcff]", "".join(fields))


def _parquet_rows(path: Path) -> NumberedRows:
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportFileError(
            f"{path}: Parquet needs a package more: in the checkout: pip install -c constraints.txt -e '.[parquet]'"
        ) from error
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            _check_columns(path, file.schema_arrow.names)
            columns = [name for name in file.schema_arrow.names if name in COLUMNS]
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=columns):
                frame = batch.to_pandas().astype(object)
                for row in frame.where(frame.notna(), None).to_dict("records"):
                    number += 1
                    yield number, row
    except pyarrow.ArrowException as error:
        raise ImportFileError(f"{path} is not a readable Parquet file (after row {number})") from error


def _check_columns(path: Path, names: list[str]) -> None:
    missing = [name for name in NEEDED if name not in names]
    if missing:
        found = ", ".join(names[:20]) or "none"
        raise ImportFileError(f"{path} has no column {' and no '.join(missing)}; its columns are: {found}")


def _posting(number: int, row: Fields, stem: str) -> Posting | BadLine:
    try:
        return posting_of(row, stem)
    except UnusableRow as error:
        return BadLine(number, str(error))
