"""Similar postings: keeps the stored neighbours of every posting current, a batch at a time.

Due are postings whose vectors changed since (a commit clears `similar_computed_at`), lists past their age, and
lists that closed postings have made thin. Each batch is one read and one guarded write, so a run may be killed at
any moment and the next one goes on; two at once do some work twice and nothing wrong.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehire_embed.store import vector_index
from freehire_embed.store.coverage import measure_coverage
from freehire_embed.store.similar import (
    KEPT,
    MOST_CANDIDATES,
    find_due,
    find_neighbours,
    mark_thin,
    read_list,
    show_neighbours,
    store_neighbours,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from freehire_embed.store.database import Database
    from freehire_embed.store.similar import SimilarPosting

REFRESH_DAYS = 7
"""A list this old is computed again, for the sake of postings that came since."""
LEAST_COVERED = 0.8
"""Share of eligible postings with current vectors below which lists would be poorer than those they replace."""
MOST_UNINDEXED = 20_000
"""Vectors that may be compared one by one: 0.05 s a chunk, where the index takes a few milliseconds."""
BATCH = 50
"""Postings a batch: about 100 probes, well below a second of one transaction."""
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
        if seconds is not None and time.monotonic() - started > seconds:
            finished = False
            break
        sizes = _compute(database, model, due)
        computed += len(sizes)
        short += sum(size < KEPT for size in sizes.values())
        lost += len(due) - len(sizes)
        if on_batch:
            on_batch(computed)
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
        found = find_neighbours(database, model, [job_id], candidates=MOST_CANDIDATES)
        neighbours = found[0].job_ids if found else ()
    return show_neighbours(database, model, job_id, neighbours, limit)


def _mark_all_thin(database: Database, model: str) -> int:
    after: int | None = 0
    total = 0
    while after is not None:
        after, thin = mark_thin(database, model, after=after, limit=_SLICE)
        total += thin
    return total


def _compute(database: Database, model: str, due: list[int]) -> dict[int, int]:
    """Writes the lists of `due`; the length of each that was written.

    What came out short is looked for again with the most that the index can be asked for, before it is written.
    """
    found = {each.job_id: each for each in find_neighbours(database, model, due)}
    short = [job_id for job_id, each in found.items() if len(each.job_ids) < KEPT]
    if short:
        again = find_neighbours(database, model, short, candidates=MOST_CANDIDATES)
        found |= {each.job_id: each for each in again}
    written = store_neighbours(database, model, list(found.values()))
    return {job_id: len(found[job_id].job_ids) for job_id in written}
