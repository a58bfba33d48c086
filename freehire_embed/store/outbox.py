"""The queue: enqueue, claim, renew, and the endings that write nothing but queue rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from freehire_embed.domain import Claim, EnqueueReport
from freehire_embed.lease import Lease
from freehire_embed.store.commit import WaveCommit
from freehire_embed.store.database import Connection, Database, execute, fetch
from freehire_embed.store.divide import divide
from freehire_embed.store.faults import DatabaseMisfit, StatementTimeout, blaming_no_posting
from freehire_embed.waves import Wave

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from typing import Any

    from freehire_embed.domain import RowFault

# The fourth claim without an outcome is worked alone, the fifth finds a poison entry.
SUSPECT_AFTER_CLAIMS = 3
_REASON_CHARACTERS = 2000
# Ids of one part of an enqueue; a server that cannot do so few in its time cannot commit a wave either.
_SMALLEST_PART = 1000

logger = logging.getLogger(__name__)


class Superseded(DatabaseMisfit):
    """Another identity was promoted while a run worked under this one."""


@dataclass(frozen=True, slots=True)
class Window:
    """Restricts a run to postings of a time span (a backfill's month); None = open end."""

    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class LoadedPosting:
    """One posting as read for chunking; `stored` maps chunk_index to passage_sha256 (None = unknown)."""

    job_id: int
    title: str | None
    company: str | None
    description: str | None
    content_hash: str | None
    closed: bool
    stored: dict[int, bytes | None]


class SemanticOutbox(WaveCommit):
    """`semantic_outbox` as one run sees it: bound to a run, a target model and the lease rules."""

    def __init__(
        self,
        database: Database,
        *,
        run_id: str,
        model: str,
        lease_seconds: int,
        max_attempts: int,
        upstream_grace_days: int,
        window: Window | None = None,
    ) -> None:
        super().__init__(database, model=model)
        self.run_id = run_id
        self._lease_seconds = lease_seconds
        self._max_attempts = max_attempts
        self._grace_days = upstream_grace_days
        window = window or Window()
        self._window = {"since": window.since, "until": window.until}

    def enqueue(self) -> EnqueueReport:
        """Queues what is missing or stale, revives and reaps dead letters, retires other models' entries.

        Raises Superseded when another identity was promoted since the run began: its entries would be retired.
        """
        with blaming_no_posting():
            try:
                return self._database.transact(
                    lambda connection: self._tidy(connection) + self._queue(connection)
                )
            except StatementTimeout as error:
                logger.warning("%s; queueing the postings in parts", error)
                return self._queue_in_parts()

    def _tidy(self, connection: Connection) -> EnqueueReport:
        model = {"model": self._model}
        self._begin(connection)
        execute(connection, "adopt_dead")
        reaped = execute(connection, "reap")
        revived = execute(connection, "revive", model)
        retired = execute(connection, "retire", {**model, "lease": self._lease_seconds})
        return EnqueueReport(revived=revived, retired=retired, reaped=reaped)

    def _queue(
        self, connection: Connection, low: int | None = None, high: int | None = None
    ) -> EnqueueReport:
        """Queues all that has need, or what has ids from `low` up to and not including `high`."""
        self._begin(connection)
        part = {"model": self._model, "low": low, "high": high}
        return EnqueueReport(**dict(fetch(connection, "enqueue", {**part, **self._window})))

    def _queue_in_parts(self) -> EnqueueReport:
        """For a statement_timeout that is too short for all at once: each part stays, so the next try has less."""
        report = self._database.transact(self._tidy)
        (span,) = self._database.rows("enqueue_span")
        low, size = span.low, span.high - span.low
        while low < span.high:
            try:
                part = partial(self._queue, low=low, high=low + size)
                report += self._database.transact(part)
            except StatementTimeout:
                if size <= _SMALLEST_PART:
                    raise
                size = max(_SMALLEST_PART, size // 4)
            else:
                low += size
        return report

    def _begin(self, connection: Connection) -> None:
        fetch(connection, "enqueue_lock")
        newest = fetch(connection, "models_target")
        if newest and newest[0].identity != self._model:
            raise Superseded(
                f"{self._model} was superseded while this run worked: the target is {newest[0].identity} now"
            )

    def claim(self, limit: int) -> Wave | None:
        """Leases up to `limit` of the freshest free entries to this run; None = nothing is claimable."""
        with blaming_no_posting():
            rows = self._database.rows(
                "claim",
                {
                    "model": self._model,
                    "run": self.run_id,
                    "lease": self._lease_seconds,
                    "grace_days": self._grace_days,
                    "limit": limit,
                    "suspect_after": SUSPECT_AFTER_CLAIMS,
                    **self._window,
                },
            )
        if not rows:
            return None
        closed = self._closed_by_posting([row.job_id for row in rows])
        claims = tuple(
            Claim(
                entry_id=row.entry_id,
                job_id=row.job_id,
                attempts=row.attempts,
                claims=row.claims,
                crashed=row.crashed,
                past_grace=row.past_grace,
                closed=closed.get(row.job_id, False),
            )
            for row in rows
        )
        lease = Lease(self, (row.entry_id for row in rows), rows[0].claimed_at, self._lease_seconds)
        return Wave(lease, claims, alone=claims[0].claims > SUSPECT_AFTER_CLAIMS)

    def _closed_by_posting(self, job_ids: Sequence[int]) -> dict[int, bool]:
        """False for a posting that cannot even be read: the chunk stage finds and names it."""
        parts, rejected = divide(job_ids, self._read_eligibility)
        return {row.id: row.closed for part in parts for row in part} | dict.fromkeys(rejected, False)

    def _read_eligibility(self, job_ids: Sequence[int]) -> list[Any]:
        return self._database.rows("eligibility", {"job_ids": list(job_ids)})

    def load(self, job_ids: Sequence[int]) -> list[LoadedPosting]:
        """Text, hash and stored passages of postings that still exist. Raises RowRejected or DatabaseFault."""

        def work(connection: Connection) -> list[LoadedPosting]:
            parameters = {"job_ids": list(job_ids)}
            stored: dict[int, dict[int, bytes | None]] = {}
            for job_id, index, sha256 in fetch(connection, "load_stored_passages", parameters):
                stored.setdefault(job_id, {})[index] = sha256
            return [
                LoadedPosting(
                    job_id=row.id,
                    title=row.title,
                    company=row.company,
                    description=row.description,
                    content_hash=row.content_hash,
                    closed=row.closed,
                    stored=stored.get(row.id, {}),
                )
                for row in fetch(connection, "load_postings", parameters)
            ]

        return self._database.transact(work)

    def renew(self, entry_ids: Collection[int], stamp: datetime) -> tuple[datetime | None, set[int]]:
        with blaming_no_posting():
            rows = self._database.rows("renew", {"ids": list(entry_ids), "stamp": stamp})
        return (rows[0].claimed_at if rows else None), {row.id for row in rows}

    def release(self, lease: Lease, entry_ids: Sequence[int]) -> set[int]:
        """Gives entries back at once, uncharged; returns those that were still ours."""
        return self._end(lease, "release", entry_ids)

    def abandon(self, lease: Lease, entry_ids: Sequence[int]) -> set[int]:
        """Leaves entries leased until the lease ends; returns those that were still ours."""
        return self._end(lease, "abandon", entry_ids)

    def _end(self, lease: Lease, statement: str, entry_ids: Sequence[int]) -> set[int]:
        with lease.fence() as stamp, blaming_no_posting():
            rows = self._database.rows(statement, {"ids": list(entry_ids), "stamp": stamp})
            lease.settle(entry_ids)
        return {row.id for row in rows}

    def fail(self, lease: Lease, faults: Sequence[RowFault]) -> dict[int, bool]:
        """Charges one attempt each; returns, for those still ours, whether it was the last (dead letter)."""
        entry_ids = [fault.claim.entry_id for fault in faults]
        with lease.fence() as stamp, blaming_no_posting():
            rows = self._database.rows(
                "fail",
                {
                    "ids": entry_ids,
                    "stamp": stamp,
                    "errors": [_storable(fault.reason) for fault in faults],
                    "finals": [fault.final for fault in faults],
                    "hashes": [fault.content_hash for fault in faults],
                    "max_attempts": self._max_attempts,
                },
            )
            lease.settle(entry_ids)
        return {row.id: row.dead for row in rows}

    def release_run(self) -> int:
        """Gives back whatever this run still holds, by its mark; for the end of a run that ended by itself."""
        return release_run(self._database, self.run_id, crashed=False)


def release_run(database: Database, run_id: str, *, crashed: bool) -> int:
    """Gives back the claims of a run; `crashed` keeps them counted against poison entries."""
    with blaming_no_posting():
        return len(database.rows("release_run", {"run": run_id, "crashed": crashed}))


def _storable(reason: str) -> str:
    """A server's words may hold what Postgres does not take as text."""
    return reason[:_REASON_CHARACTERS].encode(errors="replace").decode().replace("\0", "\ufffd")
