"""Claims are disjoint, freshest first, leased, and never of what this run gave up."""

from __future__ import annotations

import threading

import psycopg
import pytest
from pydantic import SecretStr

from freehire_embed.store.database import Database
from freehire_embed.store.outbox import release_run
from freehire_embed_tests.catalogue import add_posting, entry, expire_leases, outbox


def jobs_of(wave):
    return [claim.job_id for claim in wave.claims]


def test_takes_the_freshest_and_undated_by_arrival(sql, database):
    old = add_posting(sql, posted_at="2026-01-01")
    undated = add_posting(sql, created_at="2026-02-01")
    fresh = add_posting(sql, posted_at="2026-03-01")
    queue = outbox(database)
    queue.enqueue()
    assert jobs_of(queue.claim(1)) == [fresh]
    assert jobs_of(queue.claim(1)) == [undated]
    assert jobs_of(queue.claim(1)) == [old]
    assert queue.claim(1) is None


def test_tells_closed_postings_from_open_ones(sql, database):
    open_ = add_posting(sql)
    closed = add_posting(sql, semantic_embedded_model="test-model", closed_at="2026-01-01")
    queue = outbox(database)
    queue.enqueue()
    claims = {claim.job_id: claim for claim in queue.claim(10).claims}
    assert claims[closed].closed
    assert not claims[open_].closed


def test_eight_claimers_at_once_get_disjoint_waves(sql, database, database_url):
    postings = {add_posting(sql) for _ in range(64)}
    outbox(database).enqueue()
    taken: list[int] = []
    ready = threading.Barrier(8)

    def work(number: int) -> None:
        with Database(SecretStr(database_url)) as own:
            queue = outbox(own, f"run-{number}")
            ready.wait()
            while wave := queue.claim(5):
                taken.extend(jobs_of(wave))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(postings)


def test_a_leased_entry_is_nobody_elses_until_the_lease_ends(sql, database):
    job_id = add_posting(sql)
    first = outbox(database, "first")
    first.enqueue()
    first.claim(1)
    second = outbox(database, "second")
    assert second.claim(1) is None
    expire_leases(sql)
    assert jobs_of(second.claim(1)) == [job_id]


def test_what_a_run_gave_up_goes_to_the_next_run_only(sql, database):
    job_id = add_posting(sql)
    first = outbox(database, "first")
    first.enqueue()
    wave = first.claim(1)
    assert first.release(wave.lease, [wave.claims[0].entry_id]) == {wave.claims[0].entry_id}
    assert first.claim(1) is None
    assert jobs_of(outbox(database, "second").claim(1)) == [job_id]


def test_an_abandoned_entry_comes_back_after_the_lease_and_not_with_the_end_of_its_run(sql, database):
    add_posting(sql)
    first = outbox(database, "first")
    first.enqueue()
    wave = first.claim(1)
    first.abandon(wave.lease, [wave.claims[0].entry_id])
    assert first.release_run() == 0
    second = outbox(database, "second")
    assert second.claim(1) is None
    expire_leases(sql)
    assert second.claim(1) is not None


def test_the_end_of_a_run_gives_back_what_it_holds_and_nothing_else(sql, database):
    for _ in range(3):
        add_posting(sql)
    first, second = outbox(database, "first"), outbox(database, "second")
    first.enqueue()
    first.claim(2)
    second.claim(1)
    assert first.release_run() == 2
    assert len(outbox(database, "third").claim(10).claims) == 2


def test_a_foreign_worker_that_took_an_entry_over_is_not_robbed_by_our_mark(sql, database):
    job_id = add_posting(sql)
    first = outbox(database, "first")
    first.enqueue()
    first.claim(1)
    sql.execute("update semantic_outbox set claimed_at = now() + interval '1 second'")  # knows nothing else
    assert first.release_run() == 0
    assert entry(sql, job_id)["claimed_at"] is not None


def test_an_entry_that_kills_its_workers_is_worked_alone_and_then_known_as_poison(sql, database):
    poison = add_posting(sql, posted_at="2026-06-01")
    for _ in range(4):
        add_posting(sql, posted_at="2026-05-01")
    outbox(database).enqueue()
    for n in range(3):
        assert len(outbox(database, f"crash-{n}").claim(10).claims) == 5
        expire_leases(sql)

    alone = outbox(database, "alone").claim(10)
    assert jobs_of(alone) == [poison]
    assert alone.alone
    expire_leases(sql)

    claim = outbox(database, "last").claim(10).claims[0]
    assert claim.job_id == poison
    assert claim.claims == 5
    assert claim.crashed


def test_an_abandoned_wave_is_no_evidence_against_its_entries(sql, database):
    add_posting(sql)
    outbox(database).enqueue()
    for n in range(6):
        queue = outbox(database, f"slow-{n}")
        wave = queue.claim(1)
        assert not wave.claims[0].crashed
        queue.abandon(wave.lease, [wave.claims[0].entry_id])
        expire_leases(sql)


@pytest.mark.parametrize("crashed", [True, False])
def test_only_a_crash_keeps_the_claims_counted(sql, database, crashed):
    job_id = add_posting(sql)
    queue = outbox(database, "lane")
    queue.enqueue()
    queue.claim(1)
    assert release_run(database, "lane", crashed=crashed) == 1
    row = entry(sql, job_id)
    assert row["claimed_at"] is None
    assert row["claims"] == (1 if crashed else 0)


def test_the_plan_of_a_claim_neither_sorts_nor_scans_the_queue(sql, database):
    sql.execute(
        "insert into jobs (source, external_id, url, title, public_slug, is_tech, posted_at) "
        "select 's', i::text, 'u', 't', i::text, true, now() - i * interval '1 minute' "
        "from generate_series(1, 30000) i"
    )
    outbox(database).enqueue()
    sql.execute("analyze semantic_outbox")
    from freehire_embed.queries import query

    plan = "\n".join(
        row[0]
        for row in psycopg.ClientCursor(sql).execute(
            b"explain " + query("claim"),
            {
                "model": "test-model", "run": "r", "lease": 300, "grace_days": 14, "limit": 100,
                "suspect_after": 3, "since": None, "until": None,
            },
        )
    )  # fmt: skip
    assert "semantic_outbox_claim_idx" in plan
    assert "Sort" not in plan
    assert "Seq Scan" not in plan
