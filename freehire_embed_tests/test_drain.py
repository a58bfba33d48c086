"""A whole run over a server that fails on purpose: who is charged, what is stored, how the run ends."""

from __future__ import annotations

import threading

import pytest

from freehire_embed import drain as drain_module
from freehire_embed import stages
from freehire_embed.domain import HaltKind
from freehire_embed.drain import UNDECIDED_IN_A_ROW, Interrupted, drain
from freehire_embed.drill import tei_faults
from freehire_embed.profiles import Profile
from freehire_embed.store import identities
from freehire_embed_tests.bench import (
    assert_catalogue_comes_right,
    assert_every_vector_belongs,
    charged,
    drained,
    endings,
    leased,
    open_run,
    server,
)
from freehire_embed_tests.catalogue import (
    MODEL,
    add_posting,
    count,
    entry,
    expire_leases,
    outbox,
    stamp,
    vector,
)
from freehire_embed_tests.conftest import WIDTH

POISON = "<p>POISON ivy</p>"
# Measured: 13 each, 28 for a server that is busy.
_MOST_REQUESTS_DOWN = 30


@pytest.fixture
def tei():
    with server() as running:
        yield running


def postings(sql, n, **columns):
    return [add_posting(sql, **columns) for _ in range(n)]


def test_a_run_works_everything_and_the_next_one_finds_nothing(sql, database, tei):
    postings(sql, 10)
    add_posting(sql, description=" ")
    add_posting(sql, is_tech=None)
    told = []
    report = drain(open_run(database, tei), on_wave=lambda n, wave, seconds: told.append((n, wave.claimed)))
    assert endings(report) == {"indexed": 11}
    assert [number for number, _ in told] == [1, 2, 3]
    assert sorted(claimed for _, claimed in told) == [3, 4, 4]
    assert (report.total.embedded, report.total.no_text, report.exit_code) == (10, 1, 0)
    before = tei.requests
    again = drained(database, tei)
    assert (again.total.claimed, again.enqueued.enqueued) == (0, 0)
    assert tei.requests == before + 1  # the preflight's probe
    assert_catalogue_comes_right(sql, database)


@pytest.mark.parametrize(
    "fault",
    [
        tei_faults.status(422),
        tei_faults.status(413),
        tei_faults.status(424),
        tei_faults.status(500),
        tei_faults.values("null"),
        tei_faults.values("NaN"),
        tei_faults.values("0.0"),
        tei_faults.width(5),
        tei_faults.reset,
    ],
    ids=["too long", "too big", "inference", "internal", "null", "nan", "zero", "width", "reset"],
)
def test_a_poisoned_posting_is_charged_alone_whatever_its_poison_looks_like(sql, database, tei, fault):
    postings(sql, 11)
    poisoned = add_posting(sql, description=POISON)
    tei.fail(fault, marker="POISON")
    report = drained(database, tei, EMBED_BATCH_SIZE="12")
    assert endings(report) == {"indexed": 11, "failed": 1}
    assert report.exit_code == 1
    assert entry(sql, poisoned)["attempts"] == 1
    assert stamp(sql, poisoned) == (None, None)
    assert "ivy" not in entry(sql, poisoned)["last_error"]
    assert_every_vector_belongs(sql, database)


def test_a_poisoned_posting_waits_out_its_lease_and_is_buried_after_its_attempts(sql, database, tei):
    poisoned = add_posting(sql, description=POISON)
    tei.fail(tei_faults.status(422), marker="POISON")
    assert endings(drained(database, tei)) == {"failed": 1}
    assert endings(drained(database, tei)) == {}
    expire_leases(sql)
    assert endings(drained(database, tei)) == {"failed": 1}
    expire_leases(sql)
    assert endings(drained(database, tei)) == {"dead_lettered": 1}
    expire_leases(sql)
    assert endings(drained(database, tei)) == {}
    sql.execute("update jobs set description = 'cured', content_hash = 'cured' where id = %s", [poisoned])
    report = drained(database, tei)
    assert (report.enqueued.revived, endings(report)) == (1, {"indexed": 1})


@pytest.mark.parametrize(
    "fault",
    [
        tei_faults.status(503),
        tei_faults.status(502),
        tei_faults.status(504),
        tei_faults.status(500),
        tei_faults.status(429),
        tei_faults.html(),
        tei_faults.cut_json,
        tei_faults.truncated,
        tei_faults.reset,
        tei_faults.count(-1),
        tei_faults.values("null"),
    ],
    ids=["503", "502", "504", "500", "429", "html", "cut", "truncated", "reset", "count", "all null"],
)
def test_an_outage_in_mid_run_charges_nobody_and_the_next_run_finishes(sql, database, tei, fault):
    postings(sql, 12)
    run = open_run(database, tei)
    before = tei.requests
    tei.fail(fault, after=1)
    report = drain(run)
    assert report.total.halt.kind in (HaltKind.UPSTREAM, HaltKind.UNDECIDED)
    assert report.exit_code == 1
    assert set(endings(report)) <= {"indexed", "released"}
    assert (charged(sql), leased(sql)) == (0, 0)
    assert tei.requests - before <= _MOST_REQUESTS_DOWN
    tei.recover()
    last = drained(database, tei)
    done = endings(report).get("indexed", 0)
    assert (endings(last), last.exit_code) == ({"indexed": 12 - done}, 0)
    assert_catalogue_comes_right(sql, database)


