"""`search`, `similar` and `audit` as people and scripts see them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.settings import RULES, Settings
from freehire_embed_tests.catalogue import add_posting, count
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.deployment import NEW, OLD, SERVED, environment
from freehire_embed_tests.test_cli import answer, cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg


@pytest.fixture
def deployed(database_url: str, tmp_path: Path, sql: psycopg.Connection) -> Iterator[dict[str, str]]:
    """Five embedded postings of five companies, the last one private."""
    with FaultyTei(width=WIDTH, model_id=SERVED) as tei:
        variables = environment(database_url, tei.url, tmp_path)
        for number in range(5):
            add_posting(
                sql, title=f"Engineer {number}", company=f"Acme {number}", company_slug=f"acme-{number}",
                is_private=number == 4,
            )  # fmt: skip
        assert cli(variables, "run").returncode == 0
        yield variables


def test_a_search_is_narrowed_and_explained_beside_its_json(deployed: dict[str, str]) -> None:
    result = cli(deployed, "search", "bridges", "--company", "acme 2", "--since", "1d", "--explain", "--json")
    assert [hit["title"] for hit in json.loads(result.stdout)] == ["Engineer 2"]
    assert "recall 100%" in result.stderr
    assert answer(deployed, "search", "bridges", "--language", "de") == []
    assert len(answer(deployed, "search", "bridges", "--language", "EN")) == 4


def test_an_empty_question_is_refused(deployed: dict[str, str]) -> None:
    refused = cli(deployed, "search", "  ")
    assert (refused.returncode, "TEXT is empty" in refused.stderr) == (2, True)


def test_a_span_that_is_none_is_refused_with_what_would_do(deployed: dict[str, str]) -> None:
    result = cli(deployed, "search", "bridges", "--since", "lately")
    assert result.returncode == 2
    assert "write 2026-01-31, 12h or 7d" in result.stderr


def test_similar_shows_the_others_and_never_the_private_one(deployed: dict[str, str]) -> None:
    shown = answer(deployed, "similar", "1")
    assert {posting["title"] for posting in shown} == {"Engineer 1", "Engineer 2", "Engineer 3"}
    assert shown == sorted(shown, key=lambda posting: posting["distance"])
    lines = cli(deployed, "similar", "1", "--limit", "1").stdout.splitlines()
    assert len(lines) == 1
    assert shown[0]["url"] in lines[0]


def test_similar_refresh_computes_what_is_due(deployed: dict[str, str], sql: psycopg.Connection) -> None:
    assert answer(deployed, "similar", "--refresh")["computed"] == 5
    assert count(sql, "select count(*) from jobs where similar_computed_at is null") == 0
    assert "0 lists computed" in cli(deployed, "similar", "--refresh").stdout


def test_similar_needs_an_id_or_refresh_and_names_a_posting_that_is_not_there(
    deployed: dict[str, str],
) -> None:
    assert cli(deployed, "similar").returncode == 2
    assert cli(deployed, "similar", "1", "--refresh").returncode == 2
    result = cli(deployed, "similar", "99")
    assert (result.returncode, result.stderr.strip()) == (1, "freehire-embed: there is no posting 99")


def test_an_audit_finds_queues_and_is_clean_after_the_next_run(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    clean = cli(deployed, "audit")
    assert (clean.returncode, clean.stdout.splitlines()[-1]) == (0, "nothing is wrong")
    sql.execute("delete from job_semantic_chunks where job_id = 2")
    found = cli(deployed, "audit", "--sample", "0")
    assert found.returncode == 1
    assert found.stdout.startswith("1 postings stamped as embedded, have text and no chunks: 2\n")
    report = json.loads(cli(deployed, "audit", "--repair", "--json").stdout)
    assert report["findings"] == {"stamp_without_chunks": {"postings": 1, "examples": [2]}}
    assert report["requeued"] == 1
    assert cli(deployed, "run").returncode == 0
    assert cli(deployed, "audit").returncode == 0


def test_a_run_tells_what_the_server_cut(deployed: dict[str, str], sql: psycopg.Connection) -> None:
    add_posting(sql, description="我们正在寻找一位有经验的后端工程师，负责设计和维护分布式系统。" * 60)
    result = cli(deployed, "run")
    assert "1 passages cut by the server (1 zh)" in result.stdout
    assert count(sql, "select count(*) from semantic_runs where target_model = %s", OLD) == 2


def test_what_only_looks_follows_the_target_and_says_so(
    deployed: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    assert cli(deployed, "run", "--model", NEW).returncode == 0
    left_behind = {**deployed, "EMBED_MODEL": OLD}
    warning = f"EMBED_MODEL is {OLD}; the answer is about the target {NEW}"
    for command in (["status"], ["metrics"], ["similar", "1"], ["dead", "requeue", "--all"]):
        caplog.clear()
        assert cli(left_behind, *command).returncode == 0
        assert warning in caplog.messages
    assert answer(left_behind, "status", "--json")["target_model"] == NEW
    caplog.clear()
    assert cli({**deployed, "EMBED_MODEL": NEW}, "status").returncode == 0
    assert caplog.messages == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["dead", "show", "1" + "0" * 22],
        ["dead", "requeue", "1" + "0" * 22],
        ["dead", "requeue", "--posting", "1" + "0" * 22],
        ["dead", "requeue", "--older-than", "999999999999d"],
        ["dead", "requeue", "--cause", "caf\udce9"],
        ["dead", "list", "--limit", "1" + "0" * 22],
        ["similar", "1" + "0" * 22],
        ["search", "bridges", "--company", "caf\udce9"],
        ["search", "caf\udce9"],
        ["migrate", "--width", "2001"],
    ],
)
def test_what_postgres_could_not_take_is_a_usage_error(
    database_url: str, tmp_path: Path, arguments: list[str]
) -> None:
    result = cli(environment(database_url, "http://127.0.0.1:9", tmp_path), *arguments)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1


def test_settings_above_their_ceilings_are_lowered_to_what_a_run_can_take(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    variables = {**deployed, **dict.fromkeys(RULES, "1" + "0" * 20)}
    assert Settings.from_environment(variables).batch_size == RULES["EMBED_BATCH_SIZE"].ceiling
    add_posting(sql)
    assert answer(variables, "run")["outcomes"]["indexed"] == 1
