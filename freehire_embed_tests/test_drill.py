"""The drill kit itself: it passes on what is sound, fails on what is not, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psycopg
import pytest
from pydantic import SecretStr

from freehire_embed.drill import kit
from freehire_embed.drill.checks import DrillStuck, at_most, equal
from freehire_embed.drill.kit import DRILLS, run_drills
from freehire_embed.drill.wire import Wire
from freehire_embed_tests.conftest import _in

_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")


def scratch_databases(server):
    with psycopg.connect(server) as connection:
        rows = connection.execute("select datname from pg_database where datname like 'freehire_drill%'")
        return rows.fetchall()


def drill(server, *arguments):
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "freehire_embed", "drill", *arguments],
        env={**kept, "DATABASE_URL": _in(server, "postgres")},
        capture_output=True,
        text=True,
        timeout=180,
    )


def test_drills_run_beside_the_database_and_leave_nothing_behind(server):
    ran = drill(server, "stop", "restart")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "all as expected" in ran.stdout
    assert "FAILED" not in ran.stdout
    assert scratch_databases(server) == []


def test_drills_report_as_json(server):
    ran = drill(server, "swap", "balancer", "--json")
    report = json.loads(ran.stdout)
    assert [each["drill"] for each in report] == ["swap", "balancer"]
    assert all(each["ok"] for each in report), report
    assert all(check.keys() == {"what", "expected", "happened", "ok"} for check in report[0]["checks"])


def test_a_drill_that_fails_or_gets_stuck_is_told_and_the_others_go_on(server, monkeypatch):
    def unsound(ground):
        ground.begin(3)
        return [equal("indexed", 3, ground.look().indexed), at_most("seconds", 1, 0.5, " s")]

    def stuck(ground):
        raise DrillStuck("not within 60 s: the moon")

    monkeypatch.setitem(kit.DRILLS, "poison", unsound)
    monkeypatch.setitem(kit.DRILLS, "outage", stuck)
    reports = list(run_drills(["poison", "outage"], SecretStr(_in(server, "postgres"))))
    assert [report.ok for report in reports] == [False, False]
    assert [check.ok for check in reports[0].checks] == [False, True]
    assert "the moon" in reports[1].checks[0].happened
    assert scratch_databases(server) == []


def test_an_unknown_drill_is_misuse_and_names_the_known_ones(server):
    ran = drill(server, "fire")
    assert ran.returncode == 2
    assert all(name in ran.stderr for name in DRILLS)


def test_a_role_that_may_create_no_database_is_told_so(server):
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("create role modest login")
    url = psycopg.conninfo.make_conninfo(_in(server, "postgres"), user="modest")
    with pytest.raises(Exception, match="CREATEDB"):
        next(run_drills(["swap"], SecretStr(url)))


def test_a_wire_passes_everything_and_can_be_cut_and_refused(database_url):
    with Wire(database_url) as wire:
        with psycopg.connect(wire.url, autocommit=True) as connection:
            assert connection.execute("select %s::int + 1", [1]).fetchone() == (2,)
            assert wire.statements == ["select $1::int + 1"]
            assert wire.cut() == 1
            with pytest.raises(psycopg.OperationalError):
                connection.execute("select 1")
        with wire.refuse(), pytest.raises(psycopg.OperationalError):
            psycopg.connect(wire.url)
        psycopg.connect(wire.url).close()
