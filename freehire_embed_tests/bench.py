"""A whole run on a test database: real stages, real HTTP to a `FaultyTei`, waves of four, no pauses."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from freehire_embed.domain import WaveReport
from freehire_embed.drain import RunReport, drain
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.drill.scratch import strangers
from freehire_embed.profiles import Profile
from freehire_embed.run import Run
from freehire_embed.settings import Settings
from freehire_embed.store import identities
from freehire_embed.store.runs import RunRecord
from freehire_embed_tests.catalogue import MODEL, count, expire_leases, outbox
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.tei_bench import client

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from freehire_embed.store.database import Database

SERVED = "example/tiny"
PROFILE = Profile(MODEL, (SERVED,), WIDTH)
ELIGIBLE = "closed_at is null and duplicate_of is null and is_tech is true"
_number = itertools.count(1)


@contextmanager
def server() -> Iterator[FaultyTei]:
    """The look-alike server for PROFILE."""
    with FaultyTei(width=WIDTH, model_id=SERVED, keep_texts=True) as tei:
        yield tei


def open_run(database: Database, tei: FaultyTei, *, rules: dict[str, Any] | None = None, **env: str) -> Run:
    """A run that has passed its preflight; `rules` are SemanticOutbox's."""
    run_id = f"run-{next(_number)}"
    settings = Settings.from_environment({"EMBED_BATCH_SIZE": "4", **env})
    embedder = client(tei.url, profile=PROFILE)
    probe = embedder.preflight(identities.check_usable(database, PROFILE))
    identities.promote_proven(database, PROFILE, probe)
    record = RunRecord(database, run_id, MODEL)
    queue = outbox(database, run_id, **(rules or {}))
    return Run(run_id, settings, PROFILE, database, embedder, queue, record, promoted=False)


def drained(
    database: Database, tei: FaultyTei, *, rules: dict[str, Any] | None = None, **env: str
) -> RunReport:
    """One whole drain by a run of its own."""
    return drain(open_run(database, tei, rules=rules, **env))


def endings(report: RunReport | WaveReport) -> dict[str, int]:
    """Outcomes that occurred, by name."""
    total = report.total if isinstance(report, RunReport) else report
    return {outcome.value: n for outcome, n in total.outcomes.items() if n}


def charged(sql: psycopg.Connection) -> int:
    return count(sql, "select coalesce(sum(attempts), 0) from semantic_outbox")


def leased(sql: psycopg.Connection) -> int:
    return count(
        sql, "select count(*) from semantic_outbox where claimed_at is not null and failed_at is null"
    )


def sent(tei: FaultyTei, words: str = "passage: Engineer") -> int:
    """Passages of postings that the server was sent, each time counted."""
    return sum(words in text for texts in tei.texts or () for text in texts)


def assert_every_vector_belongs(sql: psycopg.Connection, database: Database) -> None:
    """No vector with a stamp that it does not belong to, and none without a stamp.

    Tells only for postings whose content is the one they were stamped with.
    """
    edited = {
        row[0]
        for row in sql.execute(
            "select id from jobs where semantic_embedded_hash is distinct from content_hash "
            "and semantic_embedded_model is not null"
        )
    }
    assert set(strangers(database, PROFILE, SERVED)) <= edited
    assert count(
        sql,
        "select count(*) from job_semantic_chunks c join jobs j on j.id = c.job_id "
        "where j.semantic_embedded_model is distinct from %s",
        MODEL,
    ) == 0  # fmt: skip


def assert_catalogue_comes_right(sql: psycopg.Connection, database: Database) -> None:
    """After the leases, good runs leave every eligible posting covered, no other, and an empty queue."""
    assert_every_vector_belongs(sql, database)
    with server() as tei:
        for _ in range(2):
            expire_leases(sql)
            drained(database, tei)
    assert_every_vector_belongs(sql, database)
    assert strangers(database, PROFILE, SERVED) == []
    assert count(
        sql,
        f"select count(*) from jobs where ({ELIGIBLE}) and (semantic_embedded_model is distinct from %s "
        "or semantic_embedded_hash is distinct from content_hash)",
        MODEL,
    ) == 0  # fmt: skip
    assert count(
        sql, f"select count(*) from jobs where not ({ELIGIBLE}) and semantic_embedded_model is not null"
    ) == 0  # fmt: skip
    assert count(sql, "select count(*) from semantic_outbox where failed_at is null") == 0
