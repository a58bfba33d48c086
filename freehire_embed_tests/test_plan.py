"""The dry run says what enqueue then does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freehire_embed.profiles import Profile
from freehire_embed.store.plan import make_plan
from freehire_embed_tests.catalogue import MODEL, add_posting, count, outbox

if TYPE_CHECKING:
    import psycopg

    from freehire_embed.store.database import Database

PROFILE = Profile(MODEL, ("example/tiny",), 8)


def stamp(sql: psycopg.Connection, job_id: int, model: str = MODEL, content_hash: str | None = None) -> None:
    sql.execute(
        "update jobs set semantic_embedded_model = %s, "
        "semantic_embedded_hash = coalesce(%s, content_hash) where id = %s",
        [model, content_hash, job_id],
    )


def some_of_everything(sql: psycopg.Connection) -> None:
    for _ in range(4):
        add_posting(sql)
    for model in ("a-model", "z-model"):
        stamp(sql, add_posting(sql), model)
    for _ in range(3):
        stamp(sql, add_posting(sql), content_hash="older")
    stamp(sql, add_posting(sql))
    stamp(sql, add_posting(sql, closed_at="2026-01-01"))
    stamp(sql, add_posting(sql, is_tech=None))
    add_posting(sql, closed_at="2026-01-01")


def test_the_counts_by_reason_are_those_of_the_enqueue_that_follows(
    database: Database, sql: psycopg.Connection
) -> None:
    some_of_everything(sql)
    plan = make_plan(database, PROFILE)
    report = outbox(database).enqueue()
    assert (plan.missing, plan.content, plan.by_model, plan.clear) == (4, 3, 2, 2)
    assert (report.missing, report.content, report.model, report.clear) == (4, 3, 2, 2)


def test_planning_writes_nothing(database: Database, sql: psycopg.Connection) -> None:
    some_of_everything(sql)
    make_plan(database, PROFILE)
    assert count(sql, "select count(*) from semantic_outbox") == 0
    assert count(sql, "select count(*) from semantic_models") == 0


def test_what_is_queued_already_is_told_apart_and_still_counted(
    database: Database, sql: psycopg.Connection
) -> None:
    add_posting(sql)
    outbox(database).enqueue()
    add_posting(sql)
    plan = make_plan(database, PROFILE)
    assert (plan.missing, plan.queued) == (2, 1)


def test_a_dead_letter_counts_as_blocked_until_its_content_changes(
    database: Database, sql: psycopg.Connection
) -> None:
    job_id = add_posting(sql)
    outbox(database).enqueue()
    sql.execute("update semantic_outbox set failed_at = now(), failed_hash = (select content_hash from jobs)")
    assert make_plan(database, PROFILE).dead == 1
    sql.execute("update jobs set content_hash = 'edited' where id = %s", [job_id])
    assert make_plan(database, PROFILE).dead == 0


def test_passages_are_estimated_from_the_texts_without_those_stored_already(
    database: Database, sql: psycopg.Connection
) -> None:
    long_text = "".join(f"<p>{'word ' * 300}</p>" for _ in range(3))
    for _ in range(10):
        add_posting(sql, description=long_text)
    add_posting(sql, description="")
    assert make_plan(database, PROFILE).passages == 30


def test_the_time_is_unknown_without_a_rate_and_follows_from_one(
    database: Database, sql: psycopg.Connection
) -> None:
    for _ in range(10):
        add_posting(sql)
    assert make_plan(database, PROFILE).seconds is None
    sql.execute(
        "insert into semantic_runs (run_id, target_model, started_at, last_wave_at, indexed) "
        "values ('r', %s, now() - interval '100 s', now(), 50)",
        [MODEL],
    )
    seconds = make_plan(database, PROFILE).seconds
    assert seconds is not None
    assert abs(seconds - 20) < 1


def a_run(sql: psycopg.Connection, name: str, began: int, ended: int, removed: int) -> None:
    """A run that worked from `began` to `ended` seconds ago."""
    sql.execute(
        "insert into semantic_runs (run_id, target_model, started_at, last_wave_at, removed) "
        "values (%s, %s, now() - %s * interval '1 s', now() - %s * interval '1 s', %s)",
        [name, MODEL, began, ended, removed],
    )


def test_a_rate_needs_a_minute_of_work_and_counts_no_idle_time(
    database: Database, sql: psycopg.Connection
) -> None:
    a_run(sql, "short", 1000, 999, 900)
    assert make_plan(database, PROFILE).rate_per_hour is None
    a_run(sql, "clock set back", 500, 510, 0)
    a_run(sql, "one lane", 400, 300, 100)
    a_run(sql, "another lane", 350, 201, 1000)
    rate = make_plan(database, PROFILE).rate_per_hour
    assert rate is not None
    assert abs(rate - 2000 / 200 * 3600) < 1


def test_with_nothing_to_do_no_time_is_needed(database: Database) -> None:
    plan = make_plan(database, PROFILE)
    assert (plan.passages, plan.seconds) == (0, 0.0)
