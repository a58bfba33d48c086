"""What the doctor finds in a database before a run meets it, each with its way out."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from freehire_embed.doctor import diagnose
from freehire_embed.settings import Settings
from freehire_embed_tests.catalogue import add_posting
from freehire_embed_tests.deployment import NEW, OLD, WIDTH, environment


@pytest.fixture
def deployed(database_url, tei, tmp_path):
    return environment(database_url, tei.url, tmp_path)


def checks(variables):
    return list(diagnose(Settings.from_environment(variables), variables))


def wrong(variables):
    failing = {check.name: check for check in checks(variables) if not check.ok}
    assert all(check.fix for check in failing.values())
    return failing


def said(variables, name):
    return [check.found for check in checks(variables) if check.name == name]


@pytest.fixture
def stranger(deployed, database_url, sql):
    """The environment of a role of its own that may do all that a worker does, and its name."""
    role = f"stranger_{sql.info.dbname}"
    sql.execute(f"create role {role} login; grant all on all tables in schema public to {role}")
    yield {**deployed, "DATABASE_URL": make_conninfo(database_url, user=role)}, role
    sql.execute(f"drop owned by {role}; drop role {role}")


def test_a_database_that_cannot_be_written_to_is_wrong_and_says_why(deployed, sql):
    sql.execute(f"alter database {sql.info.dbname} set default_transaction_read_only = on")
    found = wrong(deployed)["writing"].found
    assert f"default_transaction_read_only is on, set by ALTER DATABASE {sql.info.dbname} SET" in found


def test_row_level_security_that_may_hide_rows_is_wrong(stranger, sql):
    variables, role = stranger
    assert wrong(variables) == {}
    sql.execute("alter table jobs enable row level security")
    assert "jobs" in wrong(variables)["row security"].found
    sql.execute(f"create policy a_few on jobs for select to {role} using (is_tech)")
    assert "jobs" in wrong(variables)["row security"].found
    sql.execute(f"create policy all_of_them on jobs to {role} using (true)")
    assert wrong(variables) == {}
    sql.execute("create policy fewer on jobs as restrictive using (closed_at is null)")
    assert "jobs" in wrong(variables)["row security"].found


def test_a_timeout_too_short_for_the_enqueue_is_wrong_and_names_who_set_it(stranger, sql):
    variables, role = stranger
    sql.execute(f"alter role {role} set statement_timeout = '5s'")
    check = wrong(variables)["statement_timeout"]
    assert f"statement_timeout is 5s, set by ALTER ROLE {role} SET" in check.found
    sql.execute(f"alter role {role} set statement_timeout = '60s'")
    assert wrong(variables) == {}
    sql.execute("update pg_class set reltuples = 3e6 where oid = 'jobs'::regclass")
    assert "113 s" in wrong(variables)["statement_timeout"].found


@pytest.fixture
def through_the_pooler(deployed, pooler, database_name):
    return {**deployed, "DATABASE_URL": make_conninfo(pooler, dbname=database_name)}


def test_a_pooler_is_told_and_is_wrong_only_where_something_would_have_to_be_lifted(
    deployed, through_the_pooler, sql
):
    assert said(deployed, "pooler") == []
    assert "nothing of ours needs a session" in said(through_the_pooler, "pooler")[0]
    assert wrong(through_the_pooler) == {}
    sql.execute(f"alter database {sql.info.dbname} set statement_timeout = '10min'")
    sql.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )
    assert wrong(through_the_pooler).keys() == {"pooler"}


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_an_encoding_that_loses_characters_is_refused(deployed, server, encoding):
    name = f"in_{encoding.lower()}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(
            f"create database {name} template template0 encoding '{encoding}' locale 'C' locale_provider libc"
        )
    try:
        failing = wrong({**deployed, "DATABASE_URL": make_conninfo(server, dbname=name)})
        assert f"{name} is encoded in {encoding}" in failing["database"].found
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"drop database {name} with (force)")


@pytest.mark.parametrize("variables", [{"PGDATESTYLE": "German"}, {"PGCLIENTENCODING": "LATIN1"}])
def test_the_clients_own_formats_do_not_matter(deployed, monkeypatch, variables):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert wrong(deployed) == {}


def test_two_indexes_that_do_the_same_are_wrong(deployed, sql):
    sql.execute(
        "create index theirs on job_semantic_chunks using hnsw (embedding vector_cosine_ops) with (m = 8)"
    )
    check = wrong(deployed)["indexes"]
    assert "theirs" in check.found
    assert check.fix == "DROP INDEX CONCURRENTLY theirs"


def test_indexes_that_serve_no_query_of_ours_are_told(deployed, sql):
    sql.execute("create index theirs on job_semantic_chunks using hnsw (embedding vector_l2_ops)")
    sql.execute("create index claimable on semantic_outbox (job_posted_at desc) where failed_at is null")
    assert wrong(deployed) == {}
    assert said(deployed, "indexes")[0].startswith("claimable, theirs serve no query of ours")


TRIGGER = (
    "create trigger second after insert on job_semantic_chunks referencing new table as touched "
    "for each statement execute function enqueue_search_of_embedded()"
)
PER_ROW = (
    "create function wake() returns trigger language plpgsql as $$ begin "
    "insert into search_outbox (job_id) values (new.job_id) on conflict do nothing; return null; end $$; "
    "drop trigger enqueue_search_of_embedded on job_semantic_chunks; "
    "create trigger each after insert on job_semantic_chunks for each row execute function wake()"
)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (TRIGGER, "enqueue_search_of_embedded, second do the same"),
        (PER_ROW, "each fires for every row"),
        ("drop trigger enqueue_search_of_embedded on job_semantic_chunks", "no trigger"),
        ("alter table job_semantic_chunks disable trigger all", "enqueue_search_of_embedded is disabled"),
    ],
)
def test_the_search_is_woken_by_one_trigger_a_statement(deployed, sql, change, found):
    sql.execute(change)
    assert found in wrong(deployed)["triggers"].found


def test_another_writer_under_another_identity_is_wrong(deployed, sql):
    job_id = add_posting(sql)
    sql.execute(
        "insert into semantic_models (identity, width, promoted_at) "
        "values (%s, %s, now() - interval '2 days'), (%s, %s, now() - interval '1 day')",
        [NEW, WIDTH, OLD, WIDTH],
    )
    entry = (
        "insert into semantic_outbox (job_id, target_model, created_at) values (%s, %s, now() - %s::interval)"
    )
    sql.execute(entry, [job_id, NEW, "36 hours"])
    assert wrong(deployed) == {}, "it was queued before the other identity took its place"
    sql.execute("delete from semantic_outbox")
    sql.execute(entry, [job_id, NEW, "1 hour"])
    assert f"1 entries of semantic_outbox are of {NEW}" in wrong(deployed)["writers"].found
    sql.execute("delete from semantic_outbox")
    sql.execute("update jobs set semantic_embedded_model = 'never-seen'")
    assert "1 stamps on jobs are of never-seen" in wrong(deployed)["writers"].found


def test_a_schema_of_pgvector_that_the_role_may_not_use_is_wrong(stranger, sql):
    variables, _ = stranger
    sql.execute("create schema extensions; alter extension vector set schema extensions")
    assert "extensions" in wrong(variables)["pgvector"].found
