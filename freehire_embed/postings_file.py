"""Postings from a JSONL, CSV or Parquet file, one at a time, in bounded memory.

Columns are found by name: `title` and `description` are needed; `source`, `external_id` (or `id`), `url`,
`company`, `posted_at`, `is_tech` and `closed_at` are used where they are there; others are ignored. A row that
cannot be used becomes a `BadLine` and the rest of the file goes on.

CSV is read by the standard library: pandas counts records where a description has line ends, so that its line
numbers are wrong, and drops surplus fields of the first row in silence.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import re
import unicodedata
import zlib
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

import orjson

from freehire_embed.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    Fields = Mapping[str, Any]
    NumberedRows = Iterator[tuple[int, Fields | str]]
    """Rows with their numbers; a text stands for a row that could not be read, and says why."""

FORMATS = (".jsonl", ".ndjson", ".csv", ".parquet")
NEEDED = ("title", "description")
COLUMNS = (*NEEDED, "source", "external_id", "id", "url", "company", "posted_at", "is_tech", "closed_at")
MAX_LINE_BYTES = 32 * 1024 * 1024
"""A longer line is no posting (the longest of 14,876 real ones has 0.1 MB) and must not fill the memory."""
MAX_KEY_BYTES = 1000
"""source and external_id are indexed together, and a B-tree entry holds at most 2,704 bytes."""
ROWS_AT_ONCE = 500


class ImportFileError(SettingsError):
    """A file that cannot be imported at all; the text names the file and what to do. Exit code 2."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A row that cannot be imported, and why; never its text."""

    number: int
    """Line of the file at which it begins, from 1; in Parquet the row, from 1."""
    reason: str


@dataclass(frozen=True, slots=True)
class Posting:
    """A row of `jobs` as a file gives it. Texts hold neither NUL nor lone surrogates."""

    source: str
    external_id: str
    """Unique within the source: the file's, else its url, else a hash of the text (an edit is then a new one)."""
    url: str
    """'' = the file has none."""
    title: str
    company: str
    description: str
    posted_at: datetime | None
    is_tech: bool
    closed_at: datetime | None
    posted_at_unreadable: bool
    """The file gives a posted_at that is no date; posted_at is None for that reason."""

    @property
    def public_slug(self) -> str:
        """Unique, and the same at every import: it depends on source and external_id alone."""
        key = hashlib.sha256(f"{self.source}\0{self.external_id}".encode()).hexdigest()[:16]
        words = _slug(f"{self.source} {self.external_id}")[:60].strip("-")
        return f"{words}-{key}" if words else key

    @property
    def company_slug(self) -> str:
        """'' = company unknown."""
        return _slug(self.company)

    @property
    def content_hash(self) -> str:
        """sha256 (hex) of title, company, description, url and posted_at: what an edit of a posting changes.

        Key, is_tech and closed_at are not content: closing and reopening a posting is no edit.
        """
        posted_at = self.posted_at.isoformat() if self.posted_at else None
        content = [self.title, self.company, self.description, self.url, posted_at]
        return hashlib.sha256(orjson.dumps(content)).hexdigest()


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
            with io.TextIOWrapper(file, "utf-8-sig", "replace", newline="") as text:
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
            # Lone surrogates, NaN and broken UTF-8 are strictly no JSON, but the posting can be saved.
            row = json.loads(line.decode(errors="replace"))
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
        if len(fields) == len(header):
            yield number, dict(zip(header, fields, strict=True))
        elif fields:
            yield number, f"has {len(fields)} fields where the header has {len(header)}"


def _parquet_rows(path: Path) -> NumberedRows:
    try:
        import pyarrow  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportFileError(
            f"{path}: Parquet needs a package more: pip install 'freehire_embed[parquet]'"
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


class _UnusableError(Exception):
    """A row that is no posting; the text is the reason."""


def _posting(number: int, row: Fields, stem: str) -> Posting | BadLine:
    try:
        return _checked_posting(row, stem)
    except _UnusableError as error:
        return BadLine(number, str(error))


def _checked_posting(row: Fields, stem: str) -> Posting:
    title, company, url = (_text(row, name).strip() for name in ("title", "company", "url"))
    description = _text(row, "description")
    if row["title"] is None:
        raise _UnusableError("has no title")
    if not title and not description.strip():
        raise _UnusableError("has neither title nor description")
    try:
        closed_at = _instant(row.get("closed_at"))
    except _NotADateError:
        # Taken as missing it would open a posting that the file says is closed.
        raise _UnusableError("closed_at is not a date") from None
    try:
        posted_at, posted_at_unreadable = _instant(row.get("posted_at")), False
    except _NotADateError:
        posted_at, posted_at_unreadable = None, True
    return Posting(
        source=_bounded(_text(row, "source").strip() or stem),
        external_id=_bounded(
            _text(row, "external_id").strip()
            or _text(row, "id").strip()
            or url
            or _sha256("\0".join((title, company, description)))
        ),
        url=url,
        title=title,
        company=company,
        description=description,
        posted_at=posted_at,
        is_tech=_flag(row, "is_tech"),
        closed_at=closed_at,
        posted_at_unreadable=posted_at_unreadable,
    )


def _text(row: Fields, name: str) -> str:
    value = row.get(name)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise _UnusableError(f"{name} is not text")


def _storable(text: str) -> str:
    """`text` as Postgres takes it: no NUL, surrogate pairs joined, lone surrogates replaced."""
    text = text.replace("\0", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _flag(row: Fields, name: str) -> bool:
    value = row.get(name)
    given = str(value).strip().lower().removesuffix(".0")
    if value is None or given in ("", "nan", "true", "t", "yes", "y", "1"):
        return True
    if given in ("false", "f", "no", "n", "0"):
        return False
    raise _UnusableError(f"{name} is neither true nor false")


class _NotADateError(Exception):
    """A value that is there and cannot be read as a point in time."""


def _instant(value: Any) -> datetime | None:
    """ISO 8601, seconds or milliseconds since 1970, or RFC 2822, in UTC; without a zone it is UTC already."""
    if isinstance(value, str):
        value = value.strip()
    if value is None or value == "" or value != value:  # the last: NaN
        return None
    try:
        when = _parsed(value)
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError, TypeError) as error:
        raise _NotADateError from error
    # A posting of another century is a default of its exporter; it would stand first or last in every queue.
    if not 1990 <= when.year < 2100:
        raise _NotADateError
    return when


def _parsed(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        if not re.fullmatch(r"\d{10}|\d{13}", value, re.ASCII):
            try:
                return datetime.fromisoformat(re.sub(r" (?:UTC|GMT|Z)$", "+00:00", value))
            except ValueError:
                return parsedate_to_datetime(value)
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if abs(value) >= 1e11 else value  # 1e11 seconds are the year 5138
        return datetime.fromtimestamp(seconds, UTC)
    raise TypeError


def _slug(text: str) -> str:
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))
    words = unicodedata.normalize("NFC", plain).casefold()
    return re.sub(r"[\W_]+", "-", words).strip("-")


def _bounded(key: str) -> str:
    return key if len(key.encode()) <= MAX_KEY_BYTES else _sha256(key)


def _sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
