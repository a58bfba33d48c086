"""An answer that is not what was asked for, sorted by what to do next."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

RETRY_AFTER_CAP_SECONDS = 60.0


class Kind(Enum):
    """What to do next; how often and how long is decided where the wave is known."""

    ROW = auto()
    """The server says that a text is at fault, but not which."""
    DEFECT = auto()
    """A row came back null, not finite, all zero, of odd width or not normalised."""
    MANY_DEFECTS = auto()
    """Most rows did: a server in trouble (fp16), not a trait of the texts."""
    BACKEND = auto()
    """Inference failed: too many rows for its memory, a text it cannot take, or another client's."""
    SIZE = auto()
    """The body is over the payload limit."""
    LIMIT = auto()
    """More rows than the server takes in one request; `Refusal.limit` says how many it takes."""
    BUSY = auto()
    COUNT = auto()
    """Not one vector for each row, so none can be matched to its text."""
    FOREIGN = auto()
    """Vectors of another model: a replica behind a balancer, or a server that was exchanged."""
    UPSTREAM = auto()
    TIMEOUT = auto()
    """Upstream as well; may also mean too many rows for the time."""
    CONFIG = auto()


@dataclass(frozen=True, slots=True)
class Refusal:
    kind: Kind
    cause: str
    """A short word for statistics: a status, `timeout`, `connect`, `broken`, ..."""
    detail: str
    """One line for people, without row text."""
    retry_after_seconds: float | None = None
    limit: int | None = None
    about_encoding: bool = False
    """The server does not take the form that vectors were asked for in."""


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, between 0 and the cap; None when nothing usable is said.

    By retry-after-ms, either form of Retry-After, or the x-ratelimit-reset of what has none remaining.
    """
    given = headers.get("retry-after", "").strip()
    try:
        seconds = float(headers["retry-after-ms"]) / 1000 if "retry-after-ms" in headers else float(given)
    except ValueError:
        until = _date(given)
        if until is None:
            return _reset_seconds(headers)
        # The server's own clock is the one the date was made with.
        seconds = (until - (_date(headers.get("date", "")) or datetime.now(UTC))).total_seconds()
    # Written so that a NaN, which compares false, gives the cap.
    return max(seconds, 0.0) if seconds < RETRY_AFTER_CAP_SECONDS else RETRY_AFTER_CAP_SECONDS


def _reset_seconds(headers: Mapping[str, str]) -> float | None:
    spent = [
        headers.get(f"x-ratelimit-reset-{what}", "")
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0"
    ]
    seconds = [_duration(value) for value in spent if _DURATION.fullmatch(value.strip())]
    return min(max(seconds), RETRY_AFTER_CAP_SECONDS) if seconds else None


_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|h|m|s))+|\d+(?:\.\d+)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def _duration(value: str) -> float:
    """Such as 6m0s, 120ms or 1.5."""
    return sum(
        float(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s|)", value)
    )


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
