"""Search by vector on a real Postgres: what may be found, in which order, and how much work it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from freehire_embed.chunks import chunk_text
from freehire_embed.profiles import Profile
from freehire_embed.queries import query
from freehire_embed.store.search import find_nearest
from freehire_embed.text import html_to_text
from freehire_embed_tests.catalogue import MODEL, add_embedded, at

if TYPE_CHECKING:
    import psycopg

    from freehire_embed.store.database import Database

PROFILE = Profile(MODEL, ("example/tiny",), 8)


def found(database: Database, limit: int = 10) -> list[int]:
    return [hit.job_id for hit in find_nearest(database, PROFILE, at(0), limit)]


def test_nearest_postings_come_first_each_once_by_its_nearest_chunk(
    database: Database, sql: psycopg.Connection
) -> None:
    far = add_embedded(sql, 0.9, 0.8)
    near = add_embedded(sql, 2.0, 0.1, 0.2)
    assert found(database) == [near, far]
    hit = find_nearest(database, PROFILE, at(0), 1)[0]
    assert hit.chunk_index == 1
    assert abs(hit.distance - (1 - np.cos(0.1))) < 1e-5


def test_only_open_canonical_public_tech_postings_of_the_target_are_found(
    database: Database, sql: psycopg.Connection
) -> None:
    right = add_embedded(sql, 0.5)
    add_embedded(sql, 0.1, closed_at="2026-01-01")
    add_embedded(sql, 0.1, duplicate_of=right)
    add_embedded(sql, 0.1, is_private=True)
    add_embedded(sql, 0.1, is_tech=None)
    add_embedded(sql, 0.1, model="another-model")
    assert found(database) == [right]


def test_enough_are_found_although_many_nearer_passages_do_not_count(
    database: Database, sql: psycopg.Connection
) -> None:
    for number in range(30):
        add_embedded(sql, *(0.001 * (number + step) for step in range(40)), is_private=True)
    wanted = [add_embedded(sql, 1.0 + 0.1 * number) for number in range(3)]
    assert found(database, limit=3) == wanted


def test_no_more_than_the_limit_are_given(database: Database, sql: psycopg.Connection) -> None:
    for number in range(8):
        add_embedded(sql, 0.1 * number)
    assert len(found(database, limit=5)) == 5


def test_an_empty_catalogue_gives_an_empty_answer(database: Database) -> None:
    assert found(database) == []


def test_the_snippet_is_the_beginning_of_the_chunk_that_was_found(
    database: Database, sql: psycopg.Connection
) -> None:
    description = "".join(f"<p>{letter * 30} {'word ' * 300}</p>" for letter in "abc")
    job_id = add_embedded(sql, 1.0, 0.1, description=description)
    hit = find_nearest(database, PROFILE, at(0), 1)[0]
    second = chunk_text(html_to_text(description), PROFILE)[1]
    assert hit.job_id == job_id
    assert second.startswith(hit.snippet.removesuffix(" …"))
    assert len(hit.snippet) < 250


def test_a_posting_edited_since_has_an_empty_snippet_where_its_chunk_is_gone(
    database: Database, sql: psycopg.Connection
) -> None:
    add_embedded(sql, 1.0, 0.9, 0.1, description="short now")
    assert find_nearest(database, PROFILE, at(0), 1)[0].snippet == ""


def test_the_statement_has_the_shape_that_the_vector_index_serves(sql: psycopg.Connection) -> None:
    parameters = {
        "query": str(at(0).tolist()),
        "candidates": 30,
        "model": MODEL,
        "limit": 3,
        "company": "Northwind",
        "since": None,
    }
    with sql.transaction():
        sql.execute("set local enable_seqscan = off")
        plan = sql.execute(b"explain " + query("search"), parameters).fetchall()
    assert "Index Scan using job_semantic_chunks_embedding_idx" in str(plan)
