"""The postings nearest to a query vector."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgvector import Vector as PgVector

from freehire_embed.chunks import chunk_text, passage_prefix
from freehire_embed.store.database import fetch
from freehire_embed.text import html_to_text
from freehire_embed.text.language import detect_language

if TYPE_CHECKING:
    from datetime import datetime

    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.store.database import Connection, Database

_CANDIDATES_A_POSTING = 10
"""Passages looked at for each posting asked for: several of one posting may be near, and private ones drop out."""
_LEAST_CANDIDATES = 100
"""With 10, one passage in 200 does not even find itself among 40,000 (docs/quality.md)."""
_MOST_CANDIDATES = 1000
"""The largest hnsw.ef_search that pgvector takes."""
_READ_FOR_LANGUAGE = 2000
"""Postings whose text is read at most to find those in the wanted language; some 5 MB of descriptions."""
_SNIPPET_CHARACTERS = 240


@dataclass(frozen=True, slots=True)
class Filters:
    """What else a posting has to be; None = anything."""

    company: str | None = None
    """Name or slug, in any case of letters."""
    since: datetime | None = None
    """Posted, or first seen where no date is known, at that time or later."""
    language: str | None = None
    """ISO 639-1 code, as `detect_language` finds it in the text."""


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


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer of the index beside that of comparing every passage, languages not filtered."""

    candidates: int
    """Passages that the index was asked for."""
    wanted: int
    """Postings in the exact answer."""
    found: int
    """Of them in the answer of the index."""
    index_seconds: float
    exact_seconds: float

    @property
    def recall(self) -> float:
        return self.found / self.wanted if self.wanted else 1.0


def find_nearest(
    database: Database, profile: Profile, query: Vector, limit: int, filters: Filters | None = None
) -> list[Hit]:
    """At most `limit` open, canonical, public postings stamped with the profile's identity, nearest first.

    The index is asked for more and more candidates; where that is not enough (most passages near the query
    belong to private postings or other companies, say), all passages are compared. With a language, the nearest
    2,000 postings are looked through.
    """
    filters = filters or Filters()
    rows: list[Any] = []
    for candidates in (_first_candidates(limit), _MOST_CANDIDATES, None):
        rows = _look(database, profile, query, limit, filters, candidates)
        if len(rows) == limit:
            break
    return [
        Hit(
            job_id=row.job_id,
            title=row.title,
            company=row.company,
            url=row.url,
            distance=row.distance,
            chunk_index=row.chunk_index,
            snippet=_snippet(row, profile),
        )
        for row in rows
    ]


def explain_nearest(
    database: Database, profile: Profile, query: Vector, limit: int, filters: Filters | None = None
) -> Explanation:
    """What the index finds at its first try of the exact answer, and how long both take. Reads every vector."""
    filters = Filters(company=filters.company, since=filters.since) if filters else Filters()
    candidates = _first_candidates(limit)
    started = time.monotonic()
    found = {row.job_id for row in _look(database, profile, query, limit, filters, candidates)}
    middle = time.monotonic()
    wanted = {row.job_id for row in _look(database, profile, query, limit, filters, None)}
    ended = time.monotonic()
    return Explanation(candidates, len(wanted), len(wanted & found), middle - started, ended - middle)


def _first_candidates(limit: int) -> int:
    return min(max(_CANDIDATES_A_POSTING * limit, _LEAST_CANDIDATES), _MOST_CANDIDATES)


def _look(
    database: Database,
    profile: Profile,
    query: Vector,
    limit: int,
    filters: Filters,
    candidates: int | None,
) -> list[Any]:
    """The rows of search.sql with so many candidates of the index, or of search_exact.sql with None."""

    def work(connection: Connection) -> list[Any]:
        parameters: dict[str, Any] = {
            "query": PgVector(query).to_text(),
            "model": profile.identity,
            "limit": _READ_FOR_LANGUAGE if filters.language else limit,
            "company": filters.company,
            "since": filters.since,
        }
        if candidates is None:
            return fetch(connection, "search_exact", parameters)
        fetch(connection, "search_effort", {"candidates": candidates})
        return fetch(connection, "search", {**parameters, "candidates": candidates})

    rows = database.transact(work)
    if filters.language is None:
        return rows
    spoken = (row for row in rows if detect_language(html_to_text(row.description)) == filters.language)
    return list(itertools.islice(spoken, limit))


def _snippet(row: Any, profile: Profile) -> str:
    """The beginning of the chunk on one line; '' when the text has changed since and has no such chunk."""
    prefix = passage_prefix(row.title, row.company, profile)
    chunks = chunk_text(html_to_text(row.description), profile, prefix)
    line = " ".join(chunks[row.chunk_index].split()) if row.chunk_index < len(chunks) else ""
    if len(line) <= _SNIPPET_CHARACTERS:
        return line
    cut = line[:_SNIPPET_CHARACTERS]
    return f"{cut.rsplit(' ', 1)[0] if ' ' in cut else cut} …"
