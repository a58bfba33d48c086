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
from freehire_embed.store import circumstances, indexes, vector_index
from freehire_embed.store.database import execute, fetch, transaction
from freehire_embed.store.faults import DatabaseDown, DatabaseMisfit, RowRejected, for_the_owner
from freehire_embed.store.sessions import unhurried

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
    with (
        for_the_owner("migrate"),
        _explained(database),
        _alone(database),
        database.connection() as connection,
    ):
        with transaction(connection):
            _check_existing(connection, width)
            _install_pgvector(connection)
            connection.execute(query("migrations_table"))
            done = {row.name for row in fetch(connection, "migrations_applied")}
        for path in migrations():
            if _apply(database, connection, path, width, patience_seconds, report, done=path.stem in done):
                applied.append(path.stem)
    return applied


def migrations() -> list[Path]:
    """The migration files in the order in which they are applied."""
    return sorted((SQL_DIR / "migrations").glob("[0-9]*.sql"))


def pending(database: Database) -> list[str]:
    """Names of migrations that this database lacks; all of them on an empty one."""
    done: set[str] = set()
    if database.rows("migrations_exist")[0].there:
        done = {row.name for row in database.rows("migrations_applied")}
    return [path.stem for path in migrations() if path.stem not in done]


def index_names() -> dict[str, str]:
    """The indexes that migrations build concurrently, each with its migration."""
    named = {_index_name(path): path.stem for path in migrations()}
    return {index: stem for index, stem in named.items() if index is not None}


def _apply(
    database: Database,
    connection: Connection,
    path: Path,
    width: int,
    patience_seconds: float,
    report: Callable[[str], None] | None,
    *,
    done: bool,
) -> bool:
    """True when something had to be done. Indexes are looked at each time: they get lost, or are left invalid."""
    index = _index_name(path)
    if done and (index is None or not _is_wanted(connection, index)):
        return False
    if report:
        report(path.stem)
    if index is None:
        statement = path.read_bytes().replace(b"${width}", str(width).encode())
        _in_haste(connection, path.stem, statement, time.monotonic() + patience_seconds)
        return True
    with unhurried(database) as session:
        if index != vector_index.NAME or not vector_index.is_served(session):
            indexes.ensure(session, index, path.read_bytes())
    with transaction(connection):
        execute(connection, "migrations_record", {"name": path.stem})
    return True


def _is_wanted(connection: Connection, name: str) -> bool:
    """Whether an index that was there once has to be built; the vector index may have been dropped on purpose."""
    with transaction(connection):
        same = indexes.serving(indexes.expected()[name], indexes.present(connection))
    if any(index.valid for index in same):
        return False
    return bool(same) or name != vector_index.NAME


def _in_haste(connection: Connection, name: str, statement: bytes, deadline: float) -> None:
    while True:
        try:
            with transaction(connection):
                execute(connection, "migrations_haste")
                connection.execute(statement)
                execute(connection, "migrations_record", {"name": name})
            return
        except psycopg.errors.LockNotAvailable as error:
            with transaction(connection):
                blocker = circumstances.blocker(connection, readers=True)
            if time.monotonic() > deadline:
                raise DatabaseDown(
                    f"{name} was not applied: {blocker}; try again when that is done"
                ) from error
            logger.warning("%s has to wait: %s; trying again", name, blocker)
        time.sleep(_PAUSE_SECONDS)


def _index_name(path: Path) -> str | None:
    match = _CONCURRENTLY.match(path.read_text(encoding="utf-8"))
    return match.group(1) if match else None


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


def _check_existing(connection: Connection, width: int) -> None:
    astray = fetch(connection, "migrations_astray")
    if astray:
        raise DatabaseMisfit(
            f"{astray[0].name} lies in the schema {astray[0].schema} and belongs into public: ALTER TABLE "
            f"{astray[0].schema}.{astray[0].name} SET SCHEMA public, the other tables likewise"
        )
    there = {row.attname for row in fetch(connection, "migrations_jobs_columns")}
    if there and not there >= _READ_COLUMNS:
        missing = ", ".join(sorted(_READ_COLUMNS - there))
        raise DatabaseMisfit(f"the existing table jobs is not freehire's: it has no {missing}")
    existing = fetch(connection, "vector_width")
    if existing and existing[0].width != width:
        raise DatabaseMisfit(
            f"job_semantic_chunks.embedding is {existing[0].width} wide, asked for is {width}: set EMBED_MODEL (or "
            "--width) to a profile of that width, or use another database"
        )


@contextmanager
def _alone(database: Database) -> Iterator[None]:
    """One migrator at a time, by a lock that a transaction of its own holds: a pooler keeps no session's locks."""
    waiting = False
    with database.connection() as guard:
        while True:
            with transaction(guard):
                if fetch(guard, "migrations_lock")[0].taken:
                    yield
                    return
            if not waiting:
                logger.warning("another migrator is at work; waiting for it to end")
            waiting = True
            time.sleep(_PAUSE_SECONDS)


@contextmanager
def _explained(database: Database) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        fault = database.fault(error)
        if isinstance(fault, RowRejected):
            raise DatabaseMisfit(f"the schema cannot be brought up to date: {fault}") from error
        raise fault from error
