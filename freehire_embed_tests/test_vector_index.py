"""The vector index can go for a while and come back, and nobody is in doubt about its state."""

from __future__ import annotations

import threading

import psycopg
import pytest
from pydantic import SecretStr

from freehire_embed.migrate import migrate
from freehire_embed.store import vector_index
from freehire_embed.store.database import Database
from freehire_embed.store.faults import DatabaseMisfit
from freehire_embed_tests.catalogue import add_posting
from freehire_embed_tests.conftest import WIDTH


def add_vectors(sql: psycopg.Connection, rows: int) -> None:
    job_id = add_posting(sql)
    sql.execute(
        "insert into job_semantic_chunks (job_id, chunk_index, embedding) "
        "select %s, n, array[n, 1, 1, 1, 1, 1, 1, 1]::real[]::vector from generate_series(0, %s) n",
        [job_id, rows - 1],
    )


def test_a_migrated_database_has_one_valid_index(database: Database) -> None:
    state = vector_index.look(database)
    assert state.valid == (vector_index.NAME,)
    assert (state.invalid, state.building, state.rows) == ((), (), 0)


def test_a_dropped_index_is_not_there_and_a_built_one_is_the_same_as_before(
    database: Database, sql: psycopg.Connection
) -> None:
    def definition() -> str:
        row = sql.execute(
            "select indexdef from pg_indexes where indexname = %s", [vector_index.NAME]
        ).fetchone()
        assert row
        return str(row[0])

    before = definition()
    assert vector_index.drop(database) == [vector_index.NAME]
    assert vector_index.look(database).valid == ()
    assert vector_index.drop(database) == []
    assert vector_index.build(database)
    assert definition() == before
    assert not vector_index.build(database)


def test_what_a_build_that_failed_left_behind_is_told_and_replaced(
    database: Database, sql: psycopg.Connection
) -> None:
    sql.execute("update pg_index set indisvalid = false where indexrelid = %s::regclass", [vector_index.NAME])
    state = vector_index.look(database)
    assert (state.valid, state.invalid) == ((), (vector_index.NAME,))
    assert vector_index.build(database)
    state = vector_index.look(database)
    assert (state.valid, state.invalid) == ((vector_index.NAME,), ())


def test_a_rest_beside_a_valid_index_is_dropped_and_nothing_built(
    database: Database, sql: psycopg.Connection
) -> None:
    sql.execute("create index rest on job_semantic_chunks using hnsw (embedding vector_cosine_ops)")
    sql.execute("update pg_index set indisvalid = false where indexrelid = 'rest'::regclass")
    assert not vector_index.build(database)
    state = vector_index.look(database)
    assert (state.valid, state.invalid) == ((vector_index.NAME,), ())


def test_migrating_brings_no_second_index_where_there_is_one_of_another_name(
    database: Database, sql: psycopg.Connection
) -> None:
    vector_index.drop(database)
    sql.execute("create index theirs on job_semantic_chunks using hnsw (embedding vector_cosine_ops)")
    sql.execute("delete from freehire_embed_migrations where name like '%_job_semantic_chunks_embedding'")
    assert len(migrate(database, WIDTH)) == 1
    assert vector_index.look(database).valid == ("theirs",)


def test_the_memory_for_a_build_is_the_graph_s(database: Database, sql: psycopg.Connection) -> None:
    add_vectors(sql, 100)
    state = vector_index.look(database)
    assert state.rows == 100
    assert state.graph_bytes == 100 * (4 * WIDTH + 800)
    assert state.fits


@pytest.mark.directly
def test_the_memory_asked_for_holds_for_the_build_alone(database: Database) -> None:
    vector_index.drop(database)
    before = vector_index.look(database).memory_bytes
    assert vector_index.build(database, memory="123MB")
    assert vector_index.look(database).memory_bytes == before


@pytest.mark.directly
def test_a_memory_that_is_no_size_is_refused_by_name(database: Database) -> None:
    vector_index.drop(database)
    with pytest.raises(DatabaseMisfit, match="--memory"):
        vector_index.build(database, memory="plenty")


def test_a_build_in_another_session_is_told_and_not_disturbed(
    database: Database, sql: psycopg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector_index.drop(database)
    add_vectors(sql, 3)
    monkeypatch.setattr(vector_index, "_PROGRESS_EVERY_SECONDS", 0.02)
    told: list[vector_index.Progress] = []
    waits = threading.Event()

    def report(progress: vector_index.Progress) -> None:
        told.append(progress)
        if progress.waits_for:
            waits.set()

    with Database(SecretStr(database_url)) as own, psycopg.connect(database_url) as holder:
        holder.execute("lock table job_semantic_chunks in row exclusive mode")
        thread = threading.Thread(target=vector_index.build, args=(own, None, report))
        thread.start()
        assert waits.wait(20)
        (holding,) = holder.execute("select pg_backend_pid()").fetchone() or ()
        assert vector_index.look(database).building[0].waits_for == holding
        for disturb in (vector_index.drop, vector_index.build):
            with pytest.raises(DatabaseMisfit, match="being built"):
                disturb(database)
        holder.rollback()
        thread.join(30)
    assert vector_index.look(database).valid == (vector_index.NAME,)
    assert "waiting" in told[0].phase


@pytest.mark.parametrize(("changes", "pays"), [(5, False), (19, False), (30, True), (1000, True)])
def test_dropping_pays_when_more_than_a_fifth_of_the_vectors_change(
    database: Database, sql: psycopg.Connection, changes: int, pays: bool
) -> None:
    add_vectors(sql, 100)
    assert (vector_index.rebuild_pays(database, changes) is not None) == pays


def test_without_an_index_there_is_nothing_to_advise(database: Database, sql: psycopg.Connection) -> None:
    add_vectors(sql, 10)
    vector_index.drop(database)
    assert vector_index.rebuild_pays(database, 1000) is None
