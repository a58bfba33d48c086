"""What runs have done, for rates and for "when was anything embedded last"."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehire_embed.domain import Outcome

if TYPE_CHECKING:
    from freehire_embed.domain import WaveReport
    from freehire_embed.store.database import Database

RATE_SECONDS = 60
"""Work from which a rate is told: a wave of removals takes a tenth of a second and would promise millions."""


class RunRecord:
    """One row of semantic_runs, written after each wave; only its own run writes it."""

    def __init__(self, database: Database, run_id: str, model: str) -> None:
        self._database = database
        self._run_id = run_id
        database.execute("run_start", {"run": run_id, "model": model})

    def add(self, report: WaveReport) -> None:
        """Adds a finished wave."""
        counts = {outcome.value: report.outcomes[outcome] for outcome in Outcome}
        self._database.execute(
            "run_progress",
            {
                "run": self._run_id,
                "passages": report.embedded,
                "over_limit": json.dumps(report.over_limit),
                **counts,
            },
        )

    def finish(self) -> None:
        self._database.execute("run_finish", {"run": self._run_id})


@dataclass(frozen=True, slots=True)
class Truncation:
    """Passages embedded lately, and by language those of them that the server cut."""

    passages: int
    over_limit: dict[str, int]

    @property
    def cut(self) -> int:
        return sum(self.over_limit.values())


def measure_truncation(database: Database, model: str, days: int = 7) -> Truncation:
    """Of all runs under `model` that worked within the last `days`."""
    row = database.rows("runs_truncation", {"model": model, "days": days})[0]
    return Truncation(row.passages, row.over_limit)


@dataclass(frozen=True, slots=True)
class Totals:
    """What all runs together have done since the first."""

    indexed: int
    removed: int
    dead_lettered: int
    passages: int


def measure_totals(database: Database) -> Totals:
    """Sums over all runs; they only grow."""
    return Totals(*database.rows("runs_totals")[0])


def postings_per_hour(database: Database) -> float | None:
    """Of the runs of the last hour, while they worked; None when that was less than RATE_SECONDS."""
    row = database.rows("runs_rate")[0]
    return float(row.finished) / row.seconds * 3600 if row.seconds >= RATE_SECONDS else None
