"""Postgres fails in every way it has: the right entry is charged or none, and the counters add up to the claims."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress

import psycopg
import pytest
from pydantic import SecretStr

from freehire_embed.domain import HaltKind
from freehire_embed.drill import tei_faults
from freehire_embed.drill.checks import wait_until
from freehire_embed.drill.wire import Phase, Wire
from freehire_embed.local import postgres
from freehire_embed.migrate import migrate
from freehire_embed.store.database import Database
from freehire_embed_tests.bench import (
    assert_catalogue_comes_right,
    assert_every_vector_belongs,
    charged,
    drained,
    endings,
    leased,
    server,
)
from freehire_embed_tests.catalogue import add_posting, count, entry, expire_leases, outbox, stamp
from freehire_embed_tests.conftest import WIDTH

_number = itertools.count(1)


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


@contextmanager
def broken(sql, table, event, sqlstate, *, when="true", first=None):
    """Writes to `table` for which `when` holds raise `sqlstate`: always, or only the `first` times."""
    name = f"break_{next(_number)}"
    counted = f"and nextval('{name}') <= {first}" if first else ""
    sql.execute(
        f"create sequence {name}; "
        f"create function {name}() returns trigger language plpgsql as $$ begin "
        f"if {when} {counted} then raise exception 'broken on purpose' using errcode = '{sqlstate}'; end if; "
        "return new; end $$; "
        f"create trigger {name} before {event} on {table} for each row execute function {name}()"
    )
    yield
    sql.execute(f"drop trigger {name} on {table}")


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03", "57P01", "08006"])
def test_what_may_go_through_next_time_is_tried_again(sql, database, tei, sqlstate):
    postings(sql, 6)
    with broken(sql, "job_semantic_chunks", "insert", sqlstate, first=2):
        report = drained(database, tei)
    assert endings(report) == {"indexed": 6}
    assert (report.total.halt, report.exit_code) == (None, 0)


@pytest.mark.parametrize(
    ("sqlstate", "exit_code"),
    [("53100", 1), ("53200", 1), ("57014", 1), ("58030", 1), ("25006", 1), ("42501", 2), ("55000", 2)],
)
def test_what_is_no_rows_fault_gives_everything_back(sql, database, tei, sqlstate, exit_code):
    """Disk full, out of memory, cancelled, I/O error, read-only; no right, wrong state."""
    postings(sql, 6)
    with broken(sql, "jobs", "update", sqlstate):
        report = drained(database, tei)
    assert set(endings(report)) == {"released"}
    assert report.exit_code == exit_code
    assert (charged(sql), leased(sql)) == (0, 0)
    assert_catalogue_comes_right(sql, database)


@pytest.mark.parametrize("sqlstate", ["23514", "23505", "22003", "54000", "P0001", "XX001"])
def test_a_row_that_postgres_refuses_is_found_by_halves_and_alone_charged(sql, wire, far, tei, sqlstate):
    bad = postings(sql, 16)[5]
    with broken(sql, "job_semantic_chunks", "insert", sqlstate, when=f"new.job_id = {bad}"):
        report = drained(far, tei, EMBED_BATCH_SIZE="16")
    assert endings(report) == {"indexed": 15, "dead_lettered" if sqlstate == "XX001" else "failed": 1}
    assert report.exit_code == 1
    assert entry(sql, bad)["attempts"] == 1
    assert stamp(sql, bad) == (None, None)
    assert f"posting {bad}: " in report.total.errors[0]
    commits = sum(
        "for no key update" in s or "closed\n" in s or s.startswith("select o.id, j.id")
        for s in wire.statements
    )
    transactions = 1 + 2 * math.log2(16)
    repeats = 3 if sqlstate == "23505" else 1
    assert commits <= transactions * repeats
    assert_every_vector_belongs(sql, far)


def test_a_real_constraint_charges_the_row_that_breaks_it(sql, database, tei):
    bad = postings(sql, 4)[1]
    sql.execute(f"alter table job_semantic_chunks add constraint odd check (job_id <> {bad})")
    assert endings(drained(database, tei)) == {"indexed": 3, "failed": 1}
    assert "odd" in entry(sql, bad)["last_error"]


def test_a_table_that_refuses_every_row_charges_nobody(sql, database, tei):
    postings(sql, 16)
    with broken(sql, "job_semantic_chunks", "insert", "23514"):
        report = drained(database, tei, EMBED_BATCH_SIZE="16")
    assert endings(report) == {"released": 16}
    assert report.exit_code == 2
    assert charged(sql) == 0


def test_what_was_committed_before_the_database_fell_is_reported_indexed(sql, database, tei):
    """The wave is split for a bad row; one half is in when the disk is full."""
    last = postings(sql, 4)[3]
    bad = f"new.job_id = {last}"
    with (
        broken(sql, "job_semantic_chunks", "insert", "23514", when=bad, first=1),
        broken(sql, "job_semantic_chunks", "insert", "53100", when=bad),
    ):
        report = drained(database, tei)
    assert endings(report) == {"indexed": 2, "released": 2}
    assert report.exit_code == 1
    assert charged(sql) == 0


def test_bookkeeping_that_fails_is_counted_and_not_fatal(sql, database, tei):
    postings(sql, 3)
    poisoned = add_posting(sql, description="POISON")
    tei.fail(tei_faults.status(422), marker="POISON")
    with broken(sql, "semantic_outbox", "update", "P0001", when="new.last_error <> ''"):
        report = drained(database, tei)
    assert endings(report) == {"indexed": 3, "abandoned": 1}
    assert report.total.halt.kind is HaltKind.CONFIG
    assert entry(sql, poisoned)["attempts"] == 0


def test_a_reason_that_postgres_cannot_hold_is_booked_all_the_same(sql, database, tei):
    poisoned = add_posting(sql, description="POISON")
    tei.fail(tei_faults.status(422, message="less\0than"), marker="POISON")
    assert endings(drained(database, tei)) == {"failed": 1}
    assert "less than" in entry(sql, poisoned)["last_error"]


def test_what_is_queued_is_worked_when_no_more_can_be_queued(sql, database, tei):
    done = postings(sql, 2)
    outbox(database).enqueue()
    postings(sql, 1)
    with broken(sql, "semantic_outbox", "insert", "XX001"):
        report = drained(database, tei)
    assert endings(report) == {"indexed": 2}
    assert report.exit_code == 2
    assert all(stamp(sql, job_id)[0] for job_id in done)


def test_a_deadlock_with_a_writer_on_jobs_is_tried_again(sql, database, database_url, tei):
    first, second = sorted(postings(sql, 2))
    with psycopg.connect(database_url) as writer:
        writer.execute("set deadlock_timeout = '30s'")  # so that ours is the one that gets noticed
        writer.execute("update jobs set updated_at = now() where id = %s", [second])
        reports = []
        run = threading.Thread(target=lambda: reports.append(drained(database, tei)))
        run.start()
        wait_until(lambda: count(sql, "select count(*) from pg_locks where not granted") > 0, "ours waits")
        writer.execute("update jobs set updated_at = now() where id = %s", [first])
        writer.commit()
        run.join(60)
    assert endings(reports[0]) == {"indexed": 2}
    assert reports[0].exit_code == 0


def test_a_serialization_failure_is_tried_again(sql, database_url, tei):
    """Under "repeatable read", a row that changed since the snapshot cannot be locked."""
    postings(sql, 2)
    sql.execute(f"alter database {sql.info.dbname} set default_transaction_isolation = 'repeatable read'")
    with Database(SecretStr(database_url)) as database, psycopg.connect(database_url) as writer:
        writer.execute("update jobs set updated_at = now()")
        reports = []
        run = threading.Thread(target=lambda: reports.append(drained(database, tei)))
        run.start()
        wait_until(lambda: count(sql, "select count(*) from pg_locks where not granted") > 0, "ours waits")
        writer.commit()
        run.join(60)
    assert endings(reports[0]) == {"indexed": 2}
    assert reports[0].exit_code == 0


def test_a_statement_that_runs_out_of_time_gives_everything_back(sql, database_url, tei):
    postings(sql, 2)
    sql.execute(f"alter database {sql.info.dbname} set statement_timeout = '500ms'")
    with Database(SecretStr(database_url)) as database, psycopg.connect(database_url) as writer:
        writer.execute("update jobs set updated_at = now()")
        report = drained(database, tei)
        writer.rollback()
        assert endings(report) == {"released": 2}
        assert "statement timeout" in report.total.halt.reason
        assert (charged(sql), leased(sql), report.exit_code) == (0, 0, 1)
        assert_catalogue_comes_right(sql, database)


def test_a_database_that_turns_read_only_charges_nobody(sql, database_url, tei):
    postings(sql, 4)
    name = sql.info.dbname

    async def turn_read_only(exchange):
        sql.execute(f"alter database {name} set default_transaction_read_only = on")
        sql.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
        await exchange.reply(503, b"")

    with Database(SecretStr(database_url), patience_seconds=5) as database:
        tei.fail(turn_read_only, marker="Engineer", times=1)
        report = drained(database, tei)
    assert report.exit_code == 1
    assert endings(report) == {"abandoned": 4}
    assert charged(sql) == 0
    sql.execute(f"alter database {name} reset default_transaction_read_only")
    with Database(SecretStr(database_url)) as database:
        assert_catalogue_comes_right(sql, database)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory):
    """An embedded server of this module's own, to be restarted and damaged."""
    state = tmp_path_factory.mktemp("own-server")
    url = postgres.start(state)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("alter system set fsync = off")
        connection.execute("select pg_reload_conf()")
    with Database(SecretStr(url)) as database:
        migrate(database, WIDTH)
    yield state, url
    postgres.release(state)


