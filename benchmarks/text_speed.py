"""HTML to passages, one core."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.figures import Figure
from benchmarks.scratch import PROFILE
from benchmarks.seed import PARAGRAPH
from freehire_embed.chunks import passages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch

# The mean of 14,876 real descriptions is 2,800 characters; a good part of it is tags.
_HTML = (
    "<h2>About us</h2>"
    + f"<p>{PARAGRAPH}<b>Really.</b></p><ul><li>{PARAGRAPH}</li><li>{PARAGRAPH}</li></ul>" * 6
)


def run(_: Scratch, sizes: Sizes) -> Iterator[Figure]:
    count = 200 if sizes.small else 2000
    started = time.process_time()
    for number in range(count):
        passages(f"Engineer {number}", "Northwind", f"<p>{number}</p>{_HTML}", PROFILE)
    rate = count / (time.process_time() - started)
    yield Figure(
        "HTML to passages",
        rate,
        3000,
        at_least=True,
        unit="postings/s",
        detail=f"{len(_HTML):,} characters, CPU time",
    )
