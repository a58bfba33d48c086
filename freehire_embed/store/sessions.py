"""A connection for what cannot stand in a transaction: concurrent builds and drops of indexes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from freehire_embed.store.circumstances import server_settings
from freehire_embed.store.database import execute, fetch
from freehire_embed.store.faults import DatabaseMisfit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehire_embed.store.circumstances import ServerSetting
    from freehire_embed.store.database import Connection, Database

LIMITS = ("statement_timeout", "lock_timeout", "transaction_timeout")
"""Settings of the server that would end a build that takes hours."""


@contextmanager
def unhurried(database: Database, memory: str | None = None) -> Iterator[Connection]:
    """A connection in autocommit on which nothing ends a statement; `memory` = maintenance_work_mem on it.

    That takes a session. Through a pooler there is none, so DatabaseMisfit is raised where the server has a limit
    that would have to be lifted, or where `memory` is given; else nothing has to be set. What is sent meets the
    role's own search_path.
    """
    try:
        with database.connection() as connection:
            limits = server_settings(connection, LIMITS)
            if not limits and memory is None:
                yield connection
                return
            if is_pooled(connection):
                raise DatabaseMisfit(
                    f"{_unliftable(limits)}: let DATABASE_URL name the server, not the pooler"
                )
            fetch(connection, "session_unhurried", {"memory": memory})
            try:
                yield connection
            finally:
                if not connection.closed:
                    execute(connection, "session_restore")
    except psycopg.errors.InvalidParameterValue as error:
        raise DatabaseMisfit(f"--memory: {error.diag.message_primary}") from error
    except psycopg.Error as error:
        raise database.fault(error) from error


def is_pooled(connection: Connection) -> bool:
    """Whether a pooler stands between, in whatever mode."""
    return bool(fetch(connection, "session_pooled", {"pid": connection.info.backend_pid})[0].pooled)


def _unliftable(limits: list[ServerSetting]) -> str:
    if not limits:
        return "maintenance_work_mem cannot be set through a pooler"
    return f"{limits[0]}; the build of an index takes longer, and through a pooler that cannot be lifted"
