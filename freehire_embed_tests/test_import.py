"""Postings of files in `jobs`: what is written, what is left alone, what is closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import namedtuple_row
from pydantic import SecretStr

from freehire_embed.cli.importing import ImportReport, load
from freehire_embed.postings_file import ImportFileError
from freehire_embed.queries import SQL_DIR
from freehire_embed.store.database import Database
from freehire_embed.store.faults import DatabaseMisfit
from freehire_embed_tests.catalogue import add_posting, count
from freehire_embed_tests.deployment import environment
from freehire_embed_tests.test_cli import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Import = Callable[..., ImportReport]


def row(key: str, **fields: Any) -> dict[str, Any]:
    return {
        "source": "board",
        "external_id": key,
        "url": f"https://jobs.example/{key}",
        "title": f"Engineer {key}",
        "company": "Northwind",
        "description": f"<p>Work number {key}</p>",
        **fields,
    }


@pytest.fixture
def run_import(database: Database, tmp_path: Path) -> Import:
    def run(*rows: dict[str, Any] | str, close_missing: bool = False) -> ImportReport:
        path = tmp_path / "board.jsonl"
        path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows) + "\n")
        return load(database, [path], advance=lambda *_: None, close_missing=close_missing)

    return run


def versions(sql: psycopg.Connection) -> list[Any]:
    """Row versions: a row that was written anew has another one."""
    return sql.execute("select external_id, xmin::text, ctid::text from jobs order by 1").fetchall()


def test_the_columns_of_a_file_arrive_and_a_posting_is_eligible_by_default(
    run_import: Import, sql: psycopg.Connection
) -> None:
    report = run_import(row("1", posted_at="2026-01-02T03:04:05Z"), row("2", is_tech=False))
    assert (report.added, report.updated, report.unchanged, report.bad) == (2, 0, 0, 0)
    stored = sql.execute(
        "select title, company, company_slug, url, is_tech, posted_at::date::text, closed_at, content_hash is null "
        "from jobs order by external_id"
    ).fetchall()
    assert stored[0] == (
        "Engineer 1",
        "Northwind",
        "northwind",
        "https://jobs.example/1",
        True,
        "2026-01-02",
        None,
        False,
    )
    assert stored[1][4] is False


def test_the_same_file_again_writes_nothing(run_import: Import, sql: psycopg.Connection) -> None:
    rows = [row(str(n)) for n in range(5)]
    run_import(*rows)
    before = versions(sql)
    report = run_import(*rows)
    assert (report.added, report.updated, report.unchanged) == (0, 0, 5)
    assert versions(sql) == before


def test_only_the_edited_posting_is_updated_and_gets_another_content_hash(
    run_import: Import, sql: psycopg.Connection
) -> None:
    run_import(row("1"), row("2"))
    before = dict(sql.execute("select external_id, content_hash from jobs").fetchall())
    report = run_import(row("1"), row("2", description="<p>Other work</p>"))
    assert (report.updated, report.unchanged) == (1, 1)
    after = dict(sql.execute("select external_id, content_hash from jobs").fetchall())
    assert after["1"] == before["1"]
    assert after["2"] != before["2"]


def test_of_a_key_that_comes_twice_the_last_row_counts(run_import: Import, sql: psycopg.Connection) -> None:
    report = run_import(row("1", title="First"), row("1", title="Second"))
    assert report.added == 1
    assert sql.execute("select title from jobs").fetchall() == [("Second",)]


def test_what_is_gone_is_closed_only_on_request_and_only_within_the_files_sources(
    run_import: Import, sql: psycopg.Connection
) -> None:
    elsewhere = add_posting(sql, source="elsewhere")
    run_import(row("1"), row("2"))
    assert run_import(row("1")).closed == 0
    assert run_import(row("1"), close_missing=True).closed == 1
    closed = sql.execute("select external_id from jobs where closed_at is not null").fetchall()
    assert closed == [("2",)]
    assert count(sql, "select count(*) from jobs where id = %s and closed_at is null", elsewhere) == 1


def test_a_closed_posting_that_the_file_lists_as_open_is_opened_again(
    run_import: Import, sql: psycopg.Connection
) -> None:
    run_import(row("1"), row("2"))
    run_import(row("1"), close_missing=True)
    run_import(row("1"), row("2"), close_missing=True)
    assert count(sql, "select count(*) from jobs where closed_at is null") == 2


def test_with_a_bad_line_the_good_ones_are_kept_and_nothing_is_closed(
    run_import: Import, sql: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    run_import(row("1"), row("2"))
    report = run_import(row("3"), "{ not json", close_missing=True)
    assert (report.added, report.bad, report.closed) == (1, 1, 0)
    assert count(sql, "select count(*) from jobs where closed_at is null") == 3
    shown = capsys.readouterr().err
    assert "line 2: not valid JSON" in shown
    assert "nothing is closed" in shown


def test_a_row_that_postgres_refuses_is_named_by_its_key_and_its_neighbours_are_kept(
    run_import: Import, sql: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    sql.execute("alter table jobs add constraint no_seven check (external_id <> '7')")
    report = run_import(*(row(str(n), title="secret words") for n in range(10)))
    assert (report.added, report.bad) == (9, 1)
    shown = capsys.readouterr().err
    assert "board 7: Postgres refuses the row" in shown
    assert "secret words" not in shown


def test_postings_without_postgres_unfriendly_characters_arrive_as_they_are(
    run_import: Import, sql: psycopg.Connection
) -> None:
    run_import(row("1", title='Größe 北京 \\ " {a,b} NULL', description="line\n\ttab\\n 😀"))
    assert sql.execute("select title, description from jobs").fetchall() == [
        ('Größe 北京 \\ " {a,b} NULL', "line\n\ttab\\n 😀")
    ]


def test_rows_before_the_place_where_a_file_breaks_off_are_kept(
    run_import: Import, sql: psycopg.Connection, database: Database, tmp_path: Path
) -> None:
    run_import(row("9"))
    path = tmp_path / "board.json"
    path.write_text(json.dumps([row("1"), row("2"), row("3")])[:-9])
    with pytest.raises(ImportFileError, match="breaks off"):
        load(database, [path], advance=lambda *_: None, close_missing=True)
    assert sql.execute("select external_id from jobs where closed_at is null order by 1").fetchall() == [
        ("1",),
        ("2",),
        ("9",),
    ]


def test_behind_a_pooler_that_changes_connections_nothing_that_is_in_the_file_is_closed(
    database: Database, sql: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each transaction has a server connection of its own, and what another client left there."""
    add_posting(sql, source="board", external_id="gone")
    add_posting(sql, source="elsewhere", external_id="2")

    def elsewhere(database: Database, work: Callable[[Any], Any]) -> Any:
        with psycopg.connect(sql.info.dsn, password=sql.info.password, row_factory=namedtuple_row) as another:
            another.execute("create temporary table import_seen (source text, external_id text)")
            another.execute("insert into import_seen values ('elsewhere', '1')")
            return work(another)

    monkeypatch.setattr(Database, "transact", elsewhere)
    monkeypatch.setattr("freehire_embed.store.import_postings._BATCH", 2)
    path = tmp_path / "board.jsonl"
    path.write_text("".join(json.dumps(row(str(number))) + "\n" for number in range(5)))
    report = load(database, [path], advance=lambda *_: None, close_missing=True)
    assert (report.added, report.closed) == (5, 1)
    closed = sql.execute("select external_id from jobs where closed_at is not null").fetchall()
    assert closed == [("gone",)]


