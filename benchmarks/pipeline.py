"""Whole runs, each in a process of its own: how fast, how busy the server is kept, how much memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import psutil

from benchmarks import seed, yardsticks
from benchmarks.canned_tei import serving
from benchmarks.figures import Figure
from benchmarks.scratch import PROFILE, outbox
from freehire_embed.chunks import passages
from freehire_embed.queries import query

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch
    from freehire_embed.store.database import Database

CHUNKS = 3
CONCURRENCY = 8
_SAMPLE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Ran:
    """A `run --json` that has ended."""

    counters: dict[str, Any]
    cpu_seconds: float
    memory: list[int]
    """Resident bytes, sampled while it ran."""

    @property
    def chunks_per_second(self) -> float:
        return float(self.counters["embedded"]) / float(self.counters["seconds"])


def speed(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    """A run against a server that takes no time, beside raw COPY and the plain serial loop."""
    with serving() as url, scratch.database() as (database, connection):
        seed.add_postings(connection, sizes.run, eligible=sizes.run, chunks=CHUNKS)
        connection.execute("vacuum analyze")
        ceiling = yardsticks.raw_copy(connection)
        plain = _plain_loop(database, connection, url, sizes.wave, max(sizes.run // 5 // sizes.wave, 2))
        ran = run(scratch.url(connection.info.dbname), url, sizes)
    rate = ran.chunks_per_second
    yield Figure(
        "run / (a)", rate / ceiling, 0.09, at_least=True, detail=f"{rate:,.0f} chunks/s, (a) {ceiling:,.0f}"
    )
    yield Figure("run / plain serial loop", rate / plain, 3.5, at_least=True, detail=f"{plain:,.0f} chunks/s")
    yield Figure("client CPU of a run", ran.cpu_seconds / ran.counters["embedded"] * 1e6, unit="us/chunk")
    yield Figure(
        "peak memory of a run", max(ran.memory) / 1e6, 250, unit="MB", detail=f"waves of {sizes.wave}"
    )


def busy(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    """Share of a whole run's time, start and end included, in which the device of the server works."""
    a_wave = 7.0
    for rate, goal in ((1000, 0.97), (2000, 0.97), (5000, 0.94), (round(CHUNKS * sizes.wave / a_wave), 0.98)):
        seconds = 8 * a_wave if rate < 1000 else 30
        postings = min(round(seconds * rate / CHUNKS), 3 * sizes.run)
        with serving(rate) as url, scratch.database() as (_, connection):
            seed.add_postings(connection, postings, eligible=postings, chunks=CHUNKS)
            connection.execute("vacuum analyze")
            ran = run(scratch.url(connection.info.dbname), url, sizes)
        share = ran.counters["embedded"] / rate / ran.counters["seconds"]
        yield Figure(
            f"server busy at {rate:,} chunks/s",
            share,
            goal,
            at_least=True,
            unit="",
            detail=f"{ran.counters['waves']} waves, {ran.counters['seconds']:.0f} s",
        )


def memory(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    """Whether memory stays where it is over a long run of short postings."""
    with serving() as url, scratch.database() as (_, connection):
        seed.add_postings(connection, sizes.flat, eligible=sizes.flat)
        connection.execute("vacuum analyze")
        ran = run(scratch.url(connection.info.dbname), url, sizes)
    fifth = len(ran.memory) // 5
    early, late = max(ran.memory[fifth : 2 * fifth]), max(ran.memory[-fifth:])
    yield Figure(
        f"memory over {sizes.flat:,} postings, last fifth / second",
        late / early,
        1.1,
        detail=f"{early / 1e6:.0f} -> {late / 1e6:.0f} MB in {ran.counters['seconds']:.0f} s",
    )


def run(database_url: str, embed_url: str, sizes: Sizes, **variables: str) -> Ran:
    """`freehire-embed run` until nothing is left."""
    with tempfile.TemporaryDirectory() as state:
        environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "EMBED_URL": embed_url,
            "EMBED_MODEL": PROFILE.identity,
            "EMBED_BATCH_SIZE": str(sizes.wave),
            "EMBED_CONCURRENCY": str(CONCURRENCY),
            "FREEHIRE_STATE": state,
            **variables,
        }
        command = [sys.executable, "-m", "freehire_embed", "run", "--json"]
        sampled = []
        with subprocess.Popen(  # noqa: S603 - ourselves
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            watched = psutil.Process(process.pid)
            cpu = 0.0
            while process.poll() is None:
                try:
                    with watched.oneshot():
                        sampled.append(watched.memory_info().rss)
                        cpu = sum(watched.cpu_times()[:2])
                except psutil.Error:
                    break
                time.sleep(_SAMPLE_SECONDS)
            output = process.stdout.read() if process.stdout else ""
        if process.returncode:
            raise RuntimeError(f"run ended with {process.returncode}: {output}")
        return Ran(json.loads(output.splitlines()[-1]), cpu, sampled)


def _plain_loop(database: Database, connection: psycopg.Connection, url: str, size: int, waves: int) -> float:
    """Chunks/s of the loop that one writes first: read, cut, post by 32, insert, one thing after the other."""
    queue = outbox(database, "plain")
    queue.enqueue()
    chunks = 0
    started = time.perf_counter()
    with httpx.Client(trust_env=False) as http:
        for _ in range(waves):
            wave = queue.claim(size)
            if wave is None:
                break
            job_ids = [claim.job_id for claim in wave.claims]
            rows: list[tuple[int, int, Any]] = []
            texts = []
            for job in connection.execute(query("load_postings"), {"job_ids": job_ids}).fetchall():
                for index, text in enumerate(passages(job[1], job[2], job[3], PROFILE)):
                    rows.append((job[0], index, None))
                    texts.append(text)
            answers = []
            for start in range(0, len(texts), 32):
                answers += http.post(url, json={"inputs": texts[start : start + 32]}).json()
            yardsticks.text_wave(
                connection, job_ids, [(*row[:2], vector) for row, vector in zip(rows, answers, strict=True)]
            )
            chunks += len(rows)
    return chunks / (time.perf_counter() - started)
