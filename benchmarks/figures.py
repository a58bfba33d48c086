"""Sizes that go in, figures that come out."""

from __future__ import annotations

import dataclasses
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much each part works on; the defaults are those of the goals."""

    postings: int = 1_700_000
    """In `jobs`, for enqueue and coverage."""
    eligible: int = 860_000
    """Of them open, canonical and tech: as if all postings that are open were."""
    backlog: int = 490_000
    """Postings that a change of the model queues."""
    entries: int = 1_000_000
    """In the queue, for claims and depth."""
    leased: int = 50_000
    """Of them leased, all at the head."""
    drained: int = 200_000
    waves: int = 24
    """Repetitions of a wave's transaction."""
    wave: int = 500
    """Postings a wave."""
    run: int = 10_000
    """Postings of a whole run at full speed; slower servers get fewer."""
    flat: int = 500_000
    """Postings of the run whose memory has to stay flat."""
    desk: int = 20_000
    """Postings of a backlog that the depth sensor works."""
    indexed: int = 150_000
    """Vectors in the HNSW index."""
    seconds: float = 20.0
    """How long a bulk run competes with queries."""
    small: bool = False
    """Goals are shown but not judged: the fixed costs weigh too much."""


SMALL = Sizes(
    postings=20_000,
    eligible=12_000,
    backlog=5_000,
    entries=12_000,
    leased=1_000,
    drained=4_000,
    waves=4,
    wave=100,
    run=600,
    flat=2_000,
    desk=400,
    indexed=3_000,
    seconds=2.0,
    small=True,
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    measured: float
    goal: float | None = None
    """None = told for its own sake."""
    at_least: bool = False
    """Which side of the goal is the good one."""
    unit: str = "x"
    detail: str = ""
    """The absolute values behind the ratio."""

    @property
    def reached(self) -> bool:
        if self.goal is None:
            return True
        return self.measured >= self.goal if self.at_least else self.measured <= self.goal


def resized(sizes: Sizes, changes: Sequence[str]) -> Sizes:
    """`sizes` with changes such as "entries=200000"; raises ValueError for an unknown name."""
    known = {field.name for field in dataclasses.fields(Sizes)} - {"small"}
    given = dict(change.split("=", 1) for change in changes)
    if unknown := given.keys() - known:
        raise ValueError(f"unknown size {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}")
    return dataclasses.replace(
        sizes, **{name: type(getattr(sizes, name))(value) for name, value in given.items()}
    )


def median_seconds(work: Callable[[], object], times: int) -> float:
    """The median duration of `work`."""
    taken = sorted(seconds_of(work) for _ in range(times))
    return taken[len(taken) // 2]


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def machine() -> str:
    """Cores and load, without which no absolute figure means anything."""
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, load {load:.1f}"