def test_an_import_leaves_nothing_behind_in_the_session(
    run_import: Import, database: Database, sql: psycopg.Connection
) -> None:
    run_import(row("1"), close_missing=True)
    assert count(sql, "select count(*) from pg_class where relname like 'import%%'") == 0
    assert count(sql, "select count(*) from pg_locks where locktype = 'advisory'") == 0


def test_keys_of_any_characters_are_told_apart_when_missing_ones_are_closed(
    run_import: Import, sql: psycopg.Connection
) -> None:
    keys = ["a\tb", "a\\tb", "\\N", "a\nb", "ä", "a\u0308", "北京", '"', "", " x"]
    rows = [row(key, external_id=key) for key in keys]
    run_import(*rows, row("gone"))
    assert run_import(*rows, close_missing=True).closed == 1
    assert sql.execute("select external_id from jobs where closed_at is not null").fetchall() == [("gone",)]


def test_a_worker_is_told_to_import_as_the_owner(
    database_url: str, sql: psycopg.Connection, tmp_path: Path
) -> None:
    sql.execute((SQL_DIR / "least_privilege.sql").read_bytes())
    role = f"importer_{sql.info.backend_pid}"
    sql.execute(f"create role {role} login in role freehire_embed_worker")
    path = tmp_path / "board.jsonl"
    path.write_text(json.dumps(row("1")) + "\n")
    try:
        with (
            Database(SecretStr(psycopg.conninfo.make_conninfo(database_url, user=role))) as worker,
            pytest.raises(DatabaseMisfit, match="import is for the owner") as refused,
        ):
            load(worker, [path], advance=lambda *_: None)
    finally:
        sql.execute(f"drop role {role}")
    assert "least_privilege" not in str(refused.value)


def test_a_batch_ends_before_large_postings_fill_the_memory(
    run_import: Import, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehire_embed.store.import_postings._BATCH_CHARACTERS", 1000)
    path = tmp_path / "board.jsonl"
    path.write_text("".join(json.dumps(row(str(n), description="x" * 400)) + "\n" for n in range(10)))
    steps: list[int] = []
    load(database, [path], advance=lambda done, *_: steps.append(done))
    assert steps == [3, 6, 9, 10]


def test_columns_that_are_not_taken_are_named_once_in_the_summary(run_import: Import) -> None:
    report = run_import(row("1", salary=1, team="x"), row("2", salary=2))
    assert report.line.endswith("columns not taken: salary, team")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--map", "title"], "write FIELD=COLUMN"),
        (["--map", "salary=pay"], "one of title, description"),
        (["--delimiter", ";;"], "is not one character"),
    ],
)
def test_an_option_that_cannot_be_is_a_usage_error(
    database_url: str, tmp_path: Path, arguments: list[str], word: str
) -> None:
    result = cli(environment(database_url, "http://127.0.0.1:9", tmp_path), "import", "x.csv", *arguments)
    assert (result.returncode, word in result.stderr) == (2, True)


def test_a_pipe_of_another_shape_is_imported(
    database_url: str, tmp_path: Path, sql: psycopg.Connection
) -> None:
    rows = "name;text;no\nBaker;bread;9007199254740993\nCook;soup;9007199254740992\n"
    command = [sys.executable, "-m", "freehire_embed", "import", "-", "--delimiter", ";", "--json"]
    command += ["--map", "title=name", "--map", "description=text", "--map", "external_id=no"]
    variables = {**os.environ, **environment(database_url, "http://127.0.0.1:9", tmp_path)}
    done = subprocess.run(command, env=variables, input=rows, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["added"] == 2, done.stderr
    assert sql.execute("select external_id from jobs order by 1").fetchall() == [
        ("9007199254740992",),
        ("9007199254740993",),
    ]
