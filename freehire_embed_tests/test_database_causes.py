"""Each cause has a sentence of its own: what is the matter, by whom, and what helps."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import threading
from contextlib import suppress

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from freehire_embed.cli.importing import load
from freehire_embed.doctor import diagnose
from freehire_embed.drill.wire import Wire
from freehire_embed.local import postgres
from freehire_embed.migrate import migrate
from freehire_embed.queries import SQL_DIR
from freehire_embed.settings import Settings
from freehire_embed.store.database import Database
from freehire_embed.store.faults import (
    DatabaseDown,
    DatabaseMisfit,
    RightsMissing,
    RowRejected,
    StatementTimeout,
)
from freehire_embed_tests.catalogue import add_posting, outbox
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.deployment import environment
from freehire_embed_tests.pooler import pooler as pgbouncer
from freehire_embed_tests.test_database_faults import stop


def hasty(url):
    """Gives up after a second what might be tried for half a minute."""
    return Database(SecretStr(url), patience_seconds=1)


def test_a_lock_that_is_held_names_its_holder(sql, database_url, direct_url):
    job_id = add_posting(sql)

    def edit(connection):
        connection.execute("set local lock_timeout = '50ms'")
        connection.execute("update jobs set title = 'other' where id = %s", [job_id])

    with (
        hasty(database_url) as database,
        psycopg.connect(direct_url, application_name="forgotten psql") as holder,
        psycopg.connect(direct_url, application_name="a mere reader") as reader,
    ):
        reader.execute("select count(*) from jobs")
        holder.execute("update jobs set title = 'edited' where id = %s", [job_id])
        holds = rf"jobs is locked by pid {holder.info.backend_pid} \(forgotten psql, role \w+\), in"
        with pytest.raises(DatabaseDown, match=holds):
            database.transact(edit)


@pytest.mark.parametrize(
    ("statement", "by"),
    [
        ("alter database {database} set {setting}", "ALTER DATABASE {database} SET"),
        ("alter role {role} set {setting}", "ALTER ROLE {role} SET"),
        (
            "alter role {role} in database {database} set {setting}",
            "ALTER ROLE {role} IN DATABASE {database} SET",
        ),
    ],
)
def test_a_timeout_names_the_setting_and_whose_it_is(sql, database_url, role, statement, by):
    names = {"database": sql.info.dbname, "role": role}
    sql.execute(statement.format(**names, setting="statement_timeout = '400ms'"))
    with hasty(make_conninfo(database_url, user=role)) as database:
        expected = f"statement_timeout is 400ms, set by {by.format(**names)}"
        with pytest.raises(StatementTimeout, match=expected):
            database.transact(lambda connection: connection.execute("select pg_sleep(5)"))


def test_a_statement_that_somebody_cancelled_is_no_timeout(database):
    def cancelled(connection):
        connection.execute(
            "do $$ begin perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(5); end $$"
        )

    with pytest.raises(DatabaseDown, match="somebody cancelled it") as fault:
        database.transact(cancelled)
    assert not isinstance(fault.value, StatementTimeout)


def test_a_database_that_is_read_only_says_why(sql, database_url):
    add_posting(sql)
    sql.execute(f"alter database {sql.info.dbname} set default_transaction_read_only = on")
    with (
        hasty(database_url) as database,
        pytest.raises(
            DatabaseDown, match=r"read-only \(default_transaction_read_only is on, set by ALTER DATABASE"
        ),
    ):
        outbox(database).enqueue()


def test_a_temporary_file_too_large_for_a_limit_is_told(sql, database_url):
    sql.execute(f"alter database {sql.info.dbname} set temp_file_limit = '64kB'")
    sql.execute(f"alter database {sql.info.dbname} set work_mem = '64kB'")
    with (
        hasty(database_url) as database,
        pytest.raises(DatabaseDown, match=r"limit set at the server.*temp_file_limit"),
    ):
        database.transact(
            lambda c: c.execute("select i from generate_series(1, 200000) i order by md5(i::text)")
        )


@pytest.mark.parametrize(
    ("sqlstate", "kind", "sentence"),
    [
        ("53100", DatabaseDown, "the server's disk is full"),
        ("53200", DatabaseDown, "the server is out of memory"),
        ("58030", DatabaseDown, "the server cannot use its files"),
        ("40001", DatabaseDown, "other writers are in the way"),
        ("08006", DatabaseDown, "does not answer"),
        ("42703", DatabaseMisfit, "run `freehire-embed migrate`"),
        ("XX000", RowRejected, "SQLSTATE XX000"),
    ],
)
def test_what_cannot_be_brought_about_is_sorted_by_its_state(database_url, sqlstate, kind, sentence):
    with hasty(database_url) as database, pytest.raises(kind, match=sentence):
        database.transact(
            lambda c: c.execute(
                f"do $$ begin raise exception 'on purpose' using errcode = '{sqlstate}'; end $$"
            )
        )


@pytest.fixture
def role(sql):
    name = f"role_{sql.info.dbname}"
    sql.execute(f"create role {name} login")
    yield name
    sql.execute(f"drop owned by {name}; drop role {name}")


def test_rights_that_a_worker_lacks_are_least_privileges(sql, database_url, role):
    with hasty(make_conninfo(database_url, user=role)) as database:
        refused = (
            rf"permission denied.*this is role {role}, the tables are owned by postgres.*least_privilege"
        )
        with pytest.raises(RightsMissing, match=refused):
            outbox(database).enqueue()


def test_an_import_as_worker_is_for_the_owner(sql, database_url, role, tmp_path):
    sql.execute((SQL_DIR / "least_privilege.sql").read_bytes())
    sql.execute(f"grant freehire_embed_worker to {role}")
    file = tmp_path / "board.jsonl"
    file.write_text('{"title": "t", "description": "d", "external_id": "1"}')
    with (
        hasty(make_conninfo(database_url, user=role)) as database,
        pytest.raises(DatabaseMisfit, match="import is for the owner of the tables") as refused,
    ):
        load(database, [file], advance=lambda *_: None)
    assert "least_privilege" not in str(refused.value)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"user": "nobody_at_all"}, "check user and password|check user and database"),
        ({"dbname": "nowhere_at_all"}, "check user and database"),
        ({"sslmode": "require"}, "check sslmode, sslrootcert and sslcert"),
    ],
)
def test_a_refused_connection_says_which_part_of_the_address_is_wrong(database_url, parts, sentence):
    with Wire(database_url) as wire, pytest.raises(DatabaseMisfit, match=sentence):
        Database(SecretStr(make_conninfo(wire.url, **parts)))


@pytest.fixture
def tls_port(tmp_path):
    """A server of the Postgres protocol up to the certificate that it shows, which nobody has signed."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    try:
        subprocess.run(
            [*made, "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("openssl is not installed: no certificate can be made to be refused")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def show_certificate():
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, suppress(OSError):
                    client.recv(8)  # SSLRequest
                    client.sendall(b"S")
                    context.wrap_socket(client, server_side=True).close()

    thread = threading.Thread(target=show_certificate)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


def test_a_certificate_that_nobody_vouches_for_is_a_misfit(tls_port):
    url = f"postgresql://u@localhost:{tls_port}/d?sslmode=verify-full&sslrootcert=system"
    with pytest.raises(
        DatabaseMisfit, match=r"certificate verify failed.*check sslmode, sslrootcert and sslcert"
    ):
        Database(SecretStr(url))


def test_a_server_without_a_connection_left_says_so(sql, database_url, role):
    sql.execute(f"alter role {role} connection limit 0")
    with pytest.raises(DatabaseDown, match=r"too many connections.*raise max_connections"):
        Database(SecretStr(make_conninfo(database_url, user=role)))


def test_a_pooler_that_takes_single_statements_only_is_a_misfit(server, database_name, pooler):
    with (
        pgbouncer(server, "statement") as url,
        hasty(make_conninfo(url, dbname=database_name)) as database,
        pytest.raises(DatabaseMisfit, match="set its pool_mode to transaction"),
    ):
        outbox(database).enqueue()


def test_a_standby_is_read_only_for_doctor_and_commands_alike(tmp_path, tei):
    url = postgres.start(tmp_path)
    try:
        with Database(SecretStr(url)) as database:
            migrate(database, WIDTH)
        stop(tmp_path)
        (tmp_path / "postgres" / "standby.signal").touch()
        postgres.start(tmp_path)
        variables = environment(url, tei.url, tmp_path)
        found = {
            c.name: c.found for c in diagnose(Settings.from_environment(variables), variables) if not c.ok
        }
        assert found == {"writing": "the database is read-only: it is a standby"}
        with (
            hasty(url) as database,
            pytest.raises(DatabaseDown, match=re.escape("read-only (it is a standby)")),
        ):
            outbox(database).enqueue()
    finally:
        postgres.release(tmp_path)
