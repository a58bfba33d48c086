"""A PostgreSQL for the benchmarks alone: a temporary folder, settings of a server that means it."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql
from pydantic import SecretStr

from freehire_embed.local import postgres
from freehire_embed.migrate import migrate
from freehire_embed.profiles import BUILT_IN, DEFAULT_IDENTITY
from freehire_embed.store import vector_index
from freehire_embed.store.database import Database
from freehire_embed.store.outbox import SemanticOutbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROFILE = BUILT_IN[DEFAULT_IDENTITY]
MODEL = PROFILE.identity

# A server of 8 GB, say; synchronous commits stay on.
_SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "3GB",
    "checkpoint_timeout": "15min",
    "maintenance_work_mem": "1GB",
    "max_connections": "100",
}


@dataclass(slots=True)
class Scratch:
    """A running server; `databases` by name are made once and kept until the end."""

    server: str
    _made: set[str] = field(default_factory=set)

    @contextmanager
    def database(self, template: str = "migrated") -> Iterator[tuple[Database, psycopg.Connection]]:
        """A migrated database of one's own, opened, with a plain connection beside it; without a vector index."""
        name = f"work_{len(self._made)}"
        self._made.add(name)
        with psycopg.connect(self.server, autocommit=True) as admin:
            admin.execute(
                sql.SQL("create database {} template {} strategy file_copy").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )
        try:
            with Database(SecretStr(self.url(name))) as database, self.connect(name) as connection:
                yield database, connection
        finally:
            with psycopg.connect(self.server, autocommit=True) as admin:
                admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def prepared(self, name: str, fill: Callable[[psycopg.Connection], None]) -> str:
        """The name of a template database that `fill` has filled, made at the first call."""
        if name in self._made:
            return name
        with psycopg.connect(self.server, autocommit=True) as admin:
            admin.execute(sql.SQL("create database {} template migrated").format(sql.Identifier(name)))
        with self.connect(name) as connection:
            fill(connection)
            connection.execute("vacuum analyze")
        self._made.add(name)
        return name

    def url(self, name: str) -> str:
        return psycopg.conninfo.make_conninfo(self.server, dbname=name)

    def connect(self, name: str) -> psycopg.Connection:
        return psycopg.connect(self.url(name), autocommit=True)


@contextmanager
def scratch() -> Iterator[Scratch]:
    """The server, stopped and deleted at the end."""
    state = Path(tempfile.mkdtemp(prefix="freehire-benchmark-"))
    url = postgres.start(state)
    try:
        with psycopg.connect(url, autocommit=True) as admin:
            for name, value in _SETTINGS.items():
                admin.execute(sql.SQL("alter system set {} = {}").format(sql.Identifier(name), value))
        postgres.release(state)
        postgres.start(state)
        made = Scratch(url)
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("create database migrated")
        with Database(SecretStr(made.url("migrated"))) as database:
            migrate(database, PROFILE.width)
            vector_index.drop(database)
        yield made
    finally:
        postgres.release(state)
        shutil.rmtree(state, ignore_errors=True)


def outbox(database: Database, run_id: str = "benchmark") -> SemanticOutbox:
    """The queue as the run `run_id` sees it."""
    return SemanticOutbox(
        database, run_id=run_id, model=MODEL, lease_seconds=300, max_attempts=3, upstream_grace_days=14
    )
