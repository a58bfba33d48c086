"""What an audit finds on a real Postgres, and that the next run puts right what it re-queued."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehire_embed.audit import Kind, audit
from freehire_embed.drill import tei_faults
from freehire_embed_tests.bench import PROFILE, drained, server
from freehire_embed_tests.catalogue import add_embedded, add_posting, chunk_indexes, count, stamp, vector
from freehire_embed_tests.tei_bench import client

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from freehire_embed.audit import AuditReport
    from freehire_embed.drill.faulty_tei import FaultyTei
    from freehire_embed.store.database import Database

TEXT = "".join(f"<p>{letter * 8} {f'{letter}word ' * 300}</p>" for letter in "abc")


@pytest.fixture
def tei() -> Iterator[FaultyTei]:
    with server() as running:
        yield running


def embedded_posting(sql: psycopg.Connection, database: Database, tei: FaultyTei) -> int:
    """One posting of three chunks, embedded by a run."""
    job_id = add_posting(sql, description=TEXT)
    drained(database, tei)
    assert chunk_indexes(sql, job_id) == [0, 1, 2]
    return job_id


def look(database: Database, tei: FaultyTei | None = None, *, repair: bool = False) -> AuditReport:
    if tei is None:
        return audit(database, PROFILE, None, repair=repair)
    with client(tei.url, profile=PROFILE, rows_per_request=1) as embedder:
        embedder.preflight()
        return audit(database, PROFILE, embedder, repair=repair)


def kinds(report: AuditReport) -> dict[Kind, list[int]]:
    return {kind: finding.examples for kind, finding in report.findings.items()}


def test_a_catalogue_as_a_run_leaves_it_is_clean(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    add_posting(sql, description="")
    add_posting(sql, content_hash=None)
    embedded_posting(sql, database, tei)
    report = look(database, tei)
    assert report.clean
    assert (report.sampled, report.compared) == (3, 4)
    assert look(database).sampled == 0


BREAKS = {
    Kind.STAMP_WITHOUT_CHUNKS: "delete from job_semantic_chunks",
    Kind.GAP_IN_CHUNK_INDEX: "delete from job_semantic_chunks where chunk_index = 1",
    Kind.WRONG_NORM: "update job_semantic_chunks set embedding = '[0,0,0,0,0,0,0,0]' where chunk_index = 1",
    Kind.CHUNKS_WITHOUT_STAMP: "update jobs set semantic_embedded_model = null",
}


@pytest.mark.parametrize("kind", BREAKS)
def test_each_contradiction_is_found_and_put_right(
    database: Database, sql: psycopg.Connection, tei: FaultyTei, kind: Kind
) -> None:
    job_id = embedded_posting(sql, database, tei)
    sql.execute(BREAKS[kind])
    assert kinds(look(database)) == {kind: [job_id]}
    assert count(sql, "select count(*) from semantic_outbox") == 0
    assert look(database, repair=True).requeued == 1
    drained(database, tei)
    assert look(database, tei).clean
    assert chunk_indexes(sql, job_id) == [0, 1, 2]


@pytest.mark.parametrize("stamped", [True, False])
def test_chunks_of_a_posting_that_should_have_none_are_cleared_by_the_next_run(
    database: Database, sql: psycopg.Connection, tei: FaultyTei, *, stamped: bool
) -> None:
    job_id = embedded_posting(sql, database, tei)
    sql.execute("update jobs set closed_at = now()")
    if not stamped:
        sql.execute("update jobs set semantic_embedded_model = null, semantic_embedded_hash = null")
    assert kinds(look(database, repair=True)) == {Kind.CHUNKS_OF_INELIGIBLE: [job_id]}
    drained(database, tei)
    assert chunk_indexes(sql, job_id) == []
    assert look(database).clean


def test_vectors_of_another_width_are_found_where_the_column_lets_them_in(
    database: Database, sql: psycopg.Connection
) -> None:
    sql.execute("drop index job_semantic_chunks_embedding_idx")
    sql.execute("alter table job_semantic_chunks alter column embedding type vector")
    add_embedded(sql, 0.1)
    narrow = add_posting(
        sql, semantic_embedded_model=PROFILE.identity, semantic_embedded_hash="h", content_hash="h"
    )
    sql.execute(
        "insert into job_semantic_chunks (job_id, chunk_index, embedding) values (%s, 0, '[1,0]')", [narrow]
    )
    assert kinds(look(database)) == {Kind.WRONG_WIDTH: [narrow]}


def test_a_vector_that_is_not_of_its_text_is_found_and_made_anew(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    job_id = embedded_posting(sql, database, tei)
    sql.execute(
        "update job_semantic_chunks set embedding = %s where chunk_index = 2", [str(vector(1).tolist())]
    )
    assert look(database).clean
    assert kinds(look(database, tei, repair=True)) == {Kind.WRONG_VECTOR: [job_id]}
    assert stamp(sql, job_id) == (None, None)
    drained(database, tei)
    assert look(database, tei).clean


def test_chunks_of_another_text_are_found_although_the_hash_did_not_change(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    job_id = embedded_posting(sql, database, tei)
    sql.execute("update jobs set description = replace(description, 'cword', 'Cword')")
    assert kinds(look(database, tei, repair=True)) == {Kind.WRONG_TEXT: [job_id]}
    drained(database, tei)
    assert look(database, tei).clean


def test_chunks_without_a_hash_are_judged_by_their_vectors(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    job_id = embedded_posting(sql, database, tei)
    sql.execute("update job_semantic_chunks set passage_sha256 = null")
    assert look(database, tei).clean
    sql.execute(
        "update job_semantic_chunks set embedding = %s where chunk_index = 0", [str(vector(1).tolist())]
    )
    assert kinds(look(database, tei)) == {Kind.WRONG_VECTOR: [job_id]}


def test_what_a_run_will_see_to_anyway_is_no_fault(database: Database, sql: psycopg.Connection) -> None:
    add_posting(sql)
    add_posting(sql, semantic_embedded_model=PROFILE.identity, semantic_embedded_hash="old")
    add_embedded(sql, 0.1, model="another-model")
    assert look(database).clean


def test_a_long_catalogue_is_read_slice_by_slice(
    database: Database, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehire_embed.store.audit.SLICE", 2)
    monkeypatch.setattr("freehire_embed.audit._AT_ONCE", 2)
    stamped = {
        "semantic_embedded_model": PROFILE.identity,
        "semantic_embedded_hash": "h",
        "content_hash": "h",
    }
    ids = [add_posting(sql, **stamped) for _ in range(7)]
    report = look(database, repair=True)
    assert report.findings[Kind.STAMP_WITHOUT_CHUNKS].postings == 7
    assert report.findings[Kind.STAMP_WITHOUT_CHUNKS].examples == ids[:5]
    assert count(sql, "select count(*) from jobs where semantic_embedded_model is null") == 7


def test_passages_that_fill_the_limit_of_the_server_are_told_by_language(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    add_posting(
        sql, title="bridge " * 40, description=f"<p>{'we build the bridges of the city and ' * 100}</p>"
    )
    drained(database, tei)
    report = look(database, tei)
    assert report.passages["en"] == 2
    assert report.cut == {"en": 1}


def test_a_server_that_goes_away_leaves_the_sample_unfinished(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    embedded_posting(sql, database, tei)
    with client(tei.url, profile=PROFILE) as embedder:
        embedder.preflight()
        tei.fail(tei_faults.status(503))
        report = audit(database, PROFILE, embedder)
    assert report.not_compared
    assert not report.clean
    assert report.findings == {}
