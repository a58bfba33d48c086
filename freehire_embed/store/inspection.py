"""What `doctor` asks Postgres about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehire_embed.store import circumstances, indexes, sessions

if TYPE_CHECKING:
    from freehire_embed.store.circumstances import ServerSetting
    from freehire_embed.store.database import Database
    from freehire_embed.store.indexes import Index


@dataclass(frozen=True, slots=True)
class Server:
    version: str
    version_number: int
    """As in server_version_num: 150004 is 15.4."""
    pgvector: tuple[int, ...] | None
    """None = the extension is not installed in this database."""
    pgvector_schema: str | None
    pgvector_usable: bool
    """Whether this role may use what lies in that schema."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A transaction that keeps dead rows alive."""

    what: str
    who: str
    handle: str
    """Process id, or the name of a prepared transaction."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger on inserts of chunks."""

    name: str
    enabled: bool
    per_row: bool
    wakes: bool
    """It speaks of search_outbox itself; else it may still do so by way of another function."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Traces of a writer under another identity."""

    identity: str
    rows: int
    what: str


def server(database: Database) -> Server:
    row = database.rows("doctor_server")[0]
    pgvector = tuple(int(part) for part in row.pgvector.split(".")) if row.pgvector else None
    return Server(row.version, row.version_number, pgvector, row.pgvector_schema, row.pgvector_usable)


def read_only(database: Database) -> str | None:
    """Why nothing can be written; None where it can."""
    return database.transact(circumstances.read_only_because)


def is_pooled(database: Database) -> bool:
    """Whether a pooler stands before the server."""
    return database.transact(sessions.is_pooled)


def limits(database: Database) -> list[ServerSetting]:
    """Settings of the server that end what takes this role long."""
    # Our transactions have a lock_timeout of their own.
    names = [name for name in sessions.LIMITS if name != "lock_timeout"]
    return database.transact(lambda connection: circumstances.server_settings(connection, names))


def postings(database: Database) -> float:
    """How many the planner reckons with."""
    rows = database.rows("doctor_postings")
    return float(rows[0].postings) if rows else 0.0


def hidden_by_policies(database: Database) -> list[str]:
    """Tables of which row level security may hide rows from this role."""
    return [row.name for row in database.rows("doctor_row_security")]


def triggers(database: Database) -> list[Trigger]:
    """What inserts into the chunks fire, as far as it may wake the search."""
    return [Trigger(*row) for row in database.rows("doctor_triggers")]


def other_writers(database: Database) -> list[Writer]:
    """Who seems to work the same tables under another identity."""
    return [Writer(*row) for row in database.rows("doctor_writers")]


def present_indexes(database: Database) -> list[Index]:
    """Every index on the tables that we have indexes on."""
    return database.transact(indexes.present)


def vectors_in_rows(database: Database) -> bool:
    """Whether the vectors are stored PLAIN. Their table has to be there."""
    return bool(database.rows("doctor_storage")[0].plain)


def lacking_privileges(database: Database) -> list[str]:
    """Rights that a run needs and the current role does not have. The tables have to be there."""
    return [row.lacking for row in database.rows("doctor_privileges")]


def old_snapshots(database: Database, older_than_seconds: int) -> list[Snapshot]:
    """Transactions of this database open for longer than that, as far as the current role may see them."""
    rows = database.rows("doctor_snapshots", {"older_than": older_than_seconds})
    return [Snapshot(*row) for row in rows]
