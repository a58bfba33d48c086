"""The postings nearest to a query vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgvector import Vector as PgVector

from freehire_embed.chunks import chunk_text
from freehire_embed.store.database import fetch
from freehire_embed.text import html_to_text

if TYPE_CHECKING:
    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.store.database import Connection, Database

_CANDIDATES_A_POSTING = 10
"""Passages looked at for each posting asked for: several of one posting may be near, and private ones drop out."""
_MOST_CANDIDATES = 1000
"""The largest hnsw.ef_search that pgvector takes."""
_SNIPPET_CHARACTERS = 240


@dataclass(frozen=True, slots=True)
class Hit:
    """A posting found; the fields are the keys of `search --json`."""

    job_id: int
    title: str
    company: str
    url: str
    distance: float
    """Cosine distance of the nearest passage, 0 to 2."""
    chunk_index: int
    snippet: str


def find_nearest(database: Database, profile: Profile, query: Vector, limit: int) -> list[Hit]:
    """At most `limit` open, canonical, public postings stamped with the profile's identity, nearest first.

    The index is asked for more and more candidates; where that is not enough (most passages near the query
    belong to private postings, say), all passages are compared.
    """

    def look(candidates: int, *, exact: bool) -> list[Any]:
        def work(connection: Connection) -> list[Any]:
            fetch(
                connection, "search_effort", {"candidates": min(candidates, _MOST_CANDIDATES), "exact": exact}
            )
            parameters = {
                "query": PgVector(query).to_text(),
                "candidates": None if exact else candidates,
                "model": profile.identity,
                "limit": limit,
            }
            return fetch(connection, "search", parameters)

        return database.transact(work)

    first = min(_CANDIDATES_A_POSTING * limit, _MOST_CANDIDATES)
    rows = look(first, exact=False)
    if len(rows) < limit and first < _MOST_CANDIDATES:
        rows = look(_MOST_CANDIDATES, exact=False)
    if len(rows) < limit:
        rows = look(_MOST_CANDIDATES, exact=True)
    return [
        Hit(
            job_id=row.job_id,
            title=row.title,
            company=row.company,
            url=row.url,
            distance=row.distance,
            chunk_index=row.chunk_index,
            snippet=_snippet(row.description, row.chunk_index, profile),
        )
        for row in rows
    ]


def _snippet(description: str, chunk_index: int, profile: Profile) -> str:
    """The beginning of the chunk on one line; '' when the text has changed since and has no such chunk."""
    chunks = chunk_text(html_to_text(description), profile)
    line = " ".join(chunks[chunk_index].split()) if chunk_index < len(chunks) else ""
    if len(line) <= _SNIPPET_CHARACTERS:
        return line
    cut = line[:_SNIPPET_CHARACTERS]
    return f"{cut.rsplit(' ', 1)[0] if ' ' in cut else cut} …"
