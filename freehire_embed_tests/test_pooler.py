"""Through a pooler nothing of ours is seen by another client, and nothing of another client's disturbs us."""

from __future__ import annotations

import json

import psycopg
import pytest
from pydantic import SecretStr

from freehire_embed import similar
from freehire_embed.cli.importing import load
from freehire_embed.migrate import migrate
from freehire_embed.store import vector_index
from freehire_embed.store.database import Database
from freehire_embed_tests.bench import drained, endings, server
from freehire_embed_tests.catalogue import MODEL, add_posting, count
from freehire_embed_tests.conftest import WIDTH

pytestmark = pytest.mark.directly  # the pooler is the subject here


@pytest.fixture
def pooled():
    return True


def do_everything(database, sql, folder):
    """One of each: what is done in a transaction, what is done outside of any."""
    path = folder / "board.jsonl"
    path.write_text(
        json.dumps(
            {"source": "board", "external_id": "1", "title": "Bauleiter für Brücken", "description": "d"}
        )
    )
    gone = add_posting(sql, source="board", external_id="gone")
    add_posting(sql, source="elsewhere")
    report = load(database, [path], advance=lambda *_: None, close_missing=True)
    assert (report.added, report.closed) == (1, 1)
    closed = sql.execute("select id from jobs where closed_at is not null").fetchall()
    assert closed == [(gone,)]
    with server() as tei:
        assert set(endings(drained(database, tei))) == {"indexed"}
    similar.refresh(database, MODEL)
    assert count(sql, "select count(*) from jobs where similar_computed_at is not null") >= 2
    vector_index.drop(database)
    vector_index.build(database)
    sql.execute("delete from freehire_embed_migrations")
    migrate(database, WIDTH)


LEFT_BEHIND = {
    "settings": "select name, setting from pg_settings where source = 'session' and name not in "
    "('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')",
    "prepared statements": "select statement from pg_prepared_statements",
    "session locks": "select objid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
    "temporary tables": "select relname from pg_class where relpersistence = 't'",
}


def test_nothing_is_left_on_any_connection_of_the_pooler(database_url, sql, tmp_path):
    with Database(SecretStr(database_url)) as database:
        do_everything(database, sql, tmp_path)
        backends = {
            pid
            for (pid,) in sql.execute(
                "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            )
        }
        others, seen = [], set()
        try:
            # Each keeps its server connection until all are met.
            while backends - seen:
                others.append(psycopg.connect(database_url, prepare_threshold=None))
                (pid,) = others[-1].execute("select pg_backend_pid()").fetchone()
                seen.add(pid)
                for what, query in LEFT_BEHIND.items():
                    assert others[-1].execute(query).fetchall() == [], what
        finally:
            for other in others:
                other.close()
        assert backends


def test_what_others_leave_behind_does_not_disturb(database_url, sql, tmp_path):
    """A client that takes the connection for its own, and prepares statements under the driver's names."""
    with psycopg.connect(database_url, autocommit=True, prepare_threshold=None) as rude:
        rude.execute(
            "set search_path = pg_catalog; set datestyle = 'German'; set array_nulls = off; "
            "set default_transaction_isolation = serializable; "
            "create temporary table import_seen (nothing int); create temporary table jobs (nothing int); "
            "prepare _pg3_0 as select 1; prepare _pg3_1 as select 2"
        )
        with Database(SecretStr(database_url)) as database:
            do_everything(database, sql, tmp_path)
