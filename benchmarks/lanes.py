"""The same work through Dagster: several lanes, each a run in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import seed
from benchmarks.canned_tei import serving, stats
from benchmarks.figures import Figure
from benchmarks.pipeline import CHUNKS
from benchmarks.scratch import PROFILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch

LANES = 3
_SECONDS_A_WAVE = 7.0
_WAVES = 18


def run(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    a_wave = 0.5 if sizes.small else _SECONDS_A_WAVE
    rate = CHUNKS * sizes.wave / a_wave
    postings = sizes.wave * (4 if sizes.small else _WAVES)
    with serving(rate) as url, scratch.database() as (_, connection), tempfile.TemporaryDirectory() as home:
        seed.add_postings(connection, postings, eligible=postings, chunks=CHUNKS)
        connection.execute("vacuum analyze")
        shutil.copy("dagster.yaml", home)
        environment = {
            **os.environ,
            "DAGSTER_HOME": home,
            "DATABASE_URL": scratch.url(connection.info.dbname),
            "EMBED_URL": url,
            "EMBED_MODEL": PROFILE.identity,
            "EMBED_BATCH_SIZE": str(sizes.wave),
            "EMBED_CONCURRENCY": "2",
            "FREEHIRE_STATE": str(Path(home, "state")),
        }
        command = [
            *(sys.executable, "-m", "dagster", "job", "execute"),
            *("-m", "freehire_embed.definitions", "-j", "embed_job"),
        ]
        lanes = [
            subprocess.Popen(  # noqa: S603 - ourselves
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            for _ in range(LANES)
        ]
        for lane in lanes:
            lane.wait()
        told = stats(url)
        row = connection.execute("select count(*) from semantic_outbox").fetchone()
    left = row[0] if row else -1
    yield Figure(
        f"server busy, {LANES} Dagster lanes, {a_wave:g} s a wave",
        told["rows"] / rate / told["seconds"],
        0.95,
        at_least=True,
        unit="",
        detail=f"from first to last request, {told['seconds']:.0f} s; {left} entries left",
    )
