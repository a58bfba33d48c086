"""The HNSW index over the vectors: what it costs, and how to do without it while everything is embedded anew.

With the index a wave's commit takes 40 to 65 times as long (docs/performance.md), so a full re-embed drops it and
builds it at the end. Meanwhile search compares every vector: exact, and slow in proportion to the table.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehire_embed.queries import SQL_DIR
from freehire_embed.store import indexes
from freehire_embed.store.database import Connection, fetch
from freehire_embed.store.faults import DatabaseMisfit, for_the_owner
from freehire_embed.store.identities import vector_width
from freehire_embed.store.sessions import unhurried

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from freehire_embed.store.database import Database

logger = logging.getLogger(__name__)

NAME = "job_semantic_chunks_embedding_idx"
"""As built by the migration of that name; an existing database may have its own."""
_DEFINITION = SQL_DIR / "migrations" / "0016_job_semantic_chunks_embedding.sql"

# A rebuild costs 0.35-0.45 ms a row of the table, upkeep 1.6-2.3 ms a row that changes (docs/performance.md).
REBUILD_PAYS_ABOVE = 0.20
# pgvector keeps the graph in maintenance_work_mem while it fits: 4 bytes a dimension and 0.8 KB of links (m = 16).
_LINK_BYTES = 800
_EXACT_BELOW = 100_000
_PROGRESS_EVERY_SECONDS = 2.0

ADVICE = (
    "over a fifth of the vectors will change: `freehire-embed index drop` before and `freehire-embed index build` "
    "after is quicker; meanwhile search compares every vector"
)
"""Where `rebuild_pays`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A build that is going on."""

    phase: str
    """As Postgres calls it; "building index: loading tuples" is most of the time."""
    done: int
    total: int
    """Rows, or blocks where the phase counts those; 0 = not known."""
    waits_for: int | None
    """Process id of an older transaction that the build has to wait for."""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The answer of `index status`; its fields are the keys of `index status --json`."""

    rows: int
    """Vectors in the table; beyond 100,000 as the planner estimates."""
    valid: tuple[str, ...]
    """Indexes that serve queries; more than one is a waste of every commit."""
    invalid: tuple[str, ...]
    """Left by builds that failed, or still being built."""
    other: tuple[str, ...]
    """Of another operator class or over a part of the rows: they cost every commit and serve no query of ours."""
    bytes: int
    graph_bytes: int
    """What a build wants in memory."""
    memory_bytes: int
    """maintenance_work_mem of the server."""
    building: tuple[Progress, ...]

    @property
    def fits(self) -> bool:
        return self.graph_bytes <= self.memory_bytes


def look(database: Database) -> VectorIndex:
    """The state of the index. Raises DatabaseMisfit before the first migration."""
    width = vector_width(database)
    if width is None:
        raise DatabaseMisfit("there is no table job_semantic_chunks: run `freehire-embed migrate`")
    found = database.rows("index_find")
    rows = _count(database)
    return VectorIndex(
        rows=rows,
        valid=tuple(row.name for row in found if row.valid and row.serves),
        invalid=tuple(row.name for row in found if not row.valid),
        other=tuple(row.name for row in found if row.valid and not row.serves),
        bytes=sum(row.bytes for row in found),
        graph_bytes=rows * (4 * width + _LINK_BYTES),
        memory_bytes=database.rows("index_memory")[0].bytes,
        building=_progress(database),
    )


def is_served(connection: Connection) -> bool:
    """Whether there is a valid vector index, under whatever name."""
    return any(row.valid and row.serves for row in fetch(connection, "index_find"))


def _count(database: Database) -> int:
    estimate = int(database.rows("index_rows_estimate")[0][0][0]["Plan"]["Plan Rows"])
    return estimate if estimate >= _EXACT_BELOW else int(database.rows("index_rows")[0].rows)


def rebuild_pays(database: Database, changes: int) -> VectorIndex | None:
    """The state of the index when dropping it before so many passages are written pays, else None."""
    state = look(database)
    after = max(state.rows, changes)
    return state if state.valid and changes > REBUILD_PAYS_ABOVE * after else None


def drop(database: Database) -> list[str]:
    """Drops every vector index that serves us, valid or not, without blocking anyone; returns their names.

    Raises DatabaseFault, also while a build is going on in another session.
    """
    if _progress(database):
        raise DatabaseMisfit("the vector index is being built: wait for it, or end that session first")
    state = look(database)
    names = [*state.valid, *state.invalid]
    _drop(database, names)
    return names


def _drop(database: Database, names: Collection[str]) -> None:
    if not names:
        return
    with for_the_owner("dropping an index"), unhurried(database) as connection:
        for name in names:
            indexes.drop(connection, name)


def build(
    database: Database, memory: str | None = None, report: Callable[[Progress], None] | None = None
) -> bool:
    """Builds the index concurrently, readers and writers go on; False when a valid one is there already.

    `memory` is maintenance_work_mem for this build ("8GB"). Invalid leftovers are dropped first. `report` is told
    the progress every few seconds, from another thread. Raises DatabaseFault; an interrupt ends the build and
    leaves an invalid index, which the next build drops.
    """
    state = look(database)
    if state.building:
        raise DatabaseMisfit("the vector index is being built by another session already")
    _drop(database, state.invalid)
    if state.valid:
        return False
    with (
        for_the_owner("building an index"),
        unhurried(database, memory) as connection,
        _told(database, report),
    ):
        indexes.create(connection, _DEFINITION.read_bytes(), NAME)
    return True


@contextmanager
def _told(database: Database, report: Callable[[Progress], None] | None) -> Iterator[None]:
    over = threading.Event()

    def watch() -> None:
        while report and not over.wait(_PROGRESS_EVERY_SECONDS):
            try:
                for progress in _progress(database):
                    report(progress)
            except Exception as error:  # noqa: BLE001 - the build goes on without being watched
                logger.warning("progress not known: %s", error)

    watcher = threading.Thread(target=watch, name="index-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(_PROGRESS_EVERY_SECONDS)


def _progress(database: Database) -> tuple[Progress, ...]:
    return tuple(
        Progress(
            phase=row.phase,
            done=row.tuples_done or row.blocks_done,
            total=row.tuples_total or row.blocks_total,
            waits_for=row.current_locker_pid or None,
        )
        for row in database.rows("index_progress")
    )
