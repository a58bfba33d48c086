"""The nearest postings of each posting: found a bounded number of index probes at a time, written under guard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from freehire_embed.store.database import fetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from freehire_embed.store.database import Connection, Database

KEPT = 20
"""Neighbours kept of each posting."""
CANDIDATES = 10 * KEPT
"""Chunks fetched by one probe: several of one posting may be near, and others must not be shown."""
MOST_CANDIDATES = 1000
"""The largest hnsw.ef_search that pgvector takes."""
PROBES = 200
"""Chunks looked around by one statement: a few milliseconds each, or 0.05 s where the index is missing."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The nearest postings of one, nearest first, and the hash it was stamped with when its chunks were read."""

    job_id: int
    hash: str | None
    job_ids: tuple[int, ...]


def find_neighbours(
    database: Database, model: str, job_ids: Sequence[int], *, candidates: int = CANDIDATES
) -> Iterator[list[Neighbours]]:
    """At most KEPT neighbours of each posting that is open and stamped with `model`; one index probe a chunk.

    Neighbours are open, canonical, public tech postings stamped with `model`, not of the same known company. With
    `candidates` (MOST_CANDIDATES at most) chunks looked at a probe, fewer are found where most of those drop out.
    Yields after each statement of PROBES probes at most what it completed, the postings of fewest chunks first: one
    of thousands holds up no other, and its caller may stop in between.
    """
    sizes = database.rows("similar_sizes", {"job_ids": list(job_ids)})
    open_list: _OpenList | None = None
    for ranges in _statements((row.job_id, row.chunks) for row in sizes):
        parameters = {
            "model": model,
            "job_ids": [each.job_id for each in ranges],
            "firsts": [each.first for each in ranges],
            "lasts": [each.last for each in ranges],
            "candidates": candidates,
            "kept": KEPT,
        }
        rows = {row.job_id: row for row in database.transact(partial(_probe, parameters))}
        completed = []
        for each in ranges:
            if each.first == 0:
                open_list = _OpenList()
            assert open_list is not None  # noqa: S101 - the ranges of a posting are in order
            open_list.add(rows.get(each.job_id))
            if each.is_last and (found := open_list.close(each.job_id)):
                completed.append(found)
        yield completed


class _Range(NamedTuple):
    """Chunks of a posting, by index, `last` excluded."""

    job_id: int
    first: int
    last: int
    is_last: bool


def _statements(sizes: Iterable[tuple[int, int]]) -> Iterator[list[_Range]]:
    """Ranges of the postings' chunks, so many as one statement may probe."""
    ranges: list[_Range] = []
    probes = 0
    for job_id, chunks in sizes:
        for first in range(0, max(chunks, 1), PROBES):
            last = min(first + PROBES, chunks)
            if probes + last - first > PROBES:
                yield ranges
                ranges, probes = [], 0
            ranges.append(_Range(job_id, first, last, last == chunks))
            probes += last - first
    if ranges:
        yield ranges


def _probe(parameters: dict[str, Any], connection: Connection) -> list[Any]:
    fetch(connection, "search_effort", {"candidates": parameters["candidates"]})
    return fetch(connection, "similar_neighbours", parameters)


class _OpenList:
    """The neighbours of one posting, put together from its ranges: whoever is among the first of all is among the
    first of the range that is nearest to it."""

    def __init__(self) -> None:
        self._distances: dict[int, float] = {}
        self._hashes: list[str | None] = []
        self._gone = False

    def add(self, row: Any) -> None:
        """Takes the neighbours by one range; None = the posting has none any more."""
        if row is None:
            self._gone = True
            return
        self._hashes.append(row.hash)
        for neighbour, distance in zip(row.neighbours, row.distances, strict=True):
            self._distances[neighbour] = min(distance, self._distances.get(neighbour, distance))

    def close(self, job_id: int) -> Neighbours | None:
        """The list under the first hash that was read, which the write compares; None = closed or not stamped."""
        if self._gone:
            return None
        nearest = sorted(self._distances, key=lambda neighbour: (self._distances[neighbour], neighbour))
        return Neighbours(job_id, self._hashes[0], tuple(nearest[:KEPT]))


def store_neighbours(database: Database, model: str, found: Sequence[Neighbours]) -> set[int]:
    """Writes the lists of postings still stamped as they were; returns whose were written."""
    ordered = sorted(found, key=lambda each: each.job_id)
    rows = database.rows(
        "similar_store",
        {
            "model": model,
            "job_ids": [each.job_id for each in ordered],
            "hashes": [each.hash for each in ordered],
            "neighbours": [f"{{{','.join(map(str, each.job_ids))}}}" for each in ordered],
        },
    )
    return {row.id for row in rows}
