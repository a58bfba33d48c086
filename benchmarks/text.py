"""HTML to passages per second on one core, against the plain reading of the same rules in the same run.

    python benchmarks/text.py postings.jsonl.gz [--limit N]

Each line of the file is an object with `title`, `company` and `description`. Times are of the process, so
other work on the machine disturbs them little; each figure is the best of three rounds.
"""

# ruff: noqa: T201 - it prints its figures
from __future__ import annotations

import argparse
import gzip
import json
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from freehire_embed.chunks import passages
from freehire_embed.profiles import BUILT_IN
from freehire_embed.text import clean, html_to_text, prepare, reference
from freehire_embed.text.markup import has_tags

if TYPE_CHECKING:
    from collections.abc import Callable

Posting = dict[str, str | None]

ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("postings", type=Path)
    parser.add_argument("--limit", type=int, help="the first N postings only")
    given = parser.parse_args()
    with (
        gzip.open(given.postings, "rt") if given.postings.suffix == ".gz" else given.postings.open() as lines
    ):
        postings: list[Posting] = [json.loads(line) for line in islice(lines, given.limit)]
    html = [posting for posting in postings if has_tags(prepare(posting["description"] or ""))]

    def to_passages(rule: str) -> float:
        profile = next(profile for profile in BUILT_IN.values() if profile.chunking == rule)

        def work(posting: Posting) -> object:
            return passages(posting["title"], posting["company"], posting["description"], profile)

        return _rate(work, postings)

    print(f"{len(postings)} postings, {len(html)} of them HTML; postings/s on one core")
    print(f"HTML to text       {_rate(lambda posting: html_to_text(posting['description']), postings):8.0f}")
    print(f"to passages, v1    {to_passages('v1'):8.0f}")
    print(f"to passages, v2    {to_passages('v2'):8.0f}")
    target = _rate(lambda posting: html_to_text(posting["description"]), html)
    tree = _rate(lambda posting: clean(reference.read(prepare(posting["description"] or ""))), html)
    print(f"HTML only: parser target {target:.0f}, BeautifulSoup walk {tree:.0f}, ratio {target / tree:.1f}")


def _rate(work: Callable[[Posting], object], postings: list[Posting]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for posting in postings:
            work(posting)
        best = min(best, time.process_time() - started)
    return len(postings) / best


if __name__ == "__main__":
    main()
