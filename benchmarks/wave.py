"""The transaction that ends a wave, against raw COPY and against vectors as text."""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks import seed, yardsticks
from benchmarks.figures import Figure
from benchmarks.scratch import MODEL, outbox
from freehire_embed.chunks import passage_sha256
from freehire_embed.domain import Document, Passage
from freehire_embed.waves import EmbeddedDocument

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch
    from freehire_embed.domain import Vector
    from freehire_embed.store.database import Database
    from freehire_embed.store.outbox import SemanticOutbox
    from freehire_embed.waves import Wave

CHUNKS = 3


def run(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    for storage in ("external", "plain"):
        with scratch.database() as (database, connection):
            connection.execute(f"alter table job_semantic_chunks alter embedding set storage {storage}")
            count = sizes.wave * (sizes.waves + 18)
            seed.add_postings(connection, 2 * count, eligible=2 * count)
            seed.add_entries(connection, count)
            connection.execute("vacuum analyze")
            ceiling = yardsticks.raw_copy(connection)
            wall, cpu = commit_waves(outbox(database), sizes.wave, sizes.waves)
            rate = CHUNKS * sizes.wave / statistics.median(wall)
            detail = f"{rate:,.0f} of {ceiling:,.0f} chunks/s, p50 {statistics.median(wall) * 1000:.0f} ms"
            goal = 0.45 if storage == "plain" else 0.35
            yield Figure(
                f"wave transaction, {storage} storage / (a)",
                rate / ceiling,
                goal,
                at_least=True,
                detail=detail,
            )
            if storage == "external":
                continue
            text = _text_waves(connection, sizes)
            yield Figure(
                "wave transaction / text literals",
                statistics.median(text) / statistics.median(wall),
                4,
                at_least=True,
                detail=f"{statistics.median(text) * 1000:.0f} ms as text",
            )
            per_thousand = statistics.median(cpu) / (CHUNKS * sizes.wave) * 1e6
            yield Figure("client CPU of a commit", per_thousand, 7, unit="ms/1,000")
            yield Figure(
                "round trips of a wave's transaction", _round_trips(database, sizes.wave), 8, unit=""
            )
            yield Figure("the same for a wave of 10", _round_trips(database, 10), 8, unit="")


def commit_waves(queue: SemanticOutbox, size: int, waves: int) -> tuple[list[float], list[float]]:
    """Wall and CPU seconds of each wave's `replace`, the first left out."""
    given = yardsticks.vectors(CHUNKS * size)
    wall, cpu = [], []
    for _ in range(waves):
        wave = claimed(queue, size)
        documents = _embedded(wave, given)
        started, started_cpu = time.perf_counter(), time.process_time()
        queue.replace(wave.lease, documents)
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - started_cpu)
    return wall[1:], cpu[1:]


def claimed(queue: SemanticOutbox, size: int) -> Wave:
    wave = queue.claim(size)
    if wave is None:
        raise RuntimeError("the benchmark queued too little")
    return wave


def _embedded(wave: Wave, given: Sequence[Vector]) -> list[EmbeddedDocument]:
    documents = []
    for place, claim in enumerate(wave.claims):
        texts = [f"passage {claim.job_id} {index}" for index in range(CHUNKS)]
        passages = tuple(Passage(text, passage_sha256(MODEL, text)) for text in texts)
        vectors = tuple(given[CHUNKS * place + index] for index in range(CHUNKS))
        documents.append(EmbeddedDocument(Document(claim, "hash", passages, 0), vectors))
    return documents


def _text_waves(connection: psycopg.Connection, sizes: Sizes) -> list[float]:
    given = yardsticks.vectors(CHUNKS * sizes.wave)
    ids = [
        row[0]
        for row in connection.execute("select id from jobs order by id desc limit %s", [4 * sizes.wave])
    ]
    taken = []
    for start in range(0, len(ids), sizes.wave):
        wave = ids[start : start + sizes.wave]
        rows = [
            (job_id, index, given[CHUNKS * place + index])
            for place, job_id in enumerate(wave)
            for index in range(CHUNKS)
        ]
        started = time.perf_counter()
        yardsticks.text_wave(connection, wave, rows)
        taken.append(time.perf_counter() - started)
    return taken


def _round_trips(database: Database, size: int) -> int:
    """Counted on the wire: each Query, Sync or CopyDone of the client is answered before it goes on."""
    queue = outbox(database, f"trips-{size}")
    commit_waves(queue, size, 7)  # so often until every statement is prepared
    wave = claimed(queue, size)
    documents = _embedded(wave, yardsticks.vectors(CHUNKS * size))
    with tempfile.TemporaryFile("w+") as trace:
        with database.connection() as connection:
            connection.pgconn.trace(trace.fileno())
        queue.replace(wave.lease, documents)
        with database.connection() as connection:
            connection.pgconn.untrace()
        trace.seek(0)
        return len(re.findall(r"^[^\n]*\bF\b[^\n]*\b(?:Query|Sync|CopyDone)\b", trace.read(), re.MULTILINE))
