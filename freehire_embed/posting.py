"""A posting as files give it: the row is checked, its dates and flags are read, its keys are made."""

from __future__ import annotations

import hashlib
import math
import re
import sys
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson

from freehire_embed.instants import NotADate, instant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    Fields = Mapping[str, Any]

MAX_KEY_BYTES = 1000
"""source and external_id are indexed together, and a B-tree entry holds at most 2,704 bytes."""
_EXACT_FLOATS = 2**53
"""From here on two whole numbers may be one float."""
_SCIENTIFIC = re.compile(r"[+-]?\d(?:[.,]\d+)?[eE]\+\d+", re.ASCII)
"""A number as spreadsheets and data frames shorten it."""


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
        closed_at = instant(row.get("closed_at"))
    except NotADate:
        # Taken as missing it would open a posting that the file says is closed.
        raise UnusableRow("closed_at is not a date") from None
    try:
        posted_at, posted_at_unreadable = instant(row.get("posted_at")), False
    except NotADate:
        posted_at, posted_at_unreadable = None, True
    return Posting(
        source=_bounded(_key(row, "source") or stem),
        external_id=_bounded(
            _key(row, "external_id")
            or _key(row, "id")
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
    if value is None or value != value:  # the last: NaN
        return ""
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, UUID) or (isinstance(value, int | float | Decimal) and not isinstance(value, bool)):
        return str(value)
    raise UnusableRow(f"{name} is not text")


def _key(row: Fields, name: str) -> str:
    """A key exactly, or none: two postings under one key would be one, and the other be closed as gone."""
    value = row.get(name)
    if isinstance(value, float) and not math.isnan(value):
        if value.is_integer() and abs(value) < _EXACT_FLOATS:
            return str(int(value))
        if len(Decimal(repr(value)).as_tuple().digits) > sys.float_info.dig or math.isinf(value):
            raise UnusableRow(f"{name} is a number that may have lost digits: export it as text")
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return f"{value:.0f}"
    text = _text(row, name).strip()
    if isinstance(value, str) and text != value.strip():
        raise UnusableRow(f"{name} holds characters that Postgres cannot store")
    if _SCIENTIFIC.fullmatch(text):
        raise UnusableRow(f"{name} is written like 1.2E+11 and has lost digits: export it as text")
    return text


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


def _slug(text: str) -> str:
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))
    words = unicodedata.normalize("NFC", plain).casefold()
    return re.sub(r"[\W_]+", "-", words).strip("-")


def _bounded(key: str) -> str:
    return key if len(key.encode()) <= MAX_KEY_BYTES else _sha256(key)


def _sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
