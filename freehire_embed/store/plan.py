"""What a run would do, without doing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehire_embed.chunks import TooManyChunks, passage_sha256, passages
from freehire_embed.store.runs import postings_per_hour

if TYPE_CHECKING:
    from freehire_embed.profiles import Profile
    from freehire_embed.store.database import Database

_SAMPLE = 300
"""Postings that are read to estimate the passages: real ones have 1.8 +- 2, so the mean is within some 10 %."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Counts of postings by reason, as `enqueue` would find them; `queued` and `dead` are parts of them."""

    model: str
    missing: int
    content: int
    by_model: int
    clear: int
    queued: int
    dead: int
    """Blocked by a dead letter until somebody requeues it."""
    passages: int
    """Estimated from a sample; passages whose vector is already stored are not counted."""
    rate_per_hour: float | None
    """Postings, measured over the last hour; None = too little to measure."""

    @property
    def seconds(self) -> float | None:
        """Estimated time for all of it; None while there is no measured rate."""
        postings = self.missing + self.content + self.by_model + self.clear - self.dead
        if postings == 0:
            return 0.0
        return postings / self.rate_per_hour * 3600 if self.rate_per_hour else None


def make_plan(database: Database, profile: Profile) -> Plan:
    """Reads only. Raises DatabaseFault, or RowRejected when a posting of the sample cannot be read."""
    rows = {row.reason: row for row in database.rows("plan", {"model": profile.identity})}
    postings = {reason: row.postings for reason, row in rows.items()}
    dead = sum(row.dead for row in rows.values())
    to_embed = sum(postings.values()) - postings.get("clear", 0) - dead
    return Plan(
        model=profile.identity,
        missing=postings.get("missing", 0),
        content=postings.get("content", 0),
        by_model=postings.get("model", 0),
        clear=postings.get("clear", 0),
        queued=sum(row.queued for row in rows.values()),
        dead=dead,
        passages=round(to_embed * _passages_a_posting(database, profile)) if to_embed else 0,
        rate_per_hour=postings_per_hour(database),
    )


def _passages_a_posting(database: Database, profile: Profile) -> float:
    sample = [row.id for row in database.rows("plan_sample", {"model": profile.identity, "limit": _SAMPLE})]
    stored: dict[int, set[bytes]] = {}
    for row in database.rows("load_stored_passages", {"job_ids": sample}):
        if row.passage_sha256 is not None:
            stored.setdefault(row.job_id, set()).add(row.passage_sha256)
    count = 0
    for row in database.rows("load_postings", {"job_ids": sample}):
        try:
            made = passages(row.title, row.company, row.description, profile)
        except TooManyChunks:
            continue
        kept = stored.get(row.id, set())
        count += sum(passage_sha256(profile.identity, passage) not in kept for passage in made)
    return count / max(len(sample), 1)
