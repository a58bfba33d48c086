"""The benchmarks run, at a size where their figures mean nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TINY = ["waves=3", "wave=20", "entries=600", "leased=100", "drained=120", "postings=2000", "eligible=1200"]
TINY += ["backlog=300", "run=100", "indexed=300", "seconds=0.5"]


def benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)


def test_a_smoke_run_prints_a_table_of_every_cheap_part() -> None:
    parts = (
        "wave",
        "claim",
        "drain",
        "claimers",
        "depth",
        "enqueue",
        "coverage",
        "text",
        "speed",
        "proof",
        "steering",
    )
    chosen = [word for part in parts for word in ("--only", part)]
    sized = [word for size in TINY for word in ("--size", size)]
    result = benchmarks("--small", *chosen, *sized)
    assert result.returncode == 0, result.stderr
    head, rule, *lines = result.stdout.splitlines()
    assert head.startswith("| what | goal | measured |")
    assert rule.startswith("|---")
    assert len(lines) >= 20
    assert not [line for line in lines if line.count("|") != 6]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--size", "entires=3"], "unknown size entires"), (["--only", "claims"], "invalid choice")],
)
def test_a_misspelt_size_or_part_is_refused_by_name(arguments: list[str], said: str) -> None:
    result = benchmarks(*arguments)
    assert result.returncode == 2
    assert said in result.stderr
