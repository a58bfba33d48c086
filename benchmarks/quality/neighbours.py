"""The index against comparing everything, and the time of similar postings, at several sizes.

    python -m benchmarks.quality.retrieval postings.jsonl.gz --cache vectors     first, for real vectors
    python -m benchmarks.quality.neighbours vectors --postings 3000 --postings 24000

The real vectors of CACHE are multiplied: a posting's chunks lie between two of them, with some noise. The server is
a PostgreSQL of its own in a temporary folder.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import psycopg
from pydantic import SecretStr

from freehire_embed.local import postgres
from freehire_embed.migrate import migrate
from freehire_embed.profiles import BUILT_IN, LOCAL_IDENTITY
from freehire_embed.queries import query
from freehire_embed.similar import BATCH, refresh
from freehire_embed.store.database import Database
from freehire_embed.store.neighbours import CANDIDATES, KEPT, PROBES, find_neighbours
from freehire_embed.store.search import explain_nearest
from freehire_embed.store.similar import find_due

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROFILE = BUILT_IN[LOCAL_IDENTITY]
_CHUNKS = (1, 1, 1, 2, 2, 3)
"""Chunks of a posting, in turn: 1.7 on average, as in real ones."""
_COMPANIES = 2000
_QUERIES = 200
_POSTINGS_TIMED = 500
_POSTINGS_EXACT = 20


def multiply(real: NDArray[np.float32], postings: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Owners and vectors of the chunks of so many postings."""
    random = np.random.default_rng(7)
    owners = np.repeat(np.arange(postings), [_CHUNKS[i % len(_CHUNKS)] for i in range(postings)])
    first, second = random.integers(len(real), size=(2, postings))
    share = random.uniform(0.6, 1.0, size=(postings, 1))
    centres = share * real[first] + (1 - share) * real[second]
    vectors = centres[owners] + random.normal(scale=0.012, size=(len(owners), real.shape[1]))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return owners, vectors.astype(np.float32)


def fill(
    connection: psycopg.Connection, postings: int, owners: NDArray[np.int64], vectors: NDArray[np.float32]
) -> None:
    connection.execute("drop index job_semantic_chunks_embedding_idx")
    connection.execute(
        """
        insert into jobs (
            id, source, external_id, url, title, company_slug, public_slug, is_tech, content_hash,
            semantic_embedded_model, semantic_embedded_hash
        )
        select n, 'made', n, '', 'title', 'c' || n %% %(companies)s, n, true, 'h', %(model)s, 'h'
        from generate_series(1, %(postings)s) as n
        """,
        {"companies": _COMPANIES, "model": PROFILE.identity, "postings": postings},
    )
    place: dict[int, int] = {}
    with connection.cursor().copy(
        "copy job_semantic_chunks (job_id, chunk_index, embedding) from stdin"
    ) as copy:
        for owner, vector in zip(owners.tolist(), vectors, strict=True):
            place[owner] = place.get(owner, -1) + 1
            copy.write_row((owner + 1, place[owner], str(vector.tolist())))
    connection.execute("set maintenance_work_mem = '512MB'")
    connection.execute(
        "create index job_semantic_chunks_embedding_idx on job_semantic_chunks "
        "using hnsw (embedding vector_cosine_ops)"
    )
    connection.execute("vacuum analyze")


def measure_search(database: Database, vectors: NDArray[np.float32]) -> list[str]:
    """Recall of the index as `search` uses it, and whether each chunk finds itself."""
    random = np.random.default_rng(11)
    chosen = random.choice(len(vectors), size=_QUERIES, replace=False)
    queries = vectors[chosen] + random.normal(scale=0.02, size=(_QUERIES, vectors.shape[1]))
    explained = [explain_nearest(database, PROFILE, query.astype(np.float32), 10) for query in queries]
    itself = [explain_nearest(database, PROFILE, vectors[i], 1) for i in chosen]
    return [
        f"{np.mean([each.recall for each in explained]):.4f}",
        f"{np.mean([each.recall for each in itself]):.4f}",
        f"{1000 * np.median([each.index_seconds for each in explained]):.1f}",
        f"{1000 * np.median([each.exact_seconds for each in explained]):.1f}",
    ]


