"""Dead letters: what they are, why, and how they come back by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from freehire_embed.store.database import Database


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One entry that will not be tried again by itself, unless its posting's content changes."""

    entry_id: int
    job_id: int
    target_model: str
    attempts: int
    last_error: str
    failed_at: datetime
    created_at: datetime
    dead_seconds: float
    closed: bool
    """The posting needs no vectors any more."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Dead letters with the same error, numbers and quoted parts apart."""

    cause: str
    entries: int
    first_failed_at: datetime
    last_failed_at: datetime
    examples: tuple[int, ...]
    """Up to three entry ids, newest first."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which dead letters to requeue; conditions add up, and without any it is all of them."""

    entries: Sequence[int] | None = None
    posting: int | None = None
    cause: str | None = None
    """Part of the error's text, in any case of letters."""
    older_than_seconds: float | None = None
    """Dead for longer than that."""


def list_dead(database: Database, *, entry_id: int | None = None, limit: int = 100) -> list[DeadLetter]:
    """The newest dead letters, or the one of that entry id."""
    rows = database.rows("dead_list", {"entry": entry_id, "limit": limit})
    return [DeadLetter(*row) for row in rows]


def list_causes(database: Database) -> list[Cause]:
    """All dead letters grouped by cause, the commonest first."""
    return [
        Cause(row.cause, row.entries, row.first_failed_at, row.last_failed_at, tuple(row.examples))
        for row in database.rows("dead_causes")
    ]


def requeue(database: Database, model: str, selection: Selection) -> list[int]:
    """Puts the selected dead letters of `model` back, attempts 0; returns their entry ids. Idempotent."""
    rows = database.rows(
        "dead_requeue",
        {
            "model": model,
            "entries": None if selection.entries is None else list(selection.entries),
            "posting": selection.posting,
            "cause": selection.cause,
            "older_than": selection.older_than_seconds,
        },
    )
    return [row.id for row in rows]
