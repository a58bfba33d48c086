"""Postings of files in `jobs`: what is written, what is left alone, what is closed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from freehire_embed.cli.importing import ImportReport, load
from freehire_embed_tests.catalogue import add_posting, count

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import psycopg

    from freehire_embed.store.database import Database

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
