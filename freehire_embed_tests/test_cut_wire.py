"""The wire to Postgres breaks at every point of every transaction: nothing is done twice, lost, or miscounted."""

from __future__ import annotations

import itertools

import pytest
from pydantic import SecretStr

from freehire_embed.drill import tei_faults
from freehire_embed.drill.wire import Phase, Wire
from freehire_embed.store.database import Database
from freehire_embed_tests.bench import assert_catalogue_comes_right, charged, drained, endings, sent, server
from freehire_embed_tests.catalogue import add_posting, entry


@pytest.fixture
def tei():
    with server() as running:
        yield running


@pytest.fixture
def wire(database_url):
    with Wire(database_url) as cuttable:
        yield cuttable


@pytest.fixture
def far(wire):
    """The database, seen through the wire."""
    with Database(SecretStr(wire.url), patience_seconds=5) as database:
        yield database


def postings(sql, n):
    """So many postings, the first the freshest."""
    return [add_posting(sql, posted_at=f"2026-01-{28 - i:02}") for i in range(n)]


STATEMENTS = {
    "enqueue": "with needs as",
    "claim": "with picked as materialized",
    "eligibility": "select id, not (closed_at",
    "load": "select id, title, company",
    "renew": "set claimed_at = now(), claimed_by_at = now()",
    "lock": "for no key update of j",
    "stamp": "update jobs j",
    "copy": "copy job_semantic_chunks",
    "finish": "delete from semantic_outbox where id",
    "count": "update semantic_runs",
}


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_a_cut_wire_in_any_stage_costs_nothing(sql, wire, far, tei, name):
    """Before the statement, while it runs, when its answer is on the way; and so for its COMMIT."""
    for number, (phase, commit) in enumerate(itertools.product(Phase, (False, True)), 1):
        postings(sql, 6)
        wire.was_cut.clear()
        wire.cut_at(STATEMENTS[name], phase, commit=commit)
        report = drained(far, tei)
        case = f"{phase} {commit}"
        assert wire.was_cut.is_set(), case
        assert report.total.halt is None, case
        assert endings(report) == {"indexed": 6}, case
        assert report.enqueued.missing == 6, case
        assert sent(tei) == 6 * number, case
    assert charged(sql) == 0
    assert_catalogue_comes_right(sql, far)


@pytest.mark.parametrize("phase", list(Phase), ids=lambda phase: phase.name.lower())
def test_a_failure_that_is_booked_over_a_cut_wire_charges_one_attempt(sql, wire, far, tei, phase):
    postings(sql, 3)
    poisoned = add_posting(sql, description="POISON")
    tei.fail(tei_faults.status(422), marker="POISON")
    wire.cut_at("set attempts = o.attempts + 1", phase, commit=True)
    assert endings(drained(far, tei)) == {"indexed": 3, "failed": 1}
    assert wire.was_cut.is_set()
    assert entry(sql, poisoned)["attempts"] == 1


def test_a_commit_that_is_still_under_way_when_the_wire_breaks_is_waited_for(sql, wire, far, tei):
    """The server works on a COMMIT that nobody hears of: a deferred constraint takes its time."""
    postings(sql, 4)
    sql.execute(
        "create function linger() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return null; "
        "end $$; create constraint trigger linger after insert on job_semantic_chunks "
        "deferrable initially deferred for each row when (new.job_id % 4 = 0) execute function linger()"
    )
    wire.cut_at("copy job_semantic_chunks", Phase.RUNNING, commit=True)
    report = drained(far, tei)
    assert wire.was_cut.is_set()
    assert endings(report) == {"indexed": 4}
    assert report.total.halt is None
