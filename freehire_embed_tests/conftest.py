"""One real PostgreSQL for the test run, one database a test, cloned from a migrated template."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from pydantic import SecretStr

from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.local import postgres
from freehire_embed.migrate import migrate
from freehire_embed.store.database import Database
from freehire_embed_tests import pooler as pgbouncer
from freehire_embed_tests.deployment import SERVED, WIDTH, environment

if TYPE_CHECKING:
    from collections.abc import Iterator


# Whoever is handed one of these works on the store, and does so once more through a pooler.
_STORE_FIXTURES = {"database", "wire", "empty_database_url"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if (
        _STORE_FIXTURES.intersection(metafunc.fixturenames)
        and "dagster" not in metafunc.module.__name__
        and not any(metafunc.definition.iter_markers("directly"))
    ):
        metafunc.parametrize("pooled", [False, True], ids=["direct", "pooled"])


def _in(server: str, name: str) -> str:
    return psycopg.conninfo.make_conninfo(server, dbname=name)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A libpq URL of the embedded server; its data lives as long as the test run."""
    state = Path(tempfile.mkdtemp(prefix="freehire-test-"))
    url = postgres.start(state)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("alter system set fsync = off")
        connection.execute("alter system set full_page_writes = off")
        connection.execute("alter system set synchronous_commit = off")
        connection.execute("alter system set max_connections = 200")
        connection.execute("select pg_reload_conf()")
    yield url
    postgres.release(state)
    shutil.rmtree(state, ignore_errors=True)


@pytest.fixture(scope="session")
def template(server: str) -> str:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("create database template_migrated")
    with Database(SecretStr(_in(server, "template_migrated"))) as database:
        migrate(database, WIDTH)
    return "template_migrated"


_number = itertools.count()


@pytest.fixture(scope="session")
def pooler(server: str) -> Iterator[str]:
    """A libpq URL of a PgBouncer in transaction mode in front of the server."""
    if pgbouncer.find() is None:
        pytest.skip(pgbouncer.NOT_INSTALLED)
    with pgbouncer.pooler(server) as url:
        yield url


@pytest.fixture
def pooled() -> bool:
    """Whether the code under test goes through a pooler; `pytest_generate_tests` says so."""
    return False


@pytest.fixture
def entrance(server: str, pooled: bool, request: pytest.FixtureRequest) -> str:
    """A libpq URL of the server as the code under test reaches it."""
    return request.getfixturevalue("pooler") if pooled else server


def _fresh(server: str, template: str) -> Iterator[str]:
    name = f"test_{os.getpid()}_{next(_number)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {name} template {template}")
    yield name
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def database_name(server: str, template: str) -> Iterator[str]:
    """A migrated, empty database of this test's own."""
    yield from _fresh(server, template)


@pytest.fixture
def database_url(entrance: str, database_name: str) -> str:
    return _in(entrance, database_name)


@pytest.fixture
def direct_url(server: str, database_name: str) -> str:
    """The same database, past any pooler: for arranging and looking."""
    return _in(server, database_name)


@pytest.fixture
def empty_database_url(server: str, entrance: str) -> Iterator[str]:
    """URL of a database with nothing in it."""
    for name in _fresh(server, "template0"):
        yield _in(entrance, name)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with Database(SecretStr(database_url)) as opened:
        yield opened


@pytest.fixture
def sql(direct_url: str) -> Iterator[psycopg.Connection]:
    """A plain connection for arranging and looking, apart from the code under test."""
    with psycopg.connect(direct_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def tei() -> Iterator[FaultyTei]:
    """A server of the deployment's model."""
    with FaultyTei(width=WIDTH, model_id=SERVED) as running:
        yield running


@pytest.fixture
def deployed_here(database_url: str, tei: FaultyTei, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has the environment of the deployment."""
    for variable, value in environment(database_url, tei.url, tmp_path).items():
        monkeypatch.setenv(variable, value)