def measure_similar(database: Database, connection: psycopg.Connection) -> list[str]:
    """Milliseconds a posting, by one probe a chunk and by comparing everything; how alike both answers are."""
    due = find_due(database, PROFILE.identity, refresh_days=7, limit=_POSTINGS_TIMED)
    started = time.perf_counter()
    found = {}
    for start in range(0, len(due), BATCH):
        for group in find_neighbours(database, PROFILE.identity, due[start : start + BATCH]):
            found |= {each.job_id: each.job_ids for each in group}
    probing = (time.perf_counter() - started) / len(due)
    by_index = "embedding_idx" in explain_neighbours(connection, due[:BATCH])
    connection.execute("drop index job_semantic_chunks_embedding_idx")
    started = time.perf_counter()
    groups = find_neighbours(database, PROFILE.identity, due[:_POSTINGS_EXACT])
    exact = [each for group in groups for each in group]
    comparing = (time.perf_counter() - started) / len(exact)
    recall = np.mean([len({*found[e.job_id]} & {*e.job_ids}) / max(len(e.job_ids), 1) for e in exact])
    full = np.mean([len(each) == KEPT for each in found.values()])
    chosen = "index" if by_index else "table"
    return [f"{1000 * probing:.1f}", chosen, f"{1000 * comparing:.0f}", f"{recall:.4f}", f"{full:.3f}"]


def explain_neighbours(connection: psycopg.Connection, job_ids: list[int]) -> str:
    """The plan as the planner makes it, nothing forced; also to stderr."""
    size = len(job_ids)
    ranges = {"job_ids": job_ids, "firsts": [0] * size, "lasts": [PROBES] * size}
    parameters = {"model": PROFILE.identity, **ranges, "candidates": CANDIDATES, "kept": KEPT}
    with connection.transaction():
        connection.execute(query("search_effort"), {"candidates": CANDIDATES})
        rows = connection.execute(
            b"explain (analyze, costs off, timing off) " + query("similar_neighbours"), parameters
        ).fetchall()
    plan = "\n".join(row[0] for row in rows)
    click.echo(plan, err=True)
    return plan


def measure(url: str, real: NDArray[np.float32], postings: int) -> list[str]:
    name = f"quality_{postings}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"create database {name}")
    own = psycopg.conninfo.make_conninfo(url, dbname=name)
    owners, vectors = multiply(real, postings)
    with Database(SecretStr(own)) as database, psycopg.connect(own, autocommit=True) as connection:
        migrate(database, PROFILE.width)
        fill(connection, postings, owners, vectors)
        cells = [str(postings), str(len(vectors)), *measure_search(database, vectors)]
        refreshed = refresh(database, PROFILE.identity, seconds=20)
        rate = 1000 * refreshed.seconds / refreshed.computed
        return [*cells, f"{rate:.1f}", *measure_similar(database, connection)]


@click.command()
@click.argument("cache", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--postings", multiple=True, type=int, default=(3000, 24_000), show_default=True, help="Sizes.")
def main(cache: Path, postings: tuple[int, ...]) -> None:
    """Prints the table of docs/quality.md, made from the vectors in CACHE."""
    with np.load(cache / "vectors.npz") as stored:
        real = stored["vectors"]
    columns = (
        "postings",
        "chunks",
        "search recall@10",
        "self-match",
        "index ms",
        "exact ms",
        "refresh ms/posting",
        f"probe ms/posting ({CANDIDATES} candidates)",
        "planner takes",
        "exact ms/posting",
        "lists: recall",
        "lists: full",
    )
    click.echo(f"| {' | '.join(columns)} |")
    click.echo("|---" * len(columns) + "|")
    state = Path(tempfile.mkdtemp(prefix="freehire-quality-"))
    try:
        url = postgres.start(state)
        for size in postings:
            click.echo(f"| {' | '.join(measure(url, real, size))} |")
    finally:
        postgres.release(state)
        shutil.rmtree(state, ignore_errors=True)


if __name__ == "__main__":
    main()
