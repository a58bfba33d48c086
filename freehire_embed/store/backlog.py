"""Whether a run has anything to do, asked before one is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehire_embed.store.database import Database
    from freehire_embed.store.outbox import Window


def count_claimable(
    database: Database, model: str, *, lease_seconds: int, limit: int, window: Window | None = None
) -> int:
    """Entries of `model` that a run could claim now, at most `limit`; 5 ms per 10,000 on two busy cores."""
    row = database.rows(
        "claimable",
        {
            "model": model,
            "lease": lease_seconds,
            "limit": limit,
            "since": window.since if window else None,
            "until": window.until if window else None,
        },
    )[0]
    return int(row.claimable)


def needs_enqueue(database: Database, model: str, lease_seconds: int) -> bool:
    """Whether an enqueue for `model` would change the queue. For an empty queue: a long one, or
    many dead letters, make it slow (6 ms at 300,000 postings, 200 ms with 5,000 dead letters).
    """
    return bool(database.rows("needs_enqueue", {"model": model, "lease": lease_seconds})[0].needed)


def seconds_idle(database: Database) -> float | None:
    """Time since a run last finished a wave with something in it; None = never."""
    seconds = database.rows("seconds_idle")[0].seconds
    return None if seconds is None else float(seconds)
