"""The queue at a million entries: claims, a long drain, several claimers, depth."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from pydantic import SecretStr

from benchmarks import seed, yardsticks
from benchmarks.figures import Figure, median_seconds
from benchmarks.scratch import outbox
from freehire_embed.domain import Document
from freehire_embed.store.coverage import semantic_outbox_claimable_depth
from freehire_embed.store.database import Database
from freehire_embed.waves import EmbeddedDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Barrier

    import psycopg

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch
    from freehire_embed.store.outbox import SemanticOutbox

_CLAIMS = 15
_ready: Barrier


def _template(scratch: Scratch, sizes: Sizes) -> str:
    def fill(connection: psycopg.Connection) -> None:
        seed.add_postings(connection, sizes.entries, eligible=sizes.entries)
        seed.add_entries(connection, sizes.entries)

    return scratch.prepared("queue", fill)


def claim(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    """Claims, against those sorted through a join, and with many leased entries at the head."""
    with scratch.database(_template(scratch, sizes)) as (database, connection):
        joined = median_seconds(lambda: _rolled_back(connection, yardsticks.JOIN_SORTED_CLAIM), 3)
        queue = outbox(database)
        free = median_seconds(lambda: queue.claim(sizes.wave), _CLAIMS)
        connection.execute(
            "update semantic_outbox set claimed_at = now() where id in (select id from semantic_outbox "
            "where claimed_at is null order by job_posted_at desc limit %s)",
            [sizes.leased],
        )
        connection.execute("vacuum analyze semantic_outbox")
        leased = median_seconds(lambda: queue.claim(sizes.wave), _CLAIMS)
    yield Figure(
        "claim / claim sorted through a join",
        free / joined,
        1 / 50,
        detail=f"{free * 1000:.1f} ms against {joined * 1000:,.0f} ms at {sizes.entries:,} entries",
    )
    yield Figure(
        f"claim with {sizes.leased:,} leased at the head",
        leased / free,
        5,
        detail=f"{leased * 1000:.1f} ms",
    )


def drain(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    """A long drain: claims and ends, wave after wave."""
    with scratch.database(_template(scratch, sizes)) as (database, connection):
        before = _size(connection)
        queue = outbox(database)
        claims = [_claim_and_end(queue, sizes.wave) for _ in range(sizes.drained // sizes.wave)]
        grown = [after - size for after, size in zip(_size(connection), before, strict=True)]
    tenth = max(len(claims) // 10, 1)
    first, last = statistics.median(claims[:tenth]), statistics.median(claims[-tenth:])
    yield Figure(
        f"drain of {sizes.drained:,}: last tenth's claims / first's",
        last / first,
        1.5,
        detail=f"{first * 1000:.1f} -> {last * 1000:.1f} ms",
    )
    yield Figure(
        "growth of the queue's heap and indexes in it",
        sum(grown) / 1e6,
        1.0,
        unit="MB",
        detail=f"heap {grown[0] / 1e6:.1f}, indexes {grown[1] / 1e6:.1f}",
    )


def claimers(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    """Four claimers at once against one, each a process, as runs are."""
    waves = max(sizes.drained // sizes.wave // 8, 4)
    with scratch.database(_template(scratch, sizes)) as (_, connection):
        url = scratch.url(connection.info.dbname)
        one, _alone = _claim_together(url, 1, waves, sizes.wave)
        four, lists = _claim_together(url, 4, waves, sizes.wave)
    everything = [entry for taken in lists for entry in taken]
    yield Figure(
        "four claimers that claim and delete / one",
        4 * one / four,
        1.5,
        at_least=True,
        detail=f"{len(everything) / four:,.0f} entries/s",
    )
    yield Figure("entries claimed twice", len(everything) - len(set(everything)), 0, unit="")
    yield Figure(
        "least of the four / its share",
        4 * min(map(len, lists)) / len(everything),
        0.9,
        at_least=True,
        unit="",
    )


def depth(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    """Depth while the visibility map is cold, against counting."""
    with scratch.database(_template(scratch, sizes)) as (database, connection):
        connection.execute("alter table semantic_outbox set (autovacuum_enabled = off)")
        connection.execute("update semantic_outbox set attempts = attempts where id % 40 = 0")
        exact = median_seconds(
            lambda: connection.execute("select count(*) from semantic_outbox where failed_at is null"), 3
        )
        sampled = median_seconds(lambda: semantic_outbox_claimable_depth(database), 15)
        counted = connection.execute("select count(*) from semantic_outbox").fetchone()
        off = abs(semantic_outbox_claimable_depth(database) / (counted[0] if counted else 1) - 1)
    yield Figure(
        f"depth at {sizes.entries:,} / exact count",
        sampled / exact,
        1 / 20,
        detail=f"{sampled * 1000:.2f} ms against {exact * 1000:.0f} ms, {off:.1%} off",
    )


def _rolled_back(connection: psycopg.Connection, statement: str) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(statement)


def _claim_and_end(queue: SemanticOutbox, size: int) -> float:
    """Ends the wave as postings without text end: everything but the vectors. Gives the claim's seconds."""
    started = time.perf_counter()
    wave = queue.claim(size)
    seconds = time.perf_counter() - started
    if wave is not None:
        queue.replace(
            wave.lease, [EmbeddedDocument(Document(each, "hash", (), 0), ()) for each in wave.claims]
        )
    return seconds


def _claim_together(url: str, claimers: int, waves: int, size: int) -> tuple[float, list[list[int]]]:
    """Seconds from the first claim to the last, and the entries of each claimer."""
    processes = multiprocessing.get_context("spawn")
    ready = processes.Barrier(claimers)
    with ProcessPoolExecutor(claimers, processes, initializer=_share, initargs=(ready,)) as pool:
        ended = [pool.submit(_claim_many, url, number, waves, size) for number in range(claimers)]
        told = [each.result() for each in ended]
    return max(end for _, end, _ in told) - min(start for start, _, _ in told), [
        taken for _, _, taken in told
    ]


def _share(ready: Barrier) -> None:
    global _ready  # noqa: PLW0603 - a barrier reaches a process only when it is made
    _ready = ready


def _claim_many(url: str, number: int, waves: int, size: int) -> tuple[float, float, list[int]]:
    """When it began and ended, on the clock that processes share, and what it took and deleted."""
    taken: list[int] = []
    with Database(SecretStr(url)) as database:
        queue = outbox(database, f"claimer-{time.time()}-{number}")
        _ready.wait()
        started = time.monotonic()
        for _ in range(waves):
            if wave := queue.claim(size):
                ended = [claim.entry_id for claim in wave.claims]
                database.execute("finish", {"ids": ended})
                taken += ended
        return started, time.monotonic(), taken


def _size(connection: psycopg.Connection) -> tuple[int, int]:
    row = connection.execute(
        "select pg_table_size('semantic_outbox'), pg_indexes_size('semantic_outbox')"
    ).fetchone()
    return row or (0, 0)