def test_an_outage_costs_the_waves_in_hand_and_stops_claiming(sql, database, tei):
    postings(sql, 40)
    run = open_run(database, tei)
    before = tei.requests
    tei.fail(tei_faults.status(503))
    report = drain(run)
    assert endings(report) == {"released": report.total.claimed}
    assert report.total.claimed <= 4 * drain_module.WAVES_AT_ONCE
    assert "embedding backend unavailable" in report.total.halt.reason
    assert tei.requests - before <= 10


def test_the_closed_part_of_a_wave_is_cleared_whatever_becomes_of_the_open_part(sql, database, tei):
    closed = postings(sql, 2, semantic_embedded_model=MODEL, closed_at="2026-01-01")
    postings(sql, 2)
    run = open_run(database, tei)
    tei.fail(tei_faults.status(503))
    assert endings(drain(run)) == {"removed": 2, "released": 2}
    assert all(stamp(sql, job_id) == (None, None) for job_id in closed)


def test_clearing_alone_asks_no_server(sql, database, tei):
    postings(sql, 3, semantic_embedded_model=MODEL, closed_at="2026-01-01")
    run = open_run(database, tei)
    before = tei.requests
    assert endings(drain(run)) == {"removed": 3}
    assert tei.requests == before


@pytest.mark.parametrize("after", [0, 1])
def test_a_server_swapped_in_mid_run_stores_nothing_foreign_and_ends_the_run_with_2(
    sql, database, tei, after
):
    postings(sql, 4 + 4 * after)
    run = open_run(database, tei)
    tei.swap_model("example/other", after=after)
    report = drain(run)
    assert report.total.halt.kind is HaltKind.CONFIG
    assert (report.total.outcomes["released"], report.exit_code) == (4, 2)
    assert count(sql, "select count(*) from job_semantic_chunks") == 4 * after
    assert (charged(sql), leased(sql)) == (0, 0)


def test_a_run_that_met_a_foreign_replica_is_done_and_ends_with_1(sql, database, tei):
    postings(sql, 20)
    run = open_run(database, tei)
    tei.fail(tei_faults.foreign(), every=3)
    report = drain(run)
    assert (endings(report), report.total.halt, report.exit_code) == ({"indexed": 20}, None, 1)
    assert "asked for again" in report.total.usage.doubt
    assert_catalogue_comes_right(sql, database)


@pytest.mark.parametrize(
    "fault",
    [
        tei_faults.status(401),
        tei_faults.status(403),
        tei_faults.status(404),
        tei_faults.redirect("http://elsewhere.example/"),
        tei_faults.width(WIDTH + 1),
    ],
    ids=["401", "403", "404", "redirect", "width"],
)
def test_a_configuration_fault_in_mid_run_gives_everything_back(sql, database, tei, fault):
    postings(sql, 4)
    run = open_run(database, tei)
    tei.fail(fault)
    report = drain(run)
    assert (endings(report), report.exit_code) == ({"released": 4}, 2)
    assert (charged(sql), leased(sql)) == (0, 0)


def test_a_wave_that_runs_out_of_time_is_abandoned_uncharged_and_the_run_goes_on(sql, database, tei):
    postings(sql, 3, posted_at="2026-02-01", description="<p>SLOW</p>")
    add_posting(sql, posted_at="2026-01-01")
    tei.fail(tei_faults.hang, marker="SLOW")
    report = drained(database, tei, EMBED_CALL_TIMEOUT_SECONDS="1", EMBED_BATCH_SIZE="3")
    assert (endings(report), report.exit_code) == ({"abandoned": 3, "indexed": 1}, 1)
    assert (charged(sql), leased(sql)) == (0, 3)
    assert endings(drained(database, tei)) == {}, "not before the lease"
    tei.recover()
    assert_catalogue_comes_right(sql, database)


def test_what_nobody_can_be_blamed_for_is_given_back_until_it_is_past_its_grace(sql, database, tei):
    """The probe is fine, yet every row fails without a word: no trait of the texts."""
    old, fresh = postings(sql, 8), postings(sql, 8)
    outbox(database).enqueue()
    sql.execute(
        "update semantic_outbox set created_at = now() - interval '15 days' where job_id = any(%s)", [old]
    )
    tei.fail(tei_faults.status(424), marker="Engineer")
    report = drained(database, tei, EMBED_BATCH_SIZE="16")
    assert report.total.halt.kind is HaltKind.UNDECIDED
    assert endings(report) == {"dead_lettered": 8, "released": 8}
    assert all(entry(sql, job_id)["failed_at"] for job_id in old)
    assert all(entry(sql, job_id)["attempts"] == 0 for job_id in fresh)


