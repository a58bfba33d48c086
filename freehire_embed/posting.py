"""A posting as files give it: the row is checked, its dates and flags are read, its keys are made."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

    Fields = Mapping[str, Any]

MAX_KEY_BYTES = 1000
"""source and external_id are indexed together, and a B-tree entry holds at most 2,704 bytes."""


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


class UnusableRow(Exception):
    """A row that is no posting; the text is the reason."""


def posting_of(row: Fields, stem: str) -> Posting:
    """The posting of a row that has a title and a description; `stem` is its source where it names none.

    Raises UnusableRow.
    """
    title, company, url = (_text(row, name).strip() for name in ("title", "company", "url"))
    description = _text(row, "description")
    if row["title"] is None:
        raise UnusableRow("has no title")
    if not title and not description.strip():
        raise UnusableRow("has neither title nor description")
    try:
        closed_at = _instant(row.get("closed_at"))
    except _NotADateError:
        # Taken as missing it would open a posting that the file says is closed.
        raise UnusableRow("closed_at is not a date") from None
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
    raise UnusableRow(f"{name} is not text")


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
    raise UnusableRow(f"{name} is neither true nor false")


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
