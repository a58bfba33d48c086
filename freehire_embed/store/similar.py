"""Stored lists of similar postings: which are due, what they are, how they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehire_embed.store.neighbours import KEPT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from freehire_embed.store.database import Database


@dataclass(frozen=True, slots=True)
class SimilarPosting:
    """A neighbour as shown; the fields are the keys of `similar --json`."""

    job_id: int
    title: str
    company: str
    url: str
    distance: float
    """Cosine distance of the nearest pair of passages, 0 to 2."""


@dataclass(frozen=True, slots=True)
class StoredList:
    """What is stored for one posting."""

    embedded: bool
    """It carries the target's stamp."""
    neighbours: tuple[int, ...]
    computed_at: datetime | None
    """None = missing or stale."""


@dataclass(frozen=True, slots=True)
class ListCounts:
    """Of the open, canonical tech postings stamped with the target."""

    postings: int
    missing: int
    """Lists that are not there or stale."""
    full: int
    empty: int
    oldest_seconds: float


def find_due(database: Database, model: str, *, refresh_days: int, limit: int) -> list[int]:
    """Postings whose neighbours are missing or, after those, older than `refresh_days`."""
    rows = database.rows("similar_due", {"model": model, "days": refresh_days, "limit": limit})
    return [row.id for row in rows]


def mark_thin(database: Database, model: str, *, after: int, limit: int) -> tuple[int | None, int]:
    """Makes lists due that lost half of their neighbours, looking at `limit` postings with ids above `after`.

    Lists of fewer than half of KEPT count as well once they are a day old. Returns the last id looked at (None = no
    posting was left) and how many lists were made due.
    """
    row = database.rows(
        "similar_thin", {"model": model, "after": after, "limit": limit, "enough": KEPT // 2}
    )[0]
    return row.last, row.thin


def read_list(database: Database, model: str, job_id: int) -> StoredList | None:
    """What is stored for the posting; None = there is no such posting."""
    rows = database.rows("similar_read", {"model": model, "job_id": job_id})
    if not rows:
        return None
    row = rows[0]
    return StoredList(bool(row.embedded), tuple(row.neighbours or ()), row.computed_at)


def show_neighbours(
    database: Database, model: str, job_id: int, neighbours: Sequence[int], limit: int
) -> list[SimilarPosting]:
    """Those of `neighbours` that may be shown now, nearest first."""
    rows = database.rows(
        "similar_show",
        {"model": model, "job_id": job_id, "neighbours": list(neighbours), "limit": limit},
    )
    return [SimilarPosting(*row) for row in rows]


def count_lists(database: Database, model: str) -> ListCounts:
    """A scan of the catalogue; for reports, not for a hot path."""
    return ListCounts(*database.rows("similar_counts", {"model": model, "kept": KEPT})[0])
