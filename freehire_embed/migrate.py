"""Applies `sql/migrations` in order: each once, each in its own transaction, one migrator at a time.

A migration waits for a lock two seconds at a time, since every reader queues behind it, and gives up after a
minute. One whose first line reads `-- concurrently: NAME` builds the index NAME outside a transaction, so that a
live table stays writable. A concurrent build that failed leaves an invalid index behind; it is dropped and built
again.
"""

from __future__ import annotations

import logging
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from freehire_embed.profiles import MAX_WIDTH
from freehire_embed.queries import SQL_DIR, query
from freehire_embed.settings import SettingsError
from freehire_embed.store import vector_index
from freehire_embed.store.database import fetch
from freehire_embed.store.faults import DatabaseDown, DatabaseMisfit, RowRejected, translate
from freehire_embed.store.identities import vector_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from freehire_embed.store.database import Connection, Database

logger = logging.getLogger(__name__)

IDENTITIES = "0005_semantic_models"
"""The migration after which a database can be asked for its target."""
_PATIENCE_SECONDS = 60
# Between two tries, for the readers that queued behind the one before.
_PAUSE_SECONDS = 1.0
_CONCURRENTLY = re.compile(r"-- concurrently: (\w+)\n")
# What we read of a `jobs` table that somebody else made.
_READ_COLUMNS = frozenset(
    {"id", "source", "external_id", "url", "title", "company", "company_slug", "description", "public_slug"}
    | {"posted_at", "created_at", "closed_at", "duplicate_of", "is_tech", "is_private", "content_hash"}
)


def migrate(
    database: Database,
    width: int,
    report: Callable[[str], None] | None = None,
    *,
    patience_seconds: float = _PATIENCE_SECONDS,
) -> list[str]:
    """Brings the schema up to date for vectors of `width`; returns the names of the migrations applied.

    Works on an empty database and on an existing freehire one, where it adds what is missing and changes no
    column. Raises SettingsError when `width` is over MAX_WIDTH; DatabaseMisfit when pgvector or rights are missing,
    when `jobs` lacks a column that we read, or when the vectors there have another width; DatabaseDown when a table
    stays locked for `patience_seconds`.
    """
    if not 1 <= width <= MAX_WIDTH:
        raise SettingsError(
            f"vectors of width {width} cannot be indexed: an HNSW index takes 1 to {MAX_WIDTH}"
        )
    applied = []
    with database.connection() as connection, _alone(connection), _explained():
        _install_pgvector(connection)
        connection.execute(query("migrations_table"))
        _check_existing(database, connection, width)
        done = {row[0] for row in connection.execute(query("migrations_applied"))}
        for path in migrations():
            if path.stem in done and not _is_invalid_index(connection, path):
                continue
            if report:
                report(path.stem)
            _apply(connection, path, width, patience_seconds)
            applied.append(path.stem)
    return applied


def migrations() -> list[Path]:
    """The migration files in the order in which they are applied."""
    return sorted((SQL_DIR / "migrations").glob("[0-9]*.sql"))


def pending(database: Database) -> list[str]:
    """Names of migrations that this database lacks; all of them on an empty one."""
    with _explained(), database.connection() as connection:
        if connection.execute(query("migrations_exist")).fetchone() == (None,):
            return [path.stem for path in migrations()]
        done = {row[0] for row in connection.execute(query("migrations_applied"))}
    return [path.stem for path in migrations() if path.stem not in done]


def index_names() -> dict[str, str]:
    """The indexes that migrations build concurrently, each with its migration."""
    named = {_index_name(path): path.stem for path in migrations()}
    return {index: stem for index, stem in named.items() if index is not None}


def _apply(connection: Connection, path: Path, width: int, patience_seconds: float) -> None:
    statement = path.read_bytes().replace(b"${width}", str(width).encode())
    index = _index_name(path)
    if index is None:
        _in_haste(connection, path.stem, statement, time.monotonic() + patience_seconds)
        return
    connection.execute(query("migrations_patience"))
    if _is_invalid_index(connection, path):
        logger.warning("index %s is left over from a build that failed; building it again", index)
        connection.execute(
            psycopg.sql.SQL("drop index concurrently {}").format(psycopg.sql.Identifier(index))
        )
    if index != vector_index.NAME or not vector_index.is_served(connection):
        connection.execute(statement)
    connection.execute(query("migrations_record"), {"name": path.stem})


def _in_haste(connection: Connection, name: str, statement: bytes, deadline: float) -> None:
    while True:
        try:
            with connection.transaction():
                connection.execute(query("migrations_haste"))
                connection.execute(statement)
                connection.execute(query("migrations_record"), {"name": name})
            return
        except psycopg.errors.LockNotAvailable as error:
            blocker = _blocker(connection)
            if time.monotonic() > deadline:
                raise DatabaseDown(
                    f"{name} was not applied: {blocker}; try again when that is done"
                ) from error
            logger.warning("%s has to wait: %s; trying again", name, blocker)
        time.sleep(_PAUSE_SECONDS)


def _blocker(connection: Connection) -> str:
    found = fetch(connection, "migrations_blocker")
    if not found:
        return "a table was locked by somebody who is gone by now"
    held = found[0]
    by = f"pid {held.pid}" + (f" ({held.application})" if held.application else "")
    return f"{held.relation} is locked by {by}, in a transaction for {held.seconds or 0:.0f} s"


def _index_name(path: Path) -> str | None:
    match = _CONCURRENTLY.match(path.read_text(encoding="utf-8"))
    return match.group(1) if match else None


def _is_invalid_index(connection: Connection, path: Path) -> bool:
    index = _index_name(path)
    if index is None:
        return False
    return connection.execute(query("migrations_invalid_index"), {"index": index}).fetchone() is not None


def _install_pgvector(connection: Connection) -> None:
    try:
        connection.execute(query("migrations_pgvector"))
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseMisfit(
            "pgvector is not installed in this database and this role may not install it: let a superuser run "
            "CREATE EXTENSION vector"
        ) from error
    except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported) as error:
        raise DatabaseMisfit(
            "this PostgreSQL has no pgvector: install the package (such as postgresql-18-pgvector) on the server"
        ) from error


def _check_existing(database: Database, connection: Connection, width: int) -> None:
    there = {row[0] for row in connection.execute(query("migrations_jobs_columns"))}
    if there and not there >= _READ_COLUMNS:
        missing = ", ".join(sorted(_READ_COLUMNS - there))
        raise DatabaseMisfit(f"the existing table jobs is not freehire's: it has no {missing}")
    existing = vector_width(database)
    if existing is not None and existing != width:
        raise DatabaseMisfit(
            f"job_semantic_chunks.embedding is {existing} wide, asked for is {width}: set EMBED_MODEL (or "
            "--width) to a profile of that width, or use another database"
        )


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """One migrator at a time. A session lock, since index builds need to be outside transactions."""
    waiting = False
    while not fetch(connection, "migrations_lock")[0].taken:
        if not waiting:
            logger.warning("another migrator is at work; waiting for it to end")
        waiting = True
        time.sleep(_PAUSE_SECONDS)
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(query("migrations_unlock"))


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        fault = translate(error)
        if isinstance(fault, RowRejected):
            raise DatabaseMisfit(f"the schema cannot be brought up to date: {fault}") from error
        raise fault from error
