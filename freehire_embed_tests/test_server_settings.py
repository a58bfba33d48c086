"""What a database, a role or the environment set for other clients changes nothing in what we read and write."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from freehire_embed.store.database import Database
from freehire_embed_tests.bench import assert_catalogue_comes_right
from freehire_embed_tests.catalogue import add_posting, count
from freehire_embed_tests.test_pooler import do_everything


@pytest.mark.parametrize(
    "setting",
    [
        "datestyle = 'German, DMY'",
        "array_nulls = off",
        "search_path = pg_catalog",
        "default_transaction_isolation = serializable",
        "standard_conforming_strings = off",
        "bytea_output = escape",
        "extra_float_digits = -7",
        "client_encoding = latin1",
        "timezone = 'Asia/Kathmandu'",
        "intervalstyle = sql_standard",
        "plan_cache_mode = force_generic_plan",
        "lock_timeout = '1h'",
        "idle_in_transaction_session_timeout = '1h'",
    ],
)
def test_a_setting_of_the_database_changes_nothing(sql, database_url, tmp_path, setting):
    sql.execute(f"alter database {sql.info.dbname} set {setting}")
    add_posting(sql, title="Bauleiter für Brücken, 建設", content_hash=None)
    with Database(SecretStr(database_url)) as database:
        do_everything(database, sql, tmp_path)
        assert_catalogue_comes_right(sql, database)


@pytest.mark.parametrize(
    "variable", [("PGDATESTYLE", "SQL, DMY"), ("PGCLIENTENCODING", "SQL_ASCII"), ("PGTZ", "-7")]
)
def test_a_variable_of_libpq_changes_nothing(sql, database_url, tmp_path, monkeypatch, variable):
    monkeypatch.setenv(*variable)
    with Database(SecretStr(database_url)) as database:
        do_everything(database, sql, tmp_path)
        assert_catalogue_comes_right(sql, database)
    assert count(sql, "select count(*) from jobs where title = 'Bauleiter für Brücken'") == 1
