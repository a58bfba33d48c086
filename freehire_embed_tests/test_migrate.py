"""The schema grows from nothing and on top of what is there, and never changes what is not ours."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import threading
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from freehire_embed.migrate import migrate, migrations, pending
from freehire_embed.queries import SQL_DIR
from freehire_embed.settings import SettingsError
from freehire_embed.store.database import Database
from freehire_embed.store.faults import DatabaseDown, DatabaseMisfit
from freehire_embed_tests.catalogue import add_posting, embedded, outbox, stamp
from freehire_embed_tests.conftest import WIDTH


def migrated(url: str, width: int = WIDTH) -> list[str]:
    with Database(SecretStr(url)) as database:
        return migrate(database, width)


def test_applies_everything_once(empty_database_url):
    assert migrated(empty_database_url) == [path.stem for path in migrations()]
    assert migrated(empty_database_url) == []
    with Database(SecretStr(empty_database_url)) as database:
        assert pending(database) == []


def test_an_existing_freehire_database_gets_only_what_is_missing(empty_database_url):
    with psycopg.connect(empty_database_url, autocommit=True) as sql:
        sql.execute("create extension vector")
        sql.execute(Path(__file__).with_name("freehire_before.sql").read_bytes())
        job_id = add_posting(sql)
        sql.execute(
            "insert into semantic_outbox (job_id, target_model, attempts) values (%s, 'm', 2)", [job_id]
        )
        sql.execute(
            "insert into job_semantic_chunks (job_id, chunk_index, embedding) values (%s, 0, %s)",
            [job_id, str([0.0] * (WIDTH - 1) + [1.0])],
        )
        files = (
            "select relname, pg_relation_filenode(oid) from pg_class "
            "where relname in ('jobs', 'semantic_outbox', 'job_semantic_chunks') order by 1"
        )
        columns = (
            "select attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull, attstorage "
            "from pg_attribute where attrelid in ('jobs'::regclass, 'job_semantic_chunks'::regclass) and attnum > 0"
        )
        before_files, before_columns = sql.execute(files).fetchall(), sql.execute(columns).fetchall()

        migrated(empty_database_url)

        assert sql.execute(files).fetchall() == before_files, "no table was rewritten"
        assert set(before_columns) <= set(sql.execute(columns).fetchall()), "no column was changed"
        assert sql.execute("select attempts, claims from semantic_outbox").fetchone() == (2, 0)
        triggers = (
            "select count(*) from pg_trigger "
            "where tgrelid = 'job_semantic_chunks'::regclass and not tgisinternal"
        )
        assert sql.execute(triggers).fetchone() == (1,), "the database had such a trigger already"


def test_a_foreign_writer_that_knows_none_of_our_columns_keeps_working(sql, database):
    job_id = add_posting(sql)
    sql.execute(
        "insert into semantic_outbox (job_id, target_model, job_posted_at) values (%s, 'test-model', now())",
        [job_id],
    )
    sql.execute("update semantic_outbox set claimed_at = now() - interval '1 hour', attempts = 1")
    queue = outbox(database)
    wave = queue.claim(1)
    assert wave.claims[0].attempts == 1
    assert not wave.claims[0].crashed
    queue.replace(wave.lease, [embedded(wave.claims[0], "text")])
    assert stamp(sql, job_id)[0] == "test-model"


def test_another_width_is_refused(empty_database_url):
    migrated(empty_database_url, 8)
    with pytest.raises(DatabaseMisfit, match="8 wide, asked for is 16"):
        migrated(empty_database_url, 16)


def test_a_jobs_table_that_is_not_freehires_is_refused(empty_database_url):
    with psycopg.connect(empty_database_url, autocommit=True) as sql:
        sql.execute("create table jobs (id bigint primary key, title text)")
    with pytest.raises(DatabaseMisfit, match=r"has no .*is_tech"):
        migrated(empty_database_url)


def test_missing_rights_are_named(empty_database_url, server):
    with psycopg.connect(server, autocommit=True) as sql:
        sql.execute("drop role if exists nobody_special")
        sql.execute("create role nobody_special login")
    url = psycopg.conninfo.make_conninfo(empty_database_url, user="nobody_special")
    with pytest.raises(DatabaseMisfit, match=r"CREATE EXTENSION vector"):
        migrated(url)


def test_an_index_whose_build_failed_is_built_again(empty_database_url):
    migrated(empty_database_url)
    with psycopg.connect(empty_database_url, autocommit=True) as sql:
        sql.execute(
            "update pg_index set indisvalid = false where indexrelid = 'semantic_outbox_dead_idx'::regclass"
        )
        assert migrated(empty_database_url) == ["0010_semantic_outbox_dead"]
        assert sql.execute(
            "select indisvalid from pg_index where indexrelid = 'semantic_outbox_dead_idx'::regclass"
        ).fetchone() == (True,)


def test_the_worker_role_is_enough_to_work(sql, database_url, server):
    sql.execute((SQL_DIR / "least_privilege.sql").read_bytes())
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute("drop role if exists worker_of_test")
        admin.execute("create role worker_of_test login in role freehire_embed_worker")
    open_, closed = add_posting(sql), add_posting(sql, semantic_embedded_model="m", closed_at="2026-01-01")
    with Database(SecretStr(psycopg.conninfo.make_conninfo(database_url, user="worker_of_test"))) as database:
        queue = outbox(database)
        queue.enqueue()
        wave = queue.claim(10)
        by_job = {claim.job_id: claim for claim in wave.claims}
        queue.replace(wave.lease, [embedded(by_job[open_], "text")])
        queue.clear(wave.lease, [by_job[closed]])
    assert stamp(sql, open_)[0] == "test-model"
    assert stamp(sql, closed)[0] is None


def dumped(url: str) -> str:
    from freehire_embed.local.postgres import _find_binaries

    dump = subprocess.run(
        [_find_binaries() / "pg_dump", "--schema-only", "--no-owner", "--no-privileges", "--dbname", url],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout
    kept = (
        line for line in dump.splitlines() if not re.match(r"--|SET |SELECT pg_catalog|\\(un)?restrict", line)
    )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n"


def test_schema_sql_is_what_the_migrations_make(empty_database_url):
    """UPDATE_SCHEMA=1 writes the file anew."""
    migrated(empty_database_url, 768)
    path = SQL_DIR / "schema.sql"
    actual = (
        "-- What all migrations together make of an empty database (vectors 768 wide). Read this first.\n\n"
        + dumped(empty_database_url)
    )
    if os.environ.get("UPDATE_SCHEMA"):
        path.write_text(actual)
    assert path.read_text() == actual


@pytest.fixture
def before(empty_database_url):
    """URL of a freehire database that knows nothing of us."""
    with psycopg.connect(empty_database_url, autocommit=True) as sql:
        sql.execute("create extension vector")
        sql.execute(Path(__file__).with_name("freehire_before.sql").read_bytes())
        sql.execute("alter table jobs drop column if exists similar_computed_at")
    return empty_database_url


def test_a_reader_gets_through_while_a_migration_waits_for_another_one(before):
    refused, stop = [], threading.Event()

    def read():
        with psycopg.connect(before, autocommit=True, prepare_threshold=None) as reader:
            reader.execute("set statement_timeout = '20s'")
            while not stop.is_set():
                try:
                    reader.execute("select count(*) from jobs")
                except psycopg.Error as error:
                    refused.append(error)

    reading = threading.Thread(target=read)
    with psycopg.connect(before, application_name="long report") as holder:
        holder.execute("select count(*) from jobs")
        reading.start()
        try:
            with (
                Database(SecretStr(before)) as database,
                pytest.raises(
                    DatabaseDown, match=r"jobs is locked by pid \d+ \(long report, role .*try again"
                ),
            ):
                migrate(database, WIDTH, patience_seconds=0)
        finally:
            stop.set()
            reading.join()
    assert refused == []


def test_a_migration_goes_on_once_the_lock_is_free(before):
    holder = psycopg.connect(before)
    holder.execute("select count(*) from jobs")

    class Release(logging.Handler):
        def emit(self, record):
            said.append(record.getMessage())
            holder.close()

    said, handler = [], Release()
    logging.getLogger("freehire_embed.migrate").addHandler(handler)
    try:
        assert migrated(before) == [path.stem for path in migrations()]
    finally:
        logging.getLogger("freehire_embed.migrate").removeHandler(handler)
        holder.close()
    assert len(said) == 1
    assert said[0].startswith("0001_jobs has to wait: jobs is locked by pid")


def test_a_table_that_has_our_columns_is_not_locked(empty_database_url):
    migrated(empty_database_url)
    with (
        psycopg.connect(empty_database_url, autocommit=True) as sql,
        psycopg.connect(empty_database_url) as holder,
    ):
        sql.execute("delete from freehire_embed_migrations")
        holder.execute("select from jobs, semantic_outbox, job_semantic_chunks, semantic_runs limit 1")
        with Database(SecretStr(empty_database_url)) as database:
            again = [name for name in migrate(database, WIDTH, patience_seconds=0) if "outbox" not in name]
    assert "0001_jobs" in again
    assert "0018_semantic_runs_over_limit" in again


def test_two_migrators_at_once_do_not_hinder_each_other(empty_database_url):
    applied = []
    threads = [
        threading.Thread(target=lambda: applied.append(migrated(empty_database_url))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, applied)) == [0, len(migrations())]


def test_a_refused_row_is_the_schemas_trouble(empty_database_url):
    migrated(empty_database_url)
    with psycopg.connect(empty_database_url, autocommit=True) as sql:
        sql.execute("delete from freehire_embed_migrations where name = '0001_jobs'")
        sql.execute("alter table freehire_embed_migrations add check (name <> '0001_jobs')")
    with pytest.raises(DatabaseMisfit, match="schema cannot be brought up to date"):
        migrated(empty_database_url)


def test_a_width_that_cannot_be_indexed_is_refused_before_anything_is_applied(empty_database_url):
    with pytest.raises(SettingsError, match="2001 cannot be indexed: an HNSW index takes 1 to 2000"):
        migrated(empty_database_url, 2001)
    with psycopg.connect(empty_database_url) as sql:
        assert sql.execute("select to_regclass('freehire_embed_migrations')").fetchone() == (None,)


def test_the_greatest_width_is_indexed_and_a_row_of_it_fits(empty_database_url):
    migrated(empty_database_url, 2000)
    with psycopg.connect(empty_database_url) as sql:
        job_id = add_posting(sql)
        sql.execute(
            "insert into job_semantic_chunks (job_id, chunk_index, embedding, passage_sha256) "
            "values (%s, 0, %s, %s)",
            [job_id, str([1.0] * 2000), b"0" * 32],
        )
