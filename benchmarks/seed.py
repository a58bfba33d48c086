"""Invented catalogues and queues, filled in by Postgres itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.scratch import MODEL

if TYPE_CHECKING:
    import psycopg

PARAGRAPH = (
    "You will design, operate and improve the control systems of municipal water plants, together with experienced "
    "colleagues from engineering and maintenance. "
)
_PARAGRAPHS_A_CHUNK = 12


def add_postings(
    connection: psycopg.Connection, count: int, *, eligible: int, stamped: bool = False, chunks: int = 0
) -> None:
    """`count` postings, the first `eligible` of them spread over the rest; each text makes so many chunks.

    `stamped` ones have vectors of their current text, as far as their stamp tells.
    """
    text = (
        "".join(f"<li>{n}. {PARAGRAPH}</li>" for n in range(_PARAGRAPHS_A_CHUNK * chunks))
        if chunks
        else "short"
    )
    connection.execute(
        """
        insert into jobs (source, external_id, url, title, company, public_slug, description, is_tech, posted_at,
            content_hash, semantic_embedded_model, semantic_embedded_hash)
        select 'benchmark', n::text, 'https://jobs.example/' || n, 'Engineer ' || n, 'Northwind', 'p' || n,
            '<p>Posting ' || n || '</p><ul>' || %(text)s || '</ul>', n * %(eligible)s %% %(count)s < %(eligible)s,
            now() - n * interval '20 seconds', md5(n::text),
            case when %(stamped)s and n * %(eligible)s %% %(count)s < %(eligible)s then %(model)s end,
            case when %(stamped)s and n * %(eligible)s %% %(count)s < %(eligible)s then md5(n::text) end
        from generate_series(1::bigint, %(count)s) n
        """,
        {"text": text, "count": count, "eligible": eligible, "stamped": stamped, "model": MODEL},
    )


def add_entries(connection: psycopg.Connection, count: int, *, last: bool = False) -> None:
    """Queues `count` eligible postings, the first in `jobs` or the last; on disk as enqueue lays them."""
    order = "desc" if last else "asc"
    connection.execute(
        f"""
        insert into semantic_outbox (job_id, target_model, job_posted_at)
        select id, %s, posted_at from (select * from jobs where is_tech order by id {order} limit %s) j
        order by hashint8(id)
        """,  # noqa: S608 - one of two words
        [MODEL, count],
    )
    connection.execute("vacuum analyze semantic_outbox")
