"""An answer that is not what was asked for, sorted by what to do next."""

from __future__ import annotations

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


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from either form of Retry-After, between 0 and the cap; None when not usable."""
    given = headers.get("retry-after", "").strip()
    try:
        seconds = float(given)
    except ValueError:
        until = _date(given)
        if until is None:
            return None
        # The server's own clock is the one the date was made with.
        seconds = (until - (_date(headers.get("date", "")) or datetime.now(UTC))).total_seconds()
    # Written so that a NaN, which compares false, gives the cap.
    return max(seconds, 0.0) if seconds < RETRY_AFTER_CAP_SECONDS else RETRY_AFTER_CAP_SECONDS


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
