"""Enqueue and coverage over the whole catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import seed, yardsticks
from benchmarks.figures import Figure, median_seconds, seconds_of
from benchmarks.scratch import MODEL, outbox
from freehire_embed.store.coverage import measure_coverage

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch


def _template(scratch: Scratch, sizes: Sizes) -> str:
    def fill(connection: psycopg.Connection) -> None:
        seed.add_postings(connection, sizes.postings, eligible=sizes.eligible, stamped=True)
        # Narrow vectors, without triggers: what is counted is rows.
        connection.execute("set session_replication_role = replica")
        connection.execute("alter table job_semantic_chunks alter embedding type vector(8)")
        connection.execute(
            "insert into job_semantic_chunks (job_id, chunk_index, embedding) select id, i, "
            "'[1,0,0,0,0,0,0,0]' from jobs, generate_series(0, 1) i where is_tech and id % 100 > 0 order by id"
        )

    return scratch.prepared("catalogue", fill)


def enqueue(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    """Nothing stale, then a backlog that is queued already."""
    with scratch.database(_template(scratch, sizes)) as (database, connection):
        queue = outbox(database)
        steady = median_seconds(queue.enqueue, 15)
        scanned = median_seconds(
            lambda: yardsticks.without_indexes(connection, yardsticks.SCANNING_ENQUEUE, {"model": MODEL}), 3
        )
        yield Figure(
            "enqueue, nothing stale / by scan",
            steady / scanned,
            1 / 100,
            detail=f"{steady * 1000:.1f} ms against {scanned * 1000:,.0f} ms at {sizes.postings:,} postings",
        )
        connection.execute(
            "update jobs set semantic_embedded_model = 'before' "
            "where id in (select id from jobs where is_tech order by id limit %s)",
            [sizes.backlog],
        )
        connection.execute("vacuum analyze jobs")
        first = seconds_of(queue.enqueue)
        connection.execute("vacuum analyze semantic_outbox")
        burned_before = _last_identity(connection)
        again = median_seconds(queue.enqueue, 3)
        yield Figure(
            f"identity values burned by enqueue over {sizes.backlog:,}",
            _last_identity(connection) - burned_before,
            0,
            unit="",
        )
        yield Figure(
            "enqueue over that backlog again / first", again / first, detail=f"{again:.2f} of {first:.2f} s"
        )


def coverage(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    """Exact coverage, against a scan."""
    with scratch.database(_template(scratch, sizes)) as (database, connection):
        measured = median_seconds(lambda: database.rows("coverage", {"model": MODEL}), 5)
        whole = median_seconds(lambda: measure_coverage(database, MODEL, no_text=True), 3)
        scanned = median_seconds(
            lambda: yardsticks.without_indexes(connection, yardsticks.SCANNING_COVERAGE, {"model": MODEL}), 5
        )
        yield Figure(
            "coverage, exact / full scan",
            measured / scanned,
            1 / 4,
            detail=f"{measured * 1000:.0f} ms against {scanned * 1000:.0f} ms",
        )
        yield Figure(
            "coverage with its no_text / full scan", whole / scanned, detail=f"{whole * 1000:.0f} ms"
        )


def _last_identity(connection: psycopg.Connection) -> int:
    row = connection.execute(
        "select last_value from pg_sequences where sequencename = 'semantic_outbox_id_seq'"
    ).fetchone()
    return int(row[0]) if row and row[0] is not None else 0
