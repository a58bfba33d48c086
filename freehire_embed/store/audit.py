"""Looks for contradictions between stamps, chunks and texts, and re-queues what has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from freehire_embed.store.database import Database, execute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from freehire_embed.domain import Vector
    from freehire_embed.store.database import Connection

SLICE = 10_000
"""Postings looked at by one statement: a second or two, most of it reading their vectors."""


@dataclass(frozen=True, slots=True)
class StoredPosting:
    """A settled posting of the sample, its text and what is stored for it."""

    job_id: int
    title: str | None
    company: str | None
    description: str | None
    indexes: tuple[int, ...]
    hashes: tuple[bytes | None, ...]
    vectors: tuple[Vector, ...]


def find_contradictions(database: Database, model: str, width: int) -> Iterator[tuple[str, int]]:
    """(kind, posting id) of every contradiction that the tables alone show, slice by slice."""
    after = 0
    while (upto := database.rows("audit_bound", {"after": after, "limit": SLICE})[0].upto) is not None:
        parameters = {"model": model, "width": width, "after": after, "upto": upto}
        for row in database.rows("audit_slice", parameters):
            yield row.kind, row.job_id
        after = upto


def read_descriptions(database: Database, job_ids: Sequence[int]) -> dict[int, str]:
    """By id, of postings that still exist."""
    return {row.id: row.description for row in database.rows("load_postings", {"job_ids": list(job_ids)})}


def draw_sample(database: Database, model: str, *, limit: int, seed: int) -> list[StoredPosting]:
    """Up to `limit` settled postings; another `seed` draws others."""
    return [
        StoredPosting(
            job_id=row.id,
            title=row.title,
            company=row.company,
            description=row.description,
            indexes=tuple(row.indexes or ()),
            hashes=tuple(row.hashes or ()),
            vectors=tuple(np.array(each, dtype=np.float32) for each in row.embeddings or ()),
        )
        for row in database.rows("audit_sample", {"model": model, "limit": limit, "seed": seed})
    ]


def requeue(
    database: Database,
    model: str,
    *,
    stale: Sequence[int],
    distrusted: Sequence[int],
    ineligible: Sequence[int],
) -> None:
    """Makes postings `stale`, the `distrusted` without keeping a vector; lets the `ineligible` be cleared."""

    def work(connection: Connection) -> None:
        execute(connection, "audit_forget_hashes", {"job_ids": list(distrusted)})
        execute(connection, "audit_forget_stamps", {"job_ids": sorted({*stale, *distrusted})})
        execute(connection, "audit_queue", {"model": model, "job_ids": list(ineligible)})

    database.transact(work)
