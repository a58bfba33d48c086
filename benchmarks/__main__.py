"""The command line of the benchmarks: runs the parts and prints the table."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from typing import TYPE_CHECKING

from benchmarks import catalogue, desk, lanes, pipeline, proof, queue, steering, text_speed, vectors, wave
from benchmarks.figures import SMALL, Figure, Sizes, machine, resized
from benchmarks.scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.scratch import Scratch

    Part = Callable[[Scratch, Sizes], Iterator[Figure]]

PARTS: Mapping[str, Part] = {
    "wave": wave.run,
    "claim": queue.claim,
    "drain": queue.drain,
    "claimers": queue.claimers,
    "depth": queue.depth,
    "enqueue": catalogue.enqueue,
    "coverage": catalogue.coverage,
    "text": text_speed.run,
    "speed": pipeline.speed,
    "busy": pipeline.busy,
    "memory": pipeline.memory,
    "proof": proof.run,
    "steering": steering.run,
    "lanes": lanes.run,
    "desk": desk.run,
    "vectors": vectors.run,
}


def main() -> int:
    """Exit code 1 when a goal was missed at full size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a smoke run; goals are not judged")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--size", action="append", default=[], metavar="NAME=NUMBER", help="see figures.py")
    given = parser.parse_args()
    try:
        sizes = resized(SMALL if given.small else Sizes(), given.size)
    except ValueError as error:
        parser.error(str(error))
    logging.disable(logging.WARNING)
    missed = 0
    sys.stdout.write("| what | goal | measured | | detail |\n|---|---|---|---|---|\n")
    with scratch() as server:
        for name in given.only or PARTS:
            started = time.monotonic()
            for figure in PARTS[name](server, sizes):
                missed += not figure.reached
                sys.stdout.write(f"{_line(figure, judged=not sizes.small)}\n")
                sys.stdout.flush()
            sys.stderr.write(f"{name}: {time.monotonic() - started:.0f} s; {machine()}\n")
    return 1 if missed and not sizes.small else 0


def _line(figure: Figure, *, judged: bool) -> str:
    sign = ">=" if figure.at_least else "<="
    goal = "" if figure.goal is None else f"{sign} {figure.goal:.3g}"
    verdict = "" if figure.goal is None or not judged else "reached" if figure.reached else "MISSED"
    return f"| {figure.what} | {goal} | {figure.measured:.3g} {figure.unit} | {verdict} | {figure.detail} |"


if __name__ == "__main__":
    sys.exit(main())
