"""What stands behind an error of Postgres: who holds the lock, whose setting cancelled, why nothing can be written.

The error itself does not tell, so it is asked on another connection, at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import psycopg

from freehire_embed.queries import query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from freehire_embed.store.database import Connection

_SOURCES = {
    "user": "ALTER ROLE {role} SET",
    "database": "ALTER DATABASE {database} SET",
    "database user": "ALTER ROLE {role} IN DATABASE {database} SET",
    "configuration file": "the server's configuration",
    "command line": "the server's command line",
    "client": "the options of DATABASE_URL or PGOPTIONS",
}


class ServerSetting(NamedTuple):
    """A setting of the server that is in force for us; 0 and off count as not set."""

    name: str
    value: str
    source: str
    """As in pg_settings."""
    role: str
    database: str
    seconds: float | None
    """Of a time-out."""

    def __str__(self) -> str:
        return f"{self.name} is {self.value}, set by {self.by}"

    @property
    def by(self) -> str:
        """The statement or place that sets it."""
        return _SOURCES.get(self.source, self.source).format(role=self.role, database=self.database)


def server_settings(connection: Connection, names: Iterable[str]) -> list[ServerSetting]:
    """Those of `names` that are set."""
    rows = connection.execute(query("session_settings"), {"names": list(names)}).fetchall()
    return [ServerSetting(*row) for row in rows]


def blocker(connection: Connection, *, readers: bool) -> str:
    """Who locks our tables for the longest time; `readers` count where a table is to be changed."""
    found = connection.execute(query("migrations_blocker"), {"readers": readers}).fetchone()
    if found is None:
        return "a table was locked by somebody who is gone by now"
    relation, pid, role, application, seconds = found
    by = ", ".join(word for word in (application, f"role {role}" if role else "") if word)
    since = "" if seconds is None else f", in a transaction for {seconds:.0f} s"
    return f"{relation} is locked by pid {pid}{f' ({by})' if by else ''}{since}"


def _canceller(connection: Connection) -> str:
    settings = server_settings(connection, ["statement_timeout"])
    if settings:
        return str(settings[0])
    return "somebody cancelled it (pg_cancel_backend), or a statement_timeout that is gone by now"


def read_only_because(connection: Connection) -> str | None:
    """Why nothing can be written; None where it can."""
    standby, read_only = connection.execute(query("session_read_only")).fetchone() or (False, False)
    if standby:
        return "it is a standby"
    if not read_only:
        return None
    settings = server_settings(connection, ["default_transaction_read_only"])
    return str(settings[0]) if settings else "its transactions are"


def _owner(connection: Connection) -> str:
    (owner, role) = connection.execute(query("session_owner")).fetchone() or ("?", "?")
    return f"this is role {role}, the tables are owned by {owner}"


_ASKED: dict[str, Callable[[Connection], str]] = {
    "55P03": lambda connection: blocker(connection, readers=False),
    "57014": _canceller,
    "25006": lambda connection: read_only_because(connection) or "it is not any more",
    "42501": _owner,
}


def can_be_asked(error: psycopg.Error) -> bool:
    return error.sqlstate in _ASKED


def behind(error: psycopg.Error, connection: Connection) -> str:
    """In a few words, what `can_be_asked` about `error`."""
    return _ASKED[error.sqlstate or ""](connection)
