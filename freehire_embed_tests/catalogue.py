"""A catalogue to test on: postings, vectors made by hand, and looks into the tables."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from freehire_embed.chunks import passage_sha256
from freehire_embed.domain import Document, Passage
from freehire_embed.store.outbox import SemanticOutbox
from freehire_embed.waves import EmbeddedDocument

if TYPE_CHECKING:
    import psycopg

    from freehire_embed.domain import Claim, Vector
    from freehire_embed.store.database import Database
    from freehire_embed_tests.conftest import WIDTH  # noqa: F401

MODEL = "test-model"
_number = itertools.count(1)


def add_posting(sql: psycopg.Connection, **columns: Any) -> int:
    """Inserts an open, eligible posting (or what `columns` make of it) and returns its id."""
    n = next(_number)
    values = {
        "source": "test",
        "external_id": str(n),
        "url": f"https://jobs.example/{n}",
        "title": f"Engineer {n}",
        "company": "Northwind",
        "description": f"<p>We build bridges, number {n}.</p>",
        "public_slug": f"test-{n}",
        "is_tech": True,
        "content_hash": f"hash-{n}",
        **columns,
    }
    names = ", ".join(values)
    marks = ", ".join(f"%({name})s" for name in values)
    row = sql.execute(f"insert into jobs ({names}) values ({marks}) returning id", values).fetchone()
    assert row
    return int(row[0])


def outbox(database: Database, run_id: str = "run", **rules: Any) -> SemanticOutbox:
    """The queue as run `run_id` sees it."""
    defaults: dict[str, Any] = {
        "model": MODEL,
        "lease_seconds": 300,
        "max_attempts": 3,
        "upstream_grace_days": 14,
    }
    return SemanticOutbox(database, run_id=run_id, **{**defaults, **rules})


def vector(seed: int, width: int = 8) -> Vector:
    """A unit vector that differs for each seed."""
    values = np.random.default_rng(seed).normal(size=width).astype(np.float32)
    return (values / np.linalg.norm(values)).astype(np.float32)


def at(angle: float) -> Vector:
    """A unit vector; the cosine to `at(0)` falls as `angle` grows to pi."""
    values = np.zeros(8, dtype=np.float32)
    values[0], values[1] = np.cos(angle), np.sin(angle)
    return values


def add_embedded(sql: psycopg.Connection, *angles: float, model: str = MODEL, **columns: Any) -> int:
    """A posting stamped with `model` that has one chunk at each angle."""
    job_id = add_posting(sql, **columns)
    sql.execute(
        "update jobs set semantic_embedded_model = %s, semantic_embedded_hash = content_hash where id = %s",
        [model, job_id],
    )
    for index, angle in enumerate(angles):
        sql.execute(
            "insert into job_semantic_chunks (job_id, chunk_index, embedding) values (%s, %s, %s)",
            [job_id, index, str(at(angle).tolist())],
        )
    return job_id


def embedded(claim: Claim, *texts: str, content_hash: str | None = "h", stored: int = 0) -> EmbeddedDocument:
    """A document of `texts`, each with a vector of its own, none kept from before."""
    passages = tuple(Passage(text, passage_sha256(MODEL, text)) for text in texts)
    vectors = tuple(vector(hash((claim.job_id, text)) & 0xFFFFFF) for text in texts)
    return EmbeddedDocument(Document(claim, content_hash, passages, stored), vectors)


def expire_leases(sql: psycopg.Connection) -> None:
    """Lets every lease end now. The mark moves along, as if time had passed."""
    sql.execute(
        "update semantic_outbox set claimed_at = claimed_at - interval '1 day', "
        "claimed_by_at = claimed_by_at - interval '1 day' where claimed_at is not null"
    )


def entry(sql: psycopg.Connection, job_id: int) -> dict[str, Any] | None:
    """The posting's outbox row as a dict; None when there is none."""
    cursor = sql.execute("select * from semantic_outbox where job_id = %s", [job_id])
    row = cursor.fetchone()
    assert cursor.description is not None
    return dict(zip([c.name for c in cursor.description], row, strict=True)) if row else None


def stamp(sql: psycopg.Connection, job_id: int) -> tuple[str | None, str | None]:
    """Model and hash that the posting is stamped with."""
    row = sql.execute(
        "select semantic_embedded_model, semantic_embedded_hash from jobs where id = %s", [job_id]
    ).fetchone()
    assert row
    return row[0], row[1]


def chunk_indexes(sql: psycopg.Connection, job_id: int) -> list[int]:
    rows = sql.execute(
        "select chunk_index from job_semantic_chunks where job_id = %s order by 1", [job_id]
    ).fetchall()
    return [row[0] for row in rows]


def count(sql: psycopg.Connection, query: str, *parameters: Any) -> int:
    row = sql.execute(query, parameters).fetchone()
    assert row
    return int(row[0])