def stop(state):
    pid_file = state / "postgres" / "postmaster.pid"
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGINT)
    wait_until(lambda: not pid_file.exists(), "the server has stopped")


def test_a_server_restarted_in_mid_run_costs_nothing(own_server, tei):
    state, url = own_server
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("truncate jobs cascade")
        postings(sql, 6)

    async def restart(exchange):
        stop(state)
        postgres.start(state)
        await exchange.reply(503, b"")

    tei.fail(restart, marker="Engineer", times=1)
    with Database(SecretStr(url)) as database:
        report = drained(database, tei)
        with psycopg.connect(url, autocommit=True) as sql:
            assert endings(report) == {"indexed": 6}
            assert charged(sql) == 0
            assert_catalogue_comes_right(sql, database)


@pytest.fixture
def small_disk(own_server, tmp_path):
    """A tablespace of four megabytes on the own server, where the vectors lie."""
    state, url = own_server
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", tmp_path], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here: no disk can be filled")
    try:
        owner = (state / "postgres").stat()
        os.chown(tmp_path, owner.st_uid, owner.st_gid)
        with psycopg.connect(url, autocommit=True) as sql:
            sql.execute("truncate jobs cascade")
            sql.execute(f"create tablespace small location '{tmp_path}'")
            sql.execute("alter table job_semantic_chunks set tablespace small")
            yield sql
            sql.execute("alter table job_semantic_chunks set tablespace pg_default")
            sql.execute("drop tablespace small")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_disk_that_is_really_full_is_named_and_charges_nobody(own_server, small_disk, tei):
    _, url = own_server
    sql = small_disk
    postings(sql, 4)
    sql.execute("create table ballast (text text) tablespace small")
    sql.execute("alter table ballast alter text set storage external")
    for _ in range(1000):
        with suppress(psycopg.errors.DiskFull):
            sql.execute("insert into ballast values (repeat('x', 8000))")
    with Database(SecretStr(url)) as database:
        report = drained(database, tei)
        assert endings(report) == {"released": 4}
        assert report.total.halt.reason.startswith("the server's disk is full: could not extend file")
        assert (report.exit_code, charged(sql), leased(sql)) == (1, 0, 0)
        sql.execute("drop table ballast")
        assert_catalogue_comes_right(sql, database)


