"""What a database has already is found by what it is: reused, replaced or left alone, never doubled."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from freehire_embed.migrate import migrate, migrations
from freehire_embed.queries import SQL_DIR
from freehire_embed.store import vector_index
from freehire_embed.store.database import Database
from freehire_embed.store.faults import DatabaseMisfit
from freehire_embed_tests.catalogue import add_posting, embedded, outbox, stamp
from freehire_embed_tests.conftest import WIDTH

CLAIM = "(job_posted_at DESC NULLS LAST, job_id DESC) WHERE (failed_at IS NULL)"


def migrated(url: str) -> list[str]:
    with Database(SecretStr(url)) as database:
        return migrate(database, WIDTH)


@pytest.fixture
def theirs(empty_database_url):
    """A freehire database that knows nothing of us, and a connection to it."""
    with psycopg.connect(empty_database_url, autocommit=True, prepare_threshold=None) as sql:
        sql.execute("create extension vector")
        sql.execute(Path(__file__).with_name("freehire_before.sql").read_bytes())
        yield empty_database_url, sql


def indexes(sql, table, keys):
    """Names of the indexes on `table` with these keys, valid or not, as they are written."""
    found = sql.execute(
        "select c.relname, i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid "
        "where i.indrelid = %s::regclass and pg_get_indexdef(i.indexrelid) like %s",
        [table, f"%{keys}"],
    )
    return dict(found.fetchall())


def test_a_claim_index_of_our_name_and_the_wrong_order_is_replaced(theirs):
    url, sql = theirs
    sql.execute("alter index semantic_outbox_claimable rename to semantic_outbox_claim_idx")
    migrated(url)
    assert indexes(sql, "semantic_outbox", CLAIM) == {"semantic_outbox_claim_idx": True}
    assert (
        indexes(sql, "semantic_outbox", "(job_posted_at DESC, job_id DESC) WHERE (failed_at IS NULL)") == {}
    )
    assert migrated(url) == []


def test_an_index_that_does_the_same_under_another_name_is_reused(theirs):
    url, sql = theirs
    sql.execute(
        'create index "queue depth" on semantic_outbox (id) with (fillfactor = 90) where failed_at is null'
    )
    migrated(url)
    assert indexes(sql, "semantic_outbox", "(id)% WHERE (failed_at IS NULL)") == {"queue depth": True}
    assert migrated(url) == []


def test_a_replacement_that_was_killed_half_way_is_finished(theirs):
    url, sql = theirs
    sql.execute("create index semantic_outbox_claim_idx on semantic_outbox (job_posted_at desc)")
    sql.execute(f"create index semantic_outbox_claim_idx_new on semantic_outbox {CLAIM}")
    migrated(url)
    assert indexes(sql, "semantic_outbox", CLAIM) == {"semantic_outbox_claim_idx": True}


def test_an_index_that_got_lost_is_built_again(theirs):
    url, sql = theirs
    migrated(url)
    sql.execute("drop index semantic_outbox_claim_idx")
    assert migrated(url) == ["0008_semantic_outbox_claim"]
    assert indexes(sql, "semantic_outbox", CLAIM) == {"semantic_outbox_claim_idx": True}


def test_a_vector_index_that_was_dropped_on_purpose_stays_away(theirs):
    url, sql = theirs
    migrated(url)
    sql.execute("drop index job_semantic_chunks_embedding_idx")
    assert migrated(url) == []


def test_an_invalid_vector_index_of_any_name_is_replaced(theirs):
    url, sql = theirs
    sql.execute("create index theirs on job_semantic_chunks using hnsw (embedding vector_cosine_ops)")
    sql.execute("update pg_index set indisvalid = false where indexrelid = 'theirs'::regclass")
    migrated(url)
    assert indexes(sql, "job_semantic_chunks", "USING hnsw (embedding vector_cosine_ops)") == {
        vector_index.NAME: True
    }


def test_a_vector_index_of_another_distance_is_no_vector_index_of_ours(theirs):
    url, sql = theirs
    sql.execute("create index theirs on job_semantic_chunks using hnsw (embedding vector_l2_ops)")
    migrated(url)
    with Database(SecretStr(url)) as database:
        state = vector_index.look(database)
        assert (state.valid, state.other) == ((vector_index.NAME,), ("theirs",))
        vector_index.drop(database)
        assert vector_index.look(database).other == ("theirs",)


@pytest.mark.parametrize("level", ["row", "statement"])
def test_no_second_trigger_joins_one_that_wakes_the_search(theirs, level):
    url, sql = theirs
    sql.execute("drop trigger chunks_to_search on job_semantic_chunks")
    sql.execute(
        "create function wake() returns trigger language plpgsql as $$ begin "
        "insert into search_outbox (job_id) select id from jobs on conflict do nothing; return null; end $$"
    )
    sql.execute(
        f"create trigger wake after insert on job_semantic_chunks for each {level} execute function wake()"
    )
    migrated(url)
    assert triggers(sql) == {"wake"}


def test_a_trigger_on_updates_wakes_nobody_and_ours_joins_it(theirs):
    url, sql = theirs
    sql.execute("drop trigger chunks_to_search on job_semantic_chunks")
    sql.execute(
        "create trigger audit after update on job_semantic_chunks "
        "referencing new table as inserted for each statement execute function chunks_to_search()"
    )
    migrated(url)
    assert triggers(sql) == {"audit", "enqueue_search_of_embedded"}


def triggers(sql):
    return {
        name
        for (name,) in sql.execute(
            "select tgname from pg_trigger where tgrelid = 'job_semantic_chunks'::regclass and not tgisinternal"
        )
    }


@pytest.fixture
def owner(server, sql_of_empty):
    """A role that owns the database, with a schema of its own name first in its search_path."""
    name = f"owner_{sql_of_empty.info.dbname}"
    sql_of_empty.execute(
        f"create role {name} login; grant all on database {sql_of_empty.info.dbname} to {name}; "
        f"grant create on schema public to {name}; create schema {name} authorization {name}"
    )
    yield name
    sql_of_empty.execute(f"drop owned by {name} cascade; drop role {name}")


@pytest.fixture
def sql_of_empty(empty_database_url):
    with psycopg.connect(empty_database_url, autocommit=True, prepare_threshold=None) as sql:
        yield sql


def test_everything_lies_in_public_whatever_the_search_path(empty_database_url, sql_of_empty, owner):
    sql_of_empty.execute("create schema extensions; create extension vector schema extensions")
    sql_of_empty.execute(f"grant usage on schema extensions to {owner}")
    url = make_conninfo(empty_database_url, user=owner)
    assert migrated(url) == [path.stem for path in migrations()]
    schemas = sql_of_empty.execute(
        "select distinct relnamespace::regnamespace::text from pg_class where relowner = %s::regrole", [owner]
    ).fetchall()
    assert set(schemas) == {("public",), ("pg_toast",)}
    job_id = add_posting(sql_of_empty)
    with Database(SecretStr(url)) as database:
        queue = outbox(database)
        queue.enqueue()
        wave = queue.claim(1)
        queue.replace(wave.lease, [embedded(wave.claims[0], "text")])
        vector_index.drop(database)
        assert vector_index.build(database)
    assert stamp(sql_of_empty, job_id)[0] == "test-model"


def test_a_worker_may_use_pgvector_wherever_it_lies(empty_database_url, sql_of_empty, worker):
    sql_of_empty.execute("create schema extensions; create extension vector schema extensions")
    migrated(empty_database_url)
    sql_of_empty.execute("set search_path = pg_catalog")
    sql_of_empty.execute((SQL_DIR / "least_privilege.sql").read_bytes())
    sql_of_empty.execute("reset search_path")
    sql_of_empty.execute(f"grant freehire_embed_worker to {worker}")
    job_id = add_posting(sql_of_empty)
    with Database(SecretStr(make_conninfo(empty_database_url, user=worker))) as database:
        queue = outbox(database)
        queue.enqueue()
        wave = queue.claim(1)
        queue.replace(wave.lease, [embedded(wave.claims[0], "text")])
    assert stamp(sql_of_empty, job_id)[0] == "test-model"


def test_tables_in_the_schema_of_the_role_are_named_and_not_made_twice(
    empty_database_url, sql_of_empty, owner
):
    sql_of_empty.execute("create extension vector")
    sql_of_empty.execute(f"create table {owner}.semantic_outbox (id bigint)")
    with pytest.raises(DatabaseMisfit, match=f"ALTER TABLE {owner}.semantic_outbox SET SCHEMA public"):
        migrated(make_conninfo(empty_database_url, user=owner))


def test_a_schema_of_pgvector_that_the_role_may_not_use_is_named(empty_database_url, sql_of_empty, owner):
    sql_of_empty.execute("create schema extensions; create extension vector schema extensions")
    with pytest.raises(DatabaseMisfit, match=r'"vector".* does not exist.*USAGE on the schema'):
        migrated(make_conninfo(empty_database_url, user=owner))


@pytest.fixture
def worker(server):
    with psycopg.connect(server, autocommit=True) as sql:
        sql.execute("create role worker_of_migrate login")
        yield "worker_of_migrate"
        sql.execute("drop role worker_of_migrate")


def test_what_is_for_the_owner_is_said_to_be(database_url, sql, worker):
    sql.execute((SQL_DIR / "least_privilege.sql").read_bytes())
    sql.execute(f"grant freehire_embed_worker to {worker}")
    sql.execute("delete from freehire_embed_migrations where name = '0002_semantic_outbox'")
    with Database(SecretStr(make_conninfo(database_url, user=worker))) as database:
        commands = {
            "migrate": lambda: migrate(database, WIDTH),
            "dropping an index": lambda: vector_index.drop(database),
        }
        for command, run in commands.items():
            with pytest.raises(
                DatabaseMisfit, match=f"owned by postgres.*{command} is for the owner"
            ) as refused:
                run()
            assert "least_privilege" not in str(refused.value)


def test_a_statement_timeout_of_the_role_ends_no_migration(empty_database_url, sql_of_empty, pooled):
    """One in a transaction and one outside of any take longer."""
    sql_of_empty.execute(
        "create function slow_down() returns event_trigger language plpgsql as $$ begin "
        "if exists (select from pg_event_trigger_ddl_commands() "
        "where object_identity in ('public.semantic_models', 'public.semantic_outbox_claim_idx')) "
        "then perform pg_sleep(0.6); end if; end $$; "
        "create event trigger slow on ddl_command_end execute function slow_down()"
    )
    sql_of_empty.execute(f"alter database {sql_of_empty.info.dbname} set statement_timeout = '500ms'")
    with Database(SecretStr(empty_database_url)) as database:
        if pooled:
            with pytest.raises(DatabaseMisfit, match=r"statement_timeout is 500ms.*not the pooler"):
                migrate(database, WIDTH)
        else:
            assert migrate(database, WIDTH) == [path.stem for path in migrations()]
