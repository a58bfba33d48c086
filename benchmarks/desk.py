"""A backlog that nobody but the depth sensor works, under a real `dagster dev`; and what the desk itself costs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import dagster as dg
import psutil

from benchmarks import seed
from benchmarks.canned_tei import serving, stats
from benchmarks.figures import Figure
from benchmarks.pipeline import CHUNKS
from benchmarks.scratch import PROFILE, outbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch

_RATE = 500
"""Chunks/s of the server: a wave of 500 postings takes it 3 s."""
_SAMPLE_SECONDS = 2.0
_POSTINGS_TOLD_OF = 100_000
_ROLES = {
    "dagster_webserver": "webserver",
    "dagster._daemon": "daemon",
    "spawn_main": "lane",
    "grpc": "code server",
}
"""By what is in the command line; a lane is a child that the code server starts."""


def run(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    for lanes in (1, 2, 3):
        with (
            serving(_RATE) as url,
            scratch.database() as (database, connection),
            tempfile.TemporaryDirectory() as home,
        ):
            seed.add_postings(connection, sizes.desk, eligible=sizes.desk, chunks=CHUNKS)
            outbox(database).enqueue()
            connection.execute("vacuum analyze")
            environment = {
                "DAGSTER_HOME": home,
                "FREEHIRE_STATE": str(Path(home, "state")),
                "DATABASE_URL": scratch.url(connection.info.dbname),
                "EMBED_URL": url,
                "EMBED_MODEL": PROFILE.identity,
                "EMBED_BATCH_SIZE": str(sizes.wave),
                "EMBED_LANES": str(lanes),
            }
            with patch.dict(os.environ, environment), _dagster_dev(Path(home)) as process:
                memory = _drained(connection, process)
                yield from _figures(lanes, stats(url), sizes, Path(home))
        yield Figure(
            f"memory of the desk, {lanes} lanes",
            sum(memory.values()),
            unit="MB",
            detail=", ".join(f"{role} {most:.0f}" for role, most in sorted(memory.items())),
        )


def _figures(lanes: int, told: dict[str, float], sizes: Sizes, home: Path) -> Iterator[Figure]:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        runs = instance.get_runs(dg.RunsFilter(job_name="embed_job"))
        events = sum(len(instance.all_logs(run.run_id)) for run in runs)
    yield Figure(
        f"server busy, the sensor alone, {lanes} lanes",
        told["rows"] / _RATE / told["seconds"],
        unit="",
        detail=f"{sizes.desk:,} postings in {told['seconds']:.0f} s, {len(runs)} runs, "
        f"longest gap {told['longest_gap']:.1f} s",
    )
    disk = sum(file.stat().st_size for file in home.rglob("*") if file.is_file())
    yield Figure(
        f"event rows for {_POSTINGS_TOLD_OF:,} postings, {lanes} lanes",
        events * _POSTINGS_TOLD_OF / sizes.desk,
        unit="",
        detail=f"{disk / 1e6:.1f} MB on disk after {sizes.desk:,}",
    )


def _drained(connection: psycopg.Connection, process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Waits until the queue is empty and the runs are over; the most resident MB of each role meanwhile."""
    most: dict[str, float] = {}
    now = _memory(process)
    while "lane" in now or connection.execute("select 1 from semantic_outbox limit 1").fetchone():
        if process.poll() is not None:
            raise RuntimeError(f"dagster dev ended with {process.returncode}")
        most = {role: max(now[role], most.get(role, 0)) for role in {*now, *most}}
        time.sleep(_SAMPLE_SECONDS)
        now = _memory(process)
    return most


def _memory(process: subprocess.Popen[bytes]) -> defaultdict[str, float]:
    """Resident MB by role, lanes added up."""
    found: defaultdict[str, float] = defaultdict(float)
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            command = " ".join(child.cmdline())
            role = next((role for sign, role in _ROLES.items() if sign in command), None)
            if role:
                found[role] += child.memory_info().rss / 1e6
        except psutil.Error:
            continue
    return found


@contextmanager
def _dagster_dev(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    shutil.copy("dagster.yaml", home)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dagster", "dev", "-w", "workspace.yaml", "-p", str(port)]
    with subprocess.Popen(  # noqa: S603 - ourselves
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