def test_a_commit_that_a_failover_lost_is_done_again(own_server):
    """The server that answers after the failover never came as far as the transaction that is asked about."""
    state, url = own_server
    data, before = state / "postgres", state / "before"
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("truncate jobs cascade")
        ids = postings(sql, 3)
    stop(state)
    subprocess.run(["cp", "-a", data, before], check=True)
    postgres.start(state)
    with Wire(url) as wire, Database(SecretStr(wire.url)) as database:
        queue = outbox(database)
        wire.cut_at("insert into semantic_outbox", Phase.ANSWERED, commit=True)
        reports = []
        enqueue = threading.Thread(target=lambda: reports.append(queue.enqueue()))
        enqueue.start()
        assert wire.was_cut.wait(20)
        with wire.refuse():
            stop(state)
            subprocess.run(["rm", "-r", data], check=True)
            before.rename(data)
            postgres.start(state)
        enqueue.join(60)
        with psycopg.connect(url, autocommit=True) as sql:
            assert sorted(sql.execute("select job_id from semantic_outbox").fetchall()) == [(i,) for i in ids]
    assert [report.missing for report in reports] == [3]


def test_a_column_whose_type_is_changed_in_mid_run_ends_no_run(sql, database, tei):
    """Postgres refuses a prepared statement whose result has another type by now."""
    postings(sql, 14)

    async def change(exchange):
        sql.execute("alter table jobs alter column title type varchar(900)")
        await exchange.reply(503, b"")

    tei.fail(change, marker="Engineer", after=9, times=1)
    report = drained(database, tei, EMBED_BATCH_SIZE="1")
    assert endings(report) == {"indexed": 14}
    assert report.exit_code == 0


