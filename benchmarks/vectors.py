"""The HNSW index: what it costs a commit, what a build costs, what a search without it costs."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import seed, yardsticks
from benchmarks.figures import Figure, median_seconds, seconds_of
from benchmarks.scratch import PROFILE, outbox
from benchmarks.wave import CHUNKS, commit_waves
from freehire_embed.store import vector_index
from freehire_embed.store.commit import _binary_rows
from freehire_embed.store.search import find_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch

_PART = 10_000
_WAVES = 5


def run(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    with scratch.database() as (database, connection):
        postings = sizes.indexed // CHUNKS
        waves = _WAVES * 2 * sizes.wave
        seed.add_postings(connection, postings + waves, eligible=postings + waves, stamped=True)
        _fill(connection, postings)
        seed.add_entries(connection, waves, last=True)
        connection.execute("vacuum analyze")
        query = yardsticks.vectors(1, seed=7)[0]
        without = median_seconds(lambda: find_nearest(database, PROFILE, query, 10), 3)
        bare = statistics.median(commit_waves(outbox(database, "bare"), sizes.wave, _WAVES)[0])
        built = seconds_of(lambda: vector_index.build(database))
        size = vector_index.look(database).bytes
        indexed = statistics.median(commit_waves(outbox(database, "indexed"), sizes.wave, _WAVES)[0])
        within = median_seconds(lambda: find_nearest(database, PROFILE, query, 10), 3)
        rows = vector_index.look(database).rows
    chunks = CHUNKS * sizes.wave
    yield Figure(
        "HNSW: rows/s of a build / of commits beside it",
        (rows / built) / (chunks / indexed),
        3,
        at_least=True,
        detail=f"{rows:,} rows in {built:.0f} s; a commit of {chunks:,} in {indexed:.1f} s, without {bare:.2f} s",
    )
    yield Figure(
        "HNSW: share of rows above which a rebuild is quicker", (built / rows) / (indexed / chunks), unit=""
    )
    yield Figure("HNSW: size", size / rows / 1024, unit="kB/row")
    yield Figure(
        "search without the index / with it",
        without / within,
        detail=f"{without * 1000:.0f} ms at {rows:,} rows",
    )


def _fill(connection: psycopg.Connection, postings: int) -> None:
    connection.execute("set session_replication_role = replica")  # no triggers: only the rows count
    ids = [row[0] for row in connection.execute("select id from jobs order by id limit %s", [postings])]
    for start in range(0, postings, _PART // CHUNKS):
        part = ids[start : start + _PART // CHUNKS]
        made = yardsticks.vectors(CHUNKS * len(part), seed=start)
        rows = [
            (job_id, index, made[CHUNKS * place + index], bytes(np.random.default_rng(job_id).bytes(32)))
            for place, job_id in enumerate(part)
            for index in range(CHUNKS)
        ]
        with connection.cursor().copy(
            "copy job_semantic_chunks (job_id, chunk_index, embedding, passage_sha256) from stdin (format binary)"
        ) as copy:
            copy.write(_binary_rows(rows))
    connection.execute("reset session_replication_role")
