"""What `doctor` asks Postgres about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from freehire_embed.store.database import Database


@dataclass(frozen=True, slots=True)
class Server:
    version: str
    version_number: int
    """As in server_version_num: 150004 is 15.4."""
    pgvector: tuple[int, ...] | None
    """None = the extension is not installed in this database."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A transaction that keeps dead rows alive."""

    what: str
    who: str
    handle: str
    """Process id, or the name of a prepared transaction."""
    seconds: float


def server(database: Database) -> Server:
    row = database.rows("doctor_server")[0]
    pgvector = tuple(int(part) for part in row.pgvector.split(".")) if row.pgvector else None
    return Server(row.version, row.version_number, pgvector)


def broken_indexes(database: Database, names: Iterable[str]) -> dict[str, bool]:
    """Those of `names` that cannot be used: True = missing, False = left invalid by a build that failed."""
    return {row.name: row.missing for row in database.rows("doctor_indexes", {"names": list(names)})}


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
