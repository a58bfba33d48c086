"""Points in time as files write them: read exactly, or not at all.

A date that is guessed wrong stands in the queue and in every filter and looks right. So a zone is only believed
where it is a number or a name that means one thing.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 1990, 2099
"""A posting of another century is a default of its exporter; it would stand first or last in every queue."""
_LONGEST = 120
"""Characters; JavaScript's form with the long name of a zone has some 80."""

_ZONES = {
    **dict.fromkeys(("Z", "UT", "UTC", "GMT", "WET"), "+0000"),
    **dict.fromkeys(("CET", "WEST"), "+0100"),
    **dict.fromkeys(("CEST", "EET", "CAT", "SAST"), "+0200"),
    **dict.fromkeys(("EEST", "EAT", "IDT"), "+0300"),
    "PKT": "+0500",
    "HKT": "+0800",
    "AWST": "+0800",
    "JST": "+0900",
    "ACST": "+0930",
    "ACDT": "+1030",
    "AEST": "+1000",
    "AEDT": "+1100",
    "NZST": "+1200",
    "NZDT": "+1300",
    "EDT": "-0400",
    "EST": "-0500",
    "MDT": "-0600",
    "MST": "-0700",
    "PDT": "-0700",
    "AKDT": "-0800",
    "AKST": "-0900",
    "HST": "-1000",
}
"""Names that mean one offset. CST, CDT, IST, BST, PST and others mean several, and are not believed."""

_NUMBER = re.compile(r"(?:\d{10}|\d{13})(?:\.\d*)?", re.ASCII)
"""Seconds or milliseconds since 1970, with the fraction that a data frame writes behind them."""
_COMMENT = re.compile(r"(?<=[\dZ])(?:\s*\([^()]*\)|\[[^\[\]]*\])$")
"""What JavaScript and Java write behind an offset: (Central European Summer Time), [Europe/Berlin]."""
_CLOCK = re.compile(
    r"(?P<clock>.*?\d:\d\d(?::\d\d)?(?:\.\d+)?)\s*(?P<name>[A-Z]*)(?:(?P<sign>[+-])(?P<hours>\d\d?)(?::?(?P<minutes>\d\d))?)?",
    re.ASCII | re.IGNORECASE,
)
_JAVASCRIPT = re.compile(r"(\w{3}) (\w{3}) (\d\d) (\d{4} )", re.ASCII)


class NotADate(ValueError):
    """A value that is there and cannot be read as a point in time."""


def instant(value: Any) -> datetime | None:
    """`value` in UTC; None where there is none.

    Read are ISO 8601, seconds or milliseconds since 1970, RFC 2822, JavaScript's own form, and dates of a database;
    without a zone they are UTC already. Raises NotADate for all else: other forms, zones that mean several offsets,
    years before 1990 or after 2099.
    """
    if isinstance(value, str):
        value = value.strip()
    if value is None or value == "" or value != value:  # the last: NaN
        return None
    try:
        when = _read(value)
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # all that the parsers raise
        raise NotADate from error
    if not _FIRST_YEAR <= when.year <= _LAST_YEAR:
        raise NotADate
    # a subclass, such as that of data frames, would be written and hashed in a way of its own
    return datetime.combine(when.date(), when.time(), UTC)


def _read(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            return _written(value)
        return _since_epoch(Decimal(value))
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _since_epoch(value)
    raise TypeError


def _since_epoch(number: float | Decimal) -> datetime:
    is_milliseconds = abs(float(number)) >= 1e11  # as seconds the year 5138
    return _EPOCH + float(number) * timedelta(milliseconds=1 if is_milliseconds else 1000)


def _written(text: str) -> datetime:
    if len(text) > _LONGEST:
        raise NotADate
    text = _COMMENT.sub("", text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        parts = _CLOCK.fullmatch(text)
    if parts is None:
        raise NotADate
    clock, offset = parts["clock"], _offset(parts)
    try:
        return datetime.fromisoformat(clock + offset)
    except ValueError:
        # This parser takes a zone that it does not know for none at all; there is none left of that kind.
        day_first = _JAVASCRIPT.sub(r"\1, \3 \2 \4", clock)
        return parsedate_to_datetime(f"{day_first} {offset}")


def _offset(parts: re.Match[str]) -> str:
    name = parts["name"].upper()
    if parts["sign"] is None:
        return _ZONES[name] if name else ""
    if name not in ("", "UT", "UTC", "GMT"):
        raise NotADate
    return f"{parts['sign']}{int(parts['hours']):02}{parts['minutes'] or '00'}"