def test_a_page_that_is_really_damaged_costs_its_own_posting_only(own_server, tei):
    """The text of one posting lies in a damaged page of the TOAST table (SQLSTATE XX001)."""
    state, url = own_server
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("truncate jobs cascade")
        good = postings(sql, 5)
        bad = add_posting(sql)
        sql.execute(
            "update jobs set description = (select string_agg(md5(i::text), ' ') from generate_series(1, 300) i) "
            "where id = %s",
            [bad],
        )
        sql.execute("checkpoint")
        path, blocks = sql.execute(
            "select pg_relation_filepath(reltoastrelid), pg_relation_size(reltoastrelid) / 8192 "
            "from pg_class where oid = 'jobs'::regclass"
        ).fetchone()
    stop(state)
    with (state / "postgres" / path).open("r+b") as file:
        file.write(b"\xde\xad\xbe\xef" * 2048 * blocks)
    postgres.start(state)
    with Database(SecretStr(url)) as database, psycopg.connect(url, autocommit=True) as sql:
        report = drained(database, tei)
        assert endings(report) == {"indexed": 5, "dead_lettered": 1}
        assert "XX001" in entry(sql, bad)["last_error"]
        assert all(stamp(sql, job_id)[0] for job_id in good)
        add_posting(sql)
        expire_leases(sql)
        assert endings(drained(database, tei)) == {"indexed": 1}


def test_a_claim_that_cannot_be_made_does_not_undo_the_waves_in_hand(sql, database, tei):
    """The second wave cannot be claimed; the first one is at the server then, and is committed all the same."""
    first = postings(sql, 8)[:4]
    bad = f"new.claims > 0 and new.job_id not in ({', '.join(map(str, first))})"
    go_on = threading.Event()
    tei.fail(tei_faults.hold(go_on), marker="Engineer", times=1)
    with broken(sql, "semantic_outbox", "update", "XX001", when=bad):
        threading.Timer(1, go_on.set).start()
        report = drained(database, tei)
    assert endings(report) == {"indexed": 4}
    assert report.exit_code == 2
    assert all(stamp(sql, job_id)[0] for job_id in first)


def test_damage_that_several_postings_meet_when_they_are_written_is_charged_to_none(sql, database, tei):
    ids = postings(sql, 8)
    bad = f"new.job_id in ({ids[2]}, {ids[5]})"
    with broken(sql, "job_semantic_chunks", "insert", "XX001", when=bad):
        report = drained(database, tei, EMBED_BATCH_SIZE="8")
    assert endings(report) == {"indexed": 6, "released": 2}
    assert (report.exit_code, charged(sql)) == (2, 0)
    assert_catalogue_comes_right(sql, database)