def test_an_outage_of_any_length_buries_nothing_before_its_grace(sql, database, tei):
    postings(sql, 4)
    run_count = 5
    for _ in range(run_count):
        run = open_run(database, tei)
        tei.fail(tei_faults.status(503))
        assert endings(drain(run)) == {"released": 4}
        tei.recover()
    assert charged(sql) == 0
    assert_catalogue_comes_right(sql, database)


def test_a_run_gives_up_after_some_undecided_waves(sql, database, tei):
    postings(sql, 8 * (UNDECIDED_IN_A_ROW + 4))
    tei.fail(tei_faults.status(424), marker="Engineer")
    report = drained(database, tei, EMBED_BATCH_SIZE="8")
    assert report.waves < UNDECIDED_IN_A_ROW + drain_module.WAVES_AT_ONCE
    assert set(endings(report)) == {"released"}
    assert charged(sql) == 0


def test_a_posting_without_a_hash_is_embedded_once(sql, database, tei):
    add_posting(sql, content_hash=None)
    assert endings(drained(database, tei)) == {"indexed": 1}
    assert endings(drained(database, tei)) == {}


def test_a_long_drain_hears_of_fresh_postings(sql, database, tei, monkeypatch):
    monkeypatch.setattr(drain_module, "ENQUEUE_EVERY_SECONDS", 0)
    postings(sql, 8)
    late = []

    def arrive(number, wave, seconds):
        if not late:
            late.append(add_posting(sql))

    report = drain(open_run(database, tei, EMBED_BATCH_SIZE="1"), on_wave=arrive)
    assert endings(report) == {"indexed": 9}
    assert stamp(sql, late[0])[0] == MODEL


def test_a_run_that_is_superseded_claims_no_more_and_says_so(sql, database, tei, monkeypatch):
    postings(sql, 60)
    monkeypatch.setattr(drain_module, "ENQUEUE_EVERY_SECONDS", 0)
    run = open_run(database, tei)

    def promote_another(number, report, seconds):
        if number == 1:
            identities.promote_proven(database, Profile("successor", ("s",), WIDTH), vector(1))

    report = drain(run, on_wave=promote_another)
    assert report.exit_code == 2
    assert "superseded" in report.total.halt.reason
    assert endings(report)["indexed"] < 60


def test_a_suspect_is_worked_with_nothing_else_in_hand(sql, database, tei):
    suspect = add_posting(sql, posted_at="2026-06-01", description="<p>SUSPECT</p>")
    postings(sql, 12)
    outbox(database).enqueue()
    sql.execute(
        "update semantic_outbox set claims = 3, claimed_at = now() - interval '1 day', "
        "claimed_by_at = now() - interval '1 day', claimed_by = 'gone' where job_id = %s",
        [suspect],
    )
    held = []

    async def look(exchange):
        held.append(leased(sql))
        await exchange.reply(503, b"")

    tei.fail(look, marker="SUSPECT", times=1)
    assert endings(drained(database, tei)) == {"indexed": 13}
    assert held == [1]


def test_an_interrupted_run_tells_what_it_did_and_gives_the_rest_back(sql, database, tei):
    postings(sql, 12)
    run = open_run(database, tei)

    def stop(number, wave, seconds):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as interrupted:
        drain(run, on_wave=stop)
    done = endings(interrupted.value.report).get("indexed", 0)
    assert done >= 4
    assert count(sql, "select count(*) from jobs where semantic_embedded_model is not null") == done
    assert (charged(sql), leased(sql)) == (0, 0)
    assert endings(drained(database, tei)) == ({"indexed": 12 - done} if done < 12 else {})
    assert_catalogue_comes_right(sql, database)


def test_a_lease_shorter_than_the_wave_is_kept_alive(sql, database, tei):
    """Held for more than two leases, and still ours."""
    postings(sql, 4)
    go_on = threading.Event()
    tei.fail(tei_faults.hold(go_on), marker="Engineer", times=1)
    threading.Timer(2.2, go_on.set).start()
    report = drained(database, tei, rules={"lease_seconds": 1})
    assert endings(report) == {"indexed": 4}


def test_a_run_that_slept_past_its_lease_reports_lost_and_changes_nothing(sql, database, tei):
    postings(sql, 4)
    thief = outbox(database, "thief")

    async def rob(exchange):
        expire_leases(sql)
        assert len(stages.claim(thief, 4).claims) == 4
        await exchange.reply(503, b"")

    tei.fail(rob, marker="Engineer", times=1)
    report = drained(database, tei)
    assert (endings(report), report.exit_code) == ({"lost": 4}, 0)
    assert count(sql, "select count(*) from job_semantic_chunks") == 0
    assert leased(sql) == 4
