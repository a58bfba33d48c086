"""The command line as operators and scripts see it: a process, its lines and its exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from freehire_embed.cli import main
from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.store.faults import DatabaseDown
from freehire_embed_tests.catalogue import add_posting, count
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.deployment import NEW, OLD, environment

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

    Finished = subprocess.CompletedProcess[str]

_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")


@pytest.fixture
def deployed(database_url: str, tei: FaultyTei, tmp_path: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, **environment(database_url, tei.url, tmp_path)}


def process(variables: dict[str, str], *arguments: str) -> Finished:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "freehire_embed", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)


def cli(variables: dict[str, str], *arguments: str) -> Finished:
    """The command in this process, which spares half a second of imports."""
    out, err = StringIO(), StringIO()
    with (
        patch.dict(os.environ, variables, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as exit_info,
    ):
        main(arguments)
    return subprocess.CompletedProcess(
        arguments, int(exit_info.value.code or 0), out.getvalue(), err.getvalue()
    )


def answer(variables: dict[str, str], *arguments: str) -> Any:
    """The JSON of a command that must succeed."""
    result = cli(variables, *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_a_file_becomes_vectors_and_a_question_finds_them(deployed: dict[str, str], tmp_path: Path) -> None:
    rows = [{"title": f"Engineer {n}", "description": f"<p>We build bridge {n}</p>"} for n in range(6)]
    rows.append({"title": "Nothing said", "description": "<p> </p>"})
    file = tmp_path / "board.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    assert answer(deployed, "import", str(file))["added"] == 7

    first = answer(deployed, "run")
    assert first["enqueued"]["missing"] == first["claimed"] == first["outcomes"]["indexed"] == 7
    assert (first["waves"], first["embedded"], first["no_text"]) == (2, 6, 1)
    assert (first["exit_code"], first["exit_reason"]) == (0, "nothing left to claim")

    second = answer(deployed, "run")
    assert (second["claimed"], second["embedded"], second["promoted"]) == (0, 0, False)

    status = answer(deployed, "status")
    assert status["coverage"] == {"eligible": 7, "covered": 7, "no_text": 1, "stale": 0}
    assert status["target_model"] == OLD
    assert status.keys() == {
        "target_model",
        "depth",
        "leased",
        "dead",
        "oldest_seconds",
        "coverage",
        "rate_per_hour",
        "eta_seconds",
    }

    hits = answer(deployed, "search", "who builds bridges", "--limit", "3")
    assert len(hits) == 3
    assert hits[0].keys() == {"job_id", "title", "company", "url", "distance", "chunk_index", "snippet"}
    assert hits[0]["snippet"].startswith("We build bridge")

    assert answer(deployed, "plan")["missing"] == 0


def test_a_run_in_a_log_tells_one_plain_line_a_wave_and_a_summary(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    for _ in range(6):
        add_posting(sql)
    result = process(deployed, "run", "--batch-size", "3")
    waves = [line for line in result.stderr.splitlines() if line.startswith("wave ")]
    assert [line[:27] for line in waves] == ["wave 1: 3 claimed: 3 indexe", "wave 2: 3 claimed: 3 indexe"]
    assert "\x1b" not in result.stderr + result.stdout
    assert len(result.stdout.splitlines()) == 1
    assert "enqueued 6 missing; claimed 6 in 2 waves: 6 indexed" in result.stdout


def test_a_run_reports_the_concurrency_it_may_use_and_the_requests_it_had_in_flight(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    idle = answer({**deployed, "EMBED_ADAPTIVE": "false"}, "run", "--concurrency", "3")
    assert (idle["concurrency"], idle["in_flight_mean"], idle["in_flight_peak"]) == (3, 0, 0)
    add_posting(sql)
    alone = answer({**deployed, "EMBED_ADAPTIVE": "false"}, "run", "--concurrency", "3")
    assert (alone["concurrency"], alone["in_flight_mean"], alone["in_flight_peak"]) == (3, 1, 1)
    add_posting(sql)
    assert "requests in flight 1.0 on average, 1 at most" in cli(deployed, "run").stdout


def test_a_poisoned_posting_fails_the_run_after_the_others_are_committed(
    deployed: dict[str, str], tei: FaultyTei, sql: psycopg.Connection
) -> None:
    poisoned = add_posting(sql, description="POISON ivy garden")
    for _ in range(3):
        add_posting(sql)
    tei.fail(tei_faults.status(422), marker="POISON")
    result = cli(deployed, "run", "--json")
    counters = json.loads(result.stdout)
    assert result.returncode == counters["exit_code"] == 1
    assert (counters["outcomes"]["indexed"], counters["outcomes"]["failed"]) == (3, 1)
    assert f"posting {poisoned}:" in counters["errors"][0]
    assert "ivy garden" not in result.stdout + result.stderr


def test_a_depth_that_cannot_be_counted_for_the_display_stops_no_run(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    for _ in range(6):
        add_posting(sql)
    with patch(
        "freehire_embed.cli.run.semantic_outbox_claimable_depth",
        side_effect=DatabaseDown("the server is gone"),
    ):
        counters = answer(deployed, "run", "--batch-size", "3")
    assert (counters["waves"], counters["outcomes"]["indexed"], counters["exit_code"]) == (2, 6, 0)


def test_a_run_that_cannot_start_still_ends_with_its_line_of_json(deployed: dict[str, str]) -> None:
    for variables, code, word in (
        ({"EMBED_MODEL": "nobody/knows"}, 2, "EMBED_MODEL"),
        ({"DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:9/d"}, 1, "DATABASE_URL"),
    ):
        result = cli({**deployed, **variables}, "run", "--json")
        counters = json.loads(result.stdout)
        assert result.returncode == counters["exit_code"] == code
        assert word in counters["exit_reason"]
        assert word in result.stderr
        assert "hunter2" not in result.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_stop_gives_its_claims_back(
    deployed: dict[str, str], tei: FaultyTei, sql: psycopg.Connection, number: signal.Signals
) -> None:
    for _ in range(4):
        add_posting(sql)
    tei.fail(tei_faults.hang, after=1)
    running = subprocess.Popen(
        [sys.executable, "-m", "freehire_embed", "run", "--json"],
        env=deployed,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert tei.arrived.wait(30)
        while tei.requests < 2:  # the preflight's probe comes first
            tei.arrived.clear()
            assert tei.arrived.wait(30)
        running.send_signal(number)
        out, err = running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == 1
    assert "stopped: gave back 4 entries" in err
    assert json.loads(out)["exit_reason"] == "stopped"
    assert count(sql, "select count(*) from semantic_outbox where claimed_at is null and attempts = 0") == 4


def test_each_misuse_is_one_line_that_names_the_setting_and_exit_code_2(
    deployed: dict[str, str], empty_database_url: str, sql: psycopg.Connection, tmp_path: Path
) -> None:
    add_posting(sql)
    (tmp_path / "postings.xlsx").touch()
    misuses: list[tuple[dict[str, str], list[str], str]] = [
        ({}, ["run", "--no-such-option"], "--no-such-option"),
        ({}, ["search"], "TEXT"),
        ({"EMBED_MODEL": "nobody/knows"}, ["run"], "EMBED_MODEL"),
        ({"EMBED_PROFILES": str(tmp_path)}, ["run"], "EMBED_PROFILES"),
        ({"DATABASE_URL": "u:hunter2"}, ["run"], "DATABASE_URL"),
        ({"DATABASE_URL": empty_database_url}, ["run"], "freehire-embed migrate"),
        ({"EMBED_URL": "ftp://somewhere/embed"}, ["run"], "EMBED_URL"),
        ({"EMBED_MODEL": "intfloat/multilingual-e5-base-chunked-v1"}, ["run"], "EMBED_MODEL"),
        ({}, ["import", str(tmp_path / "postings.xlsx")], "postings.xlsx"),
        ({}, ["import", str(tmp_path / "gone.jsonl")], "gone.jsonl"),
        ({}, ["models", "promote", "nobody/knows"], "nobody/knows"),
        ({}, ["demo"], "DATABASE_URL"),
    ]
    for variables, arguments, word in misuses:
        result = cli({**deployed, **variables}, *arguments)
        assert result.returncode == 2, (arguments, result.stderr)
        assert len(result.stderr.splitlines()) == 1, result.stderr
        assert word in result.stderr
        assert "hunter2" not in result.stderr
        assert result.stdout == ""
    assert count(sql, "select count(*) from semantic_outbox") == 0
    assert count(sql, "select count(*) from semantic_models") == 0


def test_what_is_merely_down_or_foreign_stops_a_run_before_it_writes(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    add_posting(sql)
    down = process({**deployed, "DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:9/d"}, "run")
    assert (down.returncode, len(down.stderr.splitlines())) == (1, 1)
    assert "DATABASE_URL" in down.stderr
    assert "hunter2" not in down.stderr
    with FaultyTei(width=WIDTH, model_id="example/other", api_key="right") as other:
        address = {"EMBED_URL": other.url}
        wrong_key = cli({**deployed, **address, "EMBED_API_KEY": "letmein"}, "run")
        wrong_model = cli({**deployed, **address, "EMBED_API_KEY": "right"}, "run")
    assert (wrong_key.returncode, wrong_model.returncode) == (2, 2)
    assert "EMBED_API_KEY" in wrong_key.stderr
    assert "letmein" not in wrong_key.stderr
    assert "example/other" in wrong_model.stderr
    assert count(sql, "select count(*) from semantic_outbox") == 0
    assert count(sql, "select count(*) from semantic_models") == 0


def test_an_unreachable_server_is_exit_code_1_for_run_and_search(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    answer(deployed, "run")
    add_posting(sql)
    nowhere = {**deployed, "EMBED_URL": "http://127.0.0.1:9/embed"}
    for arguments in (["run"], ["search", "bridges"]):
        result = cli(nowhere, *arguments)
        assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
        assert "EMBED_URL" in result.stderr
    assert count(sql, "select count(*) from semantic_outbox") == 0


def test_a_new_model_string_becomes_the_target_and_the_old_one_is_refused_until_promoted(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    add_posting(sql)
    assert answer(deployed, "run")["promoted"]
    assert answer(deployed, "plan", "--model", NEW)["by_model"] == 1
    again = answer(deployed, "run", "--model", NEW)
    assert (again["target_model"], again["enqueued"]["model"], again["outcomes"]["indexed"]) == (NEW, 1, 1)
    refused = cli(deployed, "run")
    assert refused.returncode == 2
    assert "superseded" in refused.stderr
    assert [each["identity"] for each in answer(deployed, "models", "list")] == [NEW, OLD]
    assert cli(deployed, "models", "promote", OLD).returncode == 0
    assert answer(deployed, "run")["enqueued"]["model"] == 1


def test_migrate_works_on_an_empty_database_and_doctor_agrees(
    deployed: dict[str, str], empty_database_url: str
) -> None:
    empty = {**deployed, "DATABASE_URL": empty_database_url}
    assert cli(empty, "doctor").returncode == 1
    first = cli(empty, "migrate", "--width", str(WIDTH))
    assert (first.returncode, "applying 0001_jobs" in first.stderr) == (0, True)
    assert "nothing to do" in cli(empty, "migrate").stdout
    healthy = cli(empty, "doctor")
    assert healthy.returncode == 0, healthy.stdout
    assert cli(empty, "migrate", "--width", "99").returncode == 2


def test_metrics_are_prometheus_text(deployed: dict[str, str], sql: psycopg.Connection) -> None:
    add_posting(sql)
    cli(deployed, "run")
    add_posting(sql)
    lines = cli(deployed, "metrics").stdout.splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert "freehire_embed_postings_stale 1" in samples
    assert "freehire_embed_postings_indexed_total 1" in samples
    assert all(re.fullmatch(r'freehire_embed_\w+(\{identity="[^"]+"\})? [0-9.]+', line) for line in samples)


def test_a_number_that_cannot_be_read_is_replaced_with_a_warning(deployed: dict[str, str]) -> None:
    result = process({**deployed, "EMBED_LEASE_SECONDS": "soon"}, "run")
    assert result.returncode == 0
    assert "EMBED_LEASE_SECONDS" in result.stderr


def test_help_and_usage_are_there_without_any_setting() -> None:
    bare = {name: os.environ[name] for name in _KEPT if name in os.environ}
    listed = process(bare, "--help")
    assert listed.returncode == 0
    assert "doctor" in listed.stdout
    nothing = process(bare)
    assert nothing.returncode == 2
    assert nothing.stderr.startswith("Usage: freehire-embed")
