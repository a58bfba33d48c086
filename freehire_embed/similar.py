"""Similar postings: keeps the stored neighbours of every posting current, a batch at a time.

Due are postings whose vectors changed since (a commit clears `similar_computed_at`), lists past their age, and
lists that closed postings have made thin. Each statement is bounded and each write guarded, so a run may be killed
at any moment and the next one goes on; two at once do some work twice and nothing wrong.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehire_embed.store import vector_index
from freehire_embed.store.coverage import measure_coverage
from freehire_embed.store.neighbours import KEPT, MOST_CANDIDATES, find_neighbours, store_neighbours
from freehire_embed.store.similar import find_due, mark_thin, read_list, show_neighbours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from freehire_embed.store.database import Database
    from freehire_embed.store.neighbours import Neighbours
    from freehire_embed.store.similar import SimilarPosting

REFRESH_DAYS = 7
"""A list this old is computed again, for the sake of postings that came since."""
LEAST_COVERED = 0.8
"""Share of eligible postings with current vectors below which lists would be poorer than those they replace."""
MOST_UNINDEXED = 20_000
"""Vectors that may be compared one by one: 0.05 s a chunk, where the index takes a few milliseconds."""
BATCH = 50
"""Postings a batch: about 100 probes."""
_SLICE = 10_000
"""Lists looked through by one statement."""


@dataclass(frozen=True, slots=True)
class SimilarReport:
    """What a refresh did."""

    computed: int = 0
    short: int = 0
    """Of them lists of fewer than KEPT neighbours."""
    lost: int = 0
    """Postings that were stamped anew meanwhile: nothing was written, they are due again."""
    thin: int = 0
    """Lists made due because their neighbours are gone."""
    seconds: float = 0.0
    waiting: str = ""
    """Why nothing was computed."""
    finished: bool = True
    """False = the time ran out and some are still due."""


class NotEmbedded(Exception):
    """A posting without current vectors has no neighbours; the text says what to do."""


def refresh(
    database: Database,
    model: str,
    *,
    refresh_days: int = REFRESH_DAYS,
    least_covered: float = LEAST_COVERED,
    seconds: float | None = None,
    on_batch: Callable[[int], None] | None = None,
) -> SimilarReport:
    """Computes what is due under the target `model`, for at most about `seconds`.

    `on_batch` is told how many postings are done. In a model change it waits until most of the catalogue has the
    new vectors, and while the vector index is dropped; until then the lists stay as they are. Raises DatabaseFault.
    """
    started = time.monotonic()

    def late() -> bool:
        return seconds is not None and time.monotonic() - started > seconds

    coverage = measure_coverage(database, model)
    if coverage.covered < least_covered * coverage.eligible:
        waiting = (
            f"{coverage.covered / coverage.eligible:.0%} of the postings have current vectors; "
            f"below {least_covered:.0%} lists would be poor"
        )
        return SimilarReport(waiting=waiting, finished=False)
    index = vector_index.look(database)
    if not index.valid and index.rows > MOST_UNINDEXED:
        waiting = f"{index.rows} vectors have no index to look in: run `freehire-embed index build`"
        return SimilarReport(waiting=waiting, finished=False)
    thin = _mark_all_thin(database, model)
    computed = short = lost = 0
    finished = True
    while due := find_due(database, model, refresh_days=refresh_days, limit=BATCH):
        if late():
            finished = False
            break
        for found, written in _compute(database, model, due):
            computed += len(written)
            short += sum(len(each.job_ids) < KEPT for each in found if each.job_id in written)
            lost += len(found) - len(written)
            if on_batch and written:
                on_batch(computed)
            if late():
                break
    return SimilarReport(computed, short, lost, thin, time.monotonic() - started, finished=finished)


def similar_to(database: Database, model: str, job_id: int, limit: int) -> list[SimilarPosting]:
    """The stored neighbours that may be shown now, nearest first; computed on the spot where none are stored.

    Raises NotEmbedded.
    """
    stored = read_list(database, model, job_id)
    if stored is None:
        raise NotEmbedded(f"there is no posting {job_id}")
    if not stored.embedded:
        raise NotEmbedded(f"posting {job_id} has no vectors of {model}: see `freehire-embed status`")
    neighbours = stored.neighbours
    if stored.computed_at is None:
        for found in find_neighbours(database, model, [job_id], candidates=MOST_CANDIDATES):
            neighbours = found[0].job_ids if found else ()
    return show_neighbours(database, model, job_id, neighbours, limit)


def _mark_all_thin(database: Database, model: str) -> int:
    after: int | None = 0
    total = 0
    while after is not None:
        after, thin = mark_thin(database, model, after=after, limit=_SLICE)
        total += thin
    return total


def _compute(database: Database, model: str, due: list[int]) -> Iterator[tuple[list[Neighbours], set[int]]]:
    """Finds and writes the lists of `due`, some at a time; yields them, and whose were written.

    What came out short is looked for again with the most that the index can be asked for, before it is written.
    """
    short: list[int] = []
    for found in find_neighbours(database, model, due):
        full = [each for each in found if len(each.job_ids) == KEPT]
        short += [each.job_id for each in found if len(each.job_ids) < KEPT]
        yield full, store_neighbours(database, model, full)
    for found in find_neighbours(database, model, short, candidates=MOST_CANDIDATES):
        yield found, store_neighbours(database, model, found)
