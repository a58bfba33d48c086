"""Whoever no longer holds the claim changes nothing."""

from __future__ import annotations

import pytest

from freehire_embed.domain import Outcome, RowFault
from freehire_embed_tests.catalogue import (
    add_posting,
    chunk_indexes,
    embedded,
    entry,
    expire_leases,
    outbox,
    stamp,
)


@pytest.fixture
def stolen(sql, database):
    """A wave whose owner slept past its lease, and the outbox of both owners."""
    job_id = add_posting(sql)
    sleeper, thief = outbox(database, "sleeper"), outbox(database, "thief")
    sleeper.enqueue()
    stale = sleeper.claim(1)
    expire_leases(sql)
    thief.claim(1)
    return job_id, sleeper, stale


def test_a_stale_commit_is_lost_and_writes_nothing(sql, stolen):
    job_id, sleeper, stale = stolen
    before = entry(sql, job_id)
    outcomes = sleeper.replace(stale.lease, [embedded(stale.claims[0], "text")])
    assert set(outcomes.values()) == {Outcome.LOST}
    assert entry(sql, job_id) == before
    assert stamp(sql, job_id) == (None, None)
    assert chunk_indexes(sql, job_id) == []


@pytest.mark.parametrize("ending", ["clear", "fail", "release", "abandon", "renew"])
def test_no_other_ending_of_a_stale_owner_changes_the_entry(sql, stolen, ending):
    job_id, sleeper, stale = stolen
    before = entry(sql, job_id)
    claim = stale.claims[0]
    if ending == "clear":
        assert set(sleeper.clear(stale.lease, [claim]).values()) == {Outcome.LOST}
    elif ending == "fail":
        assert sleeper.fail(stale.lease, [RowFault(claim, "broken")]) == {}
    elif ending == "renew":
        stale.lease.renew()
        assert stale.lease.held == frozenset()
    else:
        assert getattr(sleeper, ending)(stale.lease, [claim.entry_id]) == set()
    assert entry(sql, job_id) == before


def test_a_renewed_lease_still_commits(sql, database):
    job_id = add_posting(sql)
    queue = outbox(database)
    queue.enqueue()
    wave = queue.claim(1)
    wave.lease.renew()
    wave.lease.renew()
    assert set(queue.replace(wave.lease, [embedded(wave.claims[0], "text")]).values()) == {Outcome.INDEXED}
    assert entry(sql, job_id) is None


def test_a_renewal_keeps_a_lease_from_ending(sql, database):
    add_posting(sql)
    first = outbox(database, "first", lease_seconds=60)
    first.enqueue()
    wave = first.claim(1)
    sql.execute(
        "update semantic_outbox set claimed_at = claimed_at - interval '59 seconds', "
        "claimed_by_at = claimed_by_at - interval '59 seconds'"
    )
    with wave.lease.fence() as claimed_stamp:
        aged = sql.execute("select claimed_at from semantic_outbox").fetchone()[0]
        assert aged < claimed_stamp


def test_a_hard_deleted_posting_is_lost(sql, database):
    job_id = add_posting(sql)
    queue = outbox(database)
    queue.enqueue()
    wave = queue.claim(1)
    sql.execute("delete from jobs where id = %s", [job_id])
    assert set(queue.replace(wave.lease, [embedded(wave.claims[0], "text")]).values()) == {Outcome.LOST}
