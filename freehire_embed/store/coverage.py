"""How deep the queue is and how much of the catalogue is covered."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from freehire_embed.store.runs import postings_per_hour

if TYPE_CHECKING:
    from freehire_embed.store.database import Database

# Counting a million live entries takes up to 2 s when the visibility map is cold; the planner's estimate is 1 % off
# and takes microseconds. Below this the count is a few milliseconds.
EXACT_DEPTH_BELOW = 100_000


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of postings. eligible = open, canonical, tech, not private; covered + stale = eligible."""

    eligible: int
    covered: int
    no_text: int | None
    """Covered postings without chunks: their text is empty. None = not counted."""
    stale: int


@dataclass(frozen=True, slots=True)
class Status:
    """The answer of `status`; its fields are the keys of `status --json`."""

    target_model: str
    depth: int
    leased: int
    dead: int
    oldest_seconds: float
    coverage: Coverage
    rate_per_hour: float | None
    """None = the last hour's runs were too short to measure."""
    eta_seconds: float | None
    """None while there is work and no measured rate."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def semantic_outbox_claimable_depth(database: Database) -> int:
    """Live entries, leased ones included, over all models; exact below EXACT_DEPTH_BELOW, else estimated."""
    plan = database.rows("depth_estimate")[0][0]
    estimate = int(plan[0]["Plan"]["Plan Rows"])
    if estimate >= EXACT_DEPTH_BELOW:
        return estimate
    return int(database.rows("depth_exact")[0].depth)


def measure_coverage(database: Database, model: str, *, no_text: bool = False) -> Coverage:
    """Exact counts for `model`; `no_text` takes twenty times as long as the rest (docs/performance.md)."""
    row = database.rows("coverage", {"model": model})[0]
    return Coverage(
        eligible=row.eligible,
        covered=row.eligible - row.stale,
        no_text=database.rows("no_text", {"model": model})[0].postings if no_text else None,
        stale=row.stale,
    )


def measure_status(database: Database, model: str, lease_seconds: int, *, no_text: bool = True) -> Status:
    """Everything `status` shows; whoever asks every minute does without `no_text`."""
    queue = database.rows("queue_state", {"lease": lease_seconds})[0]
    rate = postings_per_hour(database)
    eta = queue.depth / rate * 3600 if rate else None
    return Status(
        target_model=model,
        depth=queue.depth,
        leased=queue.leased,
        dead=queue.dead,
        oldest_seconds=queue.oldest_seconds,
        coverage=measure_coverage(database, model, no_text=no_text),
        rate_per_hour=rate,
        eta_seconds=eta if queue.depth else 0.0,
    )
