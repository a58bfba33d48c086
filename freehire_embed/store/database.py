"""Connections and transactions: one pool, bounded retries, and an answer to "did it commit?"."""

from __future__ import annotations

import logging
import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import namedtuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from freehire_embed.queries import query
from freehire_embed.settings import SettingsError
from freehire_embed.store.faults import DatabaseDown, DatabaseMisfit, is_outrun, is_retryable, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pydantic import SecretStr

logger = logging.getLogger(__name__)

Connection = psycopg.Connection[NamedTuple]
Parameters = dict[str, Any]
T = TypeVar("T")

# A restarted server is back within seconds; a run that waits longer had better fail and be started again.
_PATIENCE_SECONDS = 30
_CONNECT_TIMEOUT_SECONDS = 10
_OUTRUN_RETRIES = 2


class Database:
    """A small pool on one Postgres; thread-safe.

    Raises DatabaseDown or DatabaseMisfit when it cannot connect, and RowRejected when a row is at fault.
    """

    def __init__(self, url: SecretStr, *, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self._patience = patience_seconds
        conninfo = _checked(url)
        with _faults_of_connecting():
            psycopg.connect(conninfo, connect_timeout=_CONNECT_TIMEOUT_SECONDS).close()
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            conninfo,
            min_size=1,
            max_size=10,
            timeout=patience_seconds,
            open=True,
            kwargs={
                "row_factory": namedtuple_row,
                "application_name": "freehire_embed",
                "connect_timeout": _CONNECT_TIMEOUT_SECONDS,
                "keepalives_idle": 30,
            },
            configure=self._configure,
        )

    def _configure(self, connection: Connection) -> None:
        connection.autocommit = True
        connection.execute(query("session"))

    def close(self) -> None:
        self._pool.close(timeout=2)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A pooled connection in autocommit, for a caller that brings its own transaction rules."""
        with self._pool.connection() as connection:
            yield connection

    def rows(self, name: str, parameters: Parameters | None = None) -> list[Any]:
        """All rows of sql/queries/`name`.sql as named tuples, in a transaction of its own."""
        return self.transact(lambda connection: fetch(connection, name, parameters))

    def execute(self, name: str, parameters: Parameters | None = None) -> int:
        """Runs sql/queries/`name`.sql in a transaction of its own; returns how many rows it touched."""
        return self.transact(lambda connection: execute(connection, name, parameters))

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in one transaction, again after a lost connection or a deadlock, for some 30 s.

        `work` is repeated only when nothing of it was kept: where the connection breaks in COMMIT, Postgres is
        asked what became of the transaction, so that nothing is done twice or counted wrong.
        """
        deadline = time.monotonic() + self._patience
        pause = 0.05
        outrun = 0
        while True:
            xid: str | None = None
            try:
                with self._pool.connection() as connection, connection.transaction():
                    result = work(connection)
                    xid = fetch(connection, "xact_id")[0].xid
                return result
            except PoolTimeout as error:
                raise DatabaseDown(
                    f"Postgres (DATABASE_URL) gives no connection for {self._patience:.0f} s"
                ) from error
            except psycopg.Error as error:
                if xid is not None and self._committed(xid, deadline):
                    return result
                again = is_retryable(error)
                if is_outrun(error) and outrun < _OUTRUN_RETRIES:
                    again = True
                    outrun += 1
                if not again or time.monotonic() + pause > deadline:
                    raise translate(error) from error
                logger.warning("transaction ended with %s; trying again", type(error).__name__)
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            pause = min(pause * 2, 2)

    def _committed(self, xid: str, deadline: float) -> bool:
        """What became of a COMMIT without an answer; waits for one that is still under way."""
        while True:
            status = self.rows("xact_status", {"xid": xid})[0].status
            if status != "in progress" or time.monotonic() > deadline:
                return bool(status == "committed")
            time.sleep(0.05)


def fetch(connection: Connection, name: str, parameters: Parameters | None = None) -> list[Any]:
    """All rows of sql/queries/`name`.sql on `connection`."""
    return connection.execute(query(name), parameters).fetchall()


def execute(connection: Connection, name: str, parameters: Parameters | None = None) -> int:
    """Runs sql/queries/`name`.sql and returns how many rows it touched."""
    return connection.execute(query(name), parameters).rowcount


def _checked(url: SecretStr) -> str:
    conninfo = url.get_secret_value()
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        # the original text quotes parts of the URL, a password among them
        raise SettingsError(
            "DATABASE_URL is not a connection string; it looks like postgresql://user:password@host:5432/database"
        ) from None
    if conninfo.startswith(("postgresql://", "postgres://")) and _is_torn(parts):
        raise SettingsError(
            "DATABASE_URL: the password (or user) holds a character that ends it too early: percent-encode the "
            "password, such as %40 for @, %2F for /, %3A for : and %25 for %"
        )
    return conninfo


def _is_torn(parts: Mapping[str, Any]) -> bool:
    """Part of a password has landed in the host, port or name, which messages quote."""
    host, port, name = (str(parts.get(key) or "") for key in ("host", "port", "dbname"))
    ports = port.replace(",", "")
    return "@" in host or "@" in name or (ports != "" and not ports.isdecimal())


@contextmanager
def _faults_of_connecting() -> Iterator[None]:
    try:
        yield
    except psycopg.OperationalError as error:
        message = " ".join(str(error).split())
        # libpq gives no SQLSTATE for a refused login; these words are the server's own
        if any(
            word in message for word in ("authentication failed", "does not exist", "no pg_hba.conf entry")
        ):
            raise DatabaseMisfit(f"DATABASE_URL: {message}") from None
        raise DatabaseDown(
            f"DATABASE_URL: {message}; is the server running and reachable from here?"
        ) from None
