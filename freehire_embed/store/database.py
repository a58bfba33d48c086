"""Connections and transactions: one pool, bounded retries, and an answer to "did it commit?"."""

from __future__ import annotations

import logging
import random
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import psycopg
from psycopg import errors
from psycopg.rows import namedtuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from freehire_embed.queries import query
from freehire_embed.store import circumstances
from freehire_embed.store.connecting import PARAMETERS, checked, faults_of_connecting, refuse_encoding
from freehire_embed.store.faults import (
    DatabaseDown,
    RowRejected,
    is_outrun,
    is_retryable,
    translate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import SecretStr

logger = logging.getLogger(__name__)

Connection = psycopg.Connection[NamedTuple]
Parameters = dict[str, Any]
T = TypeVar("T")

# A restarted server is back within seconds; a run that waits longer had better fail and be started again.
_PATIENCE_SECONDS = 30
_OUTRUN_RETRIES = 2
_ASK_SECONDS = 2


class Database:
    """A small pool on one Postgres; thread-safe.

    Behind a transaction pooler two transactions need not meet the same server connection, so nothing is kept on
    one: no prepared statement, setting, lock or temporary table outlives its transaction.

    Raises DatabaseDown or DatabaseMisfit when it cannot connect, and RowRejected when a row is at fault.
    """

    def __init__(self, url: SecretStr, *, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self._patience = patience_seconds
        self._conninfo = conninfo = checked(url)
        with faults_of_connecting(), psycopg.connect(conninfo, **PARAMETERS) as connection:
            refuse_encoding(connection)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            conninfo,
            min_size=1,
            max_size=10,
            timeout=patience_seconds,
            open=True,
            kwargs={
                **PARAMETERS,
                "row_factory": namedtuple_row,
                "autocommit": True,
                "prepare_threshold": None,
            },
        )

    def close(self) -> None:
        self._pool.close(timeout=2)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in autocommit, for a caller that brings its own `transaction`s.

        What is sent outside of them meets the role's own search_path and time-outs.
        """
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
                with self._pool.connection() as connection, transaction(connection):
                    result = work(connection)
                    xid = fetch(connection, "xact_id")[0].xid
                return result
            except PoolTimeout as error:
                with faults_of_connecting():  # the pool does not tell why
                    psycopg.connect(self._conninfo, **PARAMETERS).close()
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
                    raise self.fault(error) from error
                logger.warning("transaction ended with %s; trying again", type(error).__name__)
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            pause = min(pause * 2, 2)

    def fault(self, error: psycopg.Error) -> Exception:
        """What `error` amounts to, with what Postgres tells about it on another connection."""
        because = ""
        if circumstances.can_be_asked(error):
            # Whatever goes wrong here, the fault is the one that is told.
            with (
                suppress(psycopg.Error, PoolTimeout),
                self._pool.connection(timeout=_ASK_SECONDS) as connection,
                transaction(connection),
            ):
                because = circumstances.behind(error, connection)
        return translate(error, because)

    def _committed(self, xid: str, deadline: float) -> bool:
        """What became of a COMMIT without an answer; waits for one that is still under way."""
        while True:
            try:
                status = self.rows("xact_status", {"xid": xid})[0].status
            except RowRejected as error:
                if isinstance(error.__cause__, errors.InvalidParameterValue):
                    return False  # a failover lost it: the server that answers now never came that far
                raise
            if status != "in progress" or time.monotonic() > deadline:
                return bool(status == "committed")
            time.sleep(0.05)


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """One transaction on `connection`, with the settings that all our statements count on."""
    connection.execute(query("session"))
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error):
            connection.rollback()
        raise
    connection.commit()


def fetch(connection: Connection, name: str, parameters: Parameters | None = None) -> list[Any]:
    """All rows of sql/queries/`name`.sql on `connection`."""
    return connection.execute(query(name), parameters).fetchall()


def execute(connection: Connection, name: str, parameters: Parameters | None = None) -> int:
    """Runs sql/queries/`name`.sql and returns how many rows it touched."""
    return connection.execute(query(name), parameters).rowcount
