"""Real workers, killed and stopped between and in all stages: nothing is lost, nothing needs a hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from freehire_embed.drill.checks import wait_until
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed_tests.catalogue import add_posting, count, entry, expire_leases
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.deployment import OLD, SERVED, environment
from freehire_embed_tests.paused_worker import POINTS
from freehire_embed_tests.test_cli import answer

POSTINGS = 6
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")


@pytest.fixture(scope="module")
def tei():
    with FaultyTei(width=WIDTH, model_id=SERVED) as running:
        yield running


@pytest.fixture
def deployed(database_url, tei, tmp_path):
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, **environment(database_url, tei.url, tmp_path), "EMBED_BATCH_SIZE": "2"}


@contextmanager
def halted(variables, point, times=1):
    """A worker that stands at `point`."""
    with subprocess.Popen(
        [sys.executable, "-m", "freehire_embed_tests.paused_worker", point, str(times)],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            assert worker.stdout.readline() == f"{point}\n", worker.stderr.read()
            yield worker
        finally:
            worker.kill()


def done(sql):
    return count(sql, "select count(*) from jobs where semantic_embedded_model = %s", OLD)


def nobody_is_connected(sql):
    return not count(
        sql,
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and application_name = 'freehire_embed'",
    )


def assert_the_next_run_finishes(sql, variables, left):
    assert answer(variables, "run")["outcomes"]["indexed"] == left
    assert done(sql) == POSTINGS
    assert count(sql, "select count(*) from job_semantic_chunks") == POSTINGS
    assert count(sql, "select count(*) from semantic_outbox") == 0


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_at_any_point_loses_nothing(sql, deployed, point):
    for _ in range(POSTINGS):
        add_posting(sql)
    with halted(deployed, point) as worker:
        worker.kill()
        worker.wait()
    wait_until(lambda: nobody_is_connected(sql), "Postgres has noticed")
    kept = done(sql)
    assert count(sql, "select count(*) from job_semantic_chunks") == kept
    assert count(sql, "select coalesce(sum(attempts), 0) from semantic_outbox") == 0
    assert count(sql, "select count(*) from semantic_outbox") == POSTINGS - kept
    expire_leases(sql)
    assert_the_next_run_finishes(sql, deployed, POSTINGS - kept)


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_stopped_at_any_point_gives_back_what_it_holds_at_once(sql, deployed, point):
    for _ in range(POSTINGS):
        add_posting(sql)
    with halted(deployed, point) as worker:
        worker.send_signal(signal.SIGTERM)
        # A wave's own thread stands still; it goes on when the run has already been told to stop.
        out, log = worker.communicate("\n", timeout=60)
    assert worker.returncode == 1, log
    assert json.loads(out.splitlines()[-1])["exit_reason"] == "stopped"
    assert count(sql, "select count(*) from semantic_outbox where claimed_at is not null") == 0
    assert count(sql, "select coalesce(sum(attempts), 0) from semantic_outbox") == 0
    kept = done(sql)
    assert json.loads(out.splitlines()[-1])["outcomes"]["indexed"] == kept
    assert_the_next_run_finishes(sql, deployed, POSTINGS - kept)


def test_a_posting_that_kills_its_worker_is_set_apart_and_named_and_the_innocent_are_embedded(sql, deployed):
    killer = add_posting(sql, posted_at="2026-06-01", description="<p>KILLER</p>")
    for day in range(1, POSTINGS):
        add_posting(sql, posted_at=f"2026-05-{day:02}")
    command = [sys.executable, "-m", "freehire_embed_tests.paused_worker", "kills"]
    for number in range(4):  # three times with others, then alone
        died = subprocess.run(command, env=deployed, capture_output=True, text=True, timeout=60)
        assert died.returncode == -signal.SIGKILL, died.stderr
        assert entry(sql, killer)["claims"] == number + 1
        expire_leases(sql)
    last = subprocess.run(command, env=deployed, capture_output=True, text=True, timeout=60)
    assert last.returncode == 1, last.stderr
    dead = entry(sql, killer)
    assert dead["failed_at"] is not None
    assert "without an outcome" in dead["last_error"]
    assert done(sql) == POSTINGS - 1
    assert count(sql, "select count(*) from semantic_outbox where failed_at is null") == 0
