"""One transaction a wave: vectors, stamps and queue rows, or nothing."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

from freehire_embed.chunks import passage_sha256
from freehire_embed.domain import Document, Outcome, Passage
from freehire_embed.store.faults import RowRejected
from freehire_embed.waves import EmbeddedDocument
from freehire_embed_tests.catalogue import (
    MODEL,
    add_posting,
    chunk_indexes,
    count,
    embedded,
    entry,
    outbox,
    stamp,
    vector,
)


def claimed(sql, database, n=1, **columns):
    for _ in range(n):
        add_posting(sql, **columns)
    queue = outbox(database)
    queue.enqueue()
    return queue, queue.claim(100)


def test_stores_exactly_the_vectors_it_was_given(sql, database):
    queue, wave = claimed(sql, database)
    claim = wave.claims[0]
    document = embedded(claim, "one", "two", "three", content_hash="read-with-text")
    assert queue.replace(wave.lease, [document]) == {claim.entry_id: Outcome.INDEXED}
    rows = sql.execute(
        "select chunk_index, embedding::real[], passage_sha256 from job_semantic_chunks order by 1"
    ).fetchall()
    assert [row[0] for row in rows] == [0, 1, 2]
    for row, expected in zip(rows, document.vectors, strict=True):
        assert np.array_equal(np.array(row[1], dtype=np.float32), expected)
    assert [row[2] for row in rows] == [passage_sha256(MODEL, t) for t in ("one", "two", "three")]
    assert stamp(sql, claim.job_id) == (MODEL, "read-with-text")
    assert entry(sql, claim.job_id) is None


def test_the_stamp_is_the_hash_read_with_the_text_so_an_edit_comes_back(sql, database):
    queue, wave = claimed(sql, database, content_hash="first")
    claim = wave.claims[0]
    sql.execute("update jobs set content_hash = 'second' where id = %s", [claim.job_id])
    queue.replace(wave.lease, [embedded(claim, "text", content_hash="first")])
    assert stamp(sql, claim.job_id) == (MODEL, "first")
    assert queue.enqueue().content == 1


def test_a_posting_without_text_is_completed_with_zero_chunks(sql, database):
    queue, wave = claimed(sql, database, content_hash="h")
    claim = wave.claims[0]
    assert queue.replace(wave.lease, [embedded(claim)]) == {claim.entry_id: Outcome.INDEXED}
    assert chunk_indexes(sql, claim.job_id) == []
    assert queue.enqueue().enqueued == 0


def test_fewer_chunks_than_before_leave_none_of_the_old(sql, database):
    queue, wave = claimed(sql, database)
    claim = wave.claims[0]
    for index in range(3):
        sql.execute(
            "insert into job_semantic_chunks (job_id, chunk_index, embedding) values (%s, %s, %s)",
            [claim.job_id, index, str(vector(index).tolist())],
        )
    queue.replace(wave.lease, [embedded(claim, "only", stored=3)])
    assert chunk_indexes(sql, claim.job_id) == [0]


def test_a_posting_closed_in_the_meantime_is_cleared_instead(sql, database):
    queue, wave = claimed(sql, database)
    claim = wave.claims[0]
    sql.execute("update jobs set closed_at = now() where id = %s", [claim.job_id])
    assert queue.replace(wave.lease, [embedded(claim, "text")]) == {claim.entry_id: Outcome.REMOVED}
    assert stamp(sql, claim.job_id) == (None, None)
    assert chunk_indexes(sql, claim.job_id) == []


def test_clearing_removes_vectors_stamps_and_the_legacy_vector(sql, database):
    job_id = add_posting(
        sql,
        semantic_embedded_model=MODEL,
        semantic_embedded_hash="h",
        semantic_embedding=[0.5],
        closed_at="2026-01-01",
    )
    sql.execute(
        "insert into job_semantic_chunks (job_id, chunk_index, embedding) values (%s, 0, %s)",
        [job_id, str(vector(1).tolist())],
    )
    queue = outbox(database)
    queue.enqueue()
    wave = queue.claim(1)
    assert set(queue.clear(wave.lease, wave.claims).values()) == {Outcome.REMOVED}
    assert stamp(sql, job_id) == (None, None)
    assert chunk_indexes(sql, job_id) == []
    assert count(sql, "select count(*) from jobs where semantic_embedding is not null") == 0
    assert entry(sql, job_id) is None


def test_a_posting_opened_again_before_it_was_cleared_keeps_its_vectors(sql, database):
    job_id = add_posting(sql, semantic_embedded_model=MODEL, closed_at="2026-01-01")
    queue = outbox(database)
    queue.enqueue()
    wave = queue.claim(1)
    sql.execute("update jobs set closed_at = null")
    assert set(queue.clear(wave.lease, wave.claims).values()) == {Outcome.RELEASED}
    assert stamp(sql, job_id)[0] == MODEL
    assert entry(sql, job_id)["claimed_at"] is None


def test_nothing_is_written_when_one_row_is_refused(sql, database):
    queue, wave = claimed(sql, database, n=3)
    bad = wave.claims[1].job_id
    sql.execute(f"alter table job_semantic_chunks add constraint picky check (job_id <> {bad})")
    with pytest.raises(RowRejected):
        queue.replace(wave.lease, [embedded(claim, "text") for claim in wave.claims])
    assert count(sql, "select count(*) from job_semantic_chunks") == 0
    assert count(sql, "select count(*) from semantic_outbox") == 3


def test_open_postings_wake_search_once_each(sql, database):
    queue, wave = claimed(sql, database, n=2)
    queue.replace(wave.lease, [embedded(claim, "one", "two") for claim in wave.claims])
    assert count(sql, "select count(*) from search_outbox") == 2


def test_neighbours_are_stale_only_where_the_vectors_changed(sql, database):
    queue, wave = claimed(sql, database, similar_computed_at="2026-01-01")
    claim = wave.claims[0]
    queue.replace(wave.lease, [embedded(claim, "one")])
    assert count(sql, "select count(*) from jobs where similar_computed_at is null") == 1

    sql.execute("update jobs set similar_computed_at = now(), content_hash = 'touched'")
    sql.execute("delete from search_outbox")
    queue.enqueue()
    again = outbox(database, "next").claim(1)
    kept = Passage("one", passage_sha256(MODEL, "one"), stored_index=0)
    document = EmbeddedDocument(Document(again.claims[0], "touched", (kept,), 1), ())
    queue.replace(again.lease, [document])
    assert count(sql, "select count(*) from jobs where similar_computed_at is null") == 0
    assert count(sql, "select count(*) from search_outbox") == 0
    assert stamp(sql, claim.job_id) == (MODEL, "touched")


def kept(text, index):
    return Passage(text, passage_sha256(MODEL, text), stored_index=index)


def new(text):
    return Passage(text, passage_sha256(MODEL, text))


def test_kept_passages_move_and_keep_their_vectors(sql, database):
    queue, wave = claimed(sql, database)
    claim = wave.claims[0]
    first = embedded(claim, "a", "b", "c")
    queue.replace(wave.lease, [first])
    sql.execute("update jobs set content_hash = 'edited'")
    queue.enqueue()
    wave = outbox(database, "next").claim(1)
    passages = (kept("c", 2), new("d"), kept("a", 0))
    d = vector(99)
    queue.replace(wave.lease, [EmbeddedDocument(Document(wave.claims[0], "edited", passages, 3), (d,))])
    rows = sql.execute("select embedding::real[] from job_semantic_chunks order by chunk_index").fetchall()
    expected = [first.vectors[2], d, first.vectors[0]]
    assert len(rows) == 3
    for row, wanted in zip(rows, expected, strict=True):
        assert np.array_equal(np.array(row[0], dtype=np.float32), wanted)


def test_a_vector_that_another_writer_replaced_is_not_taken_for_ours(sql, database):
    queue, wave = claimed(sql, database)
    claim = wave.claims[0]
    queue.replace(wave.lease, [embedded(claim, "a")])
    sql.execute("update jobs set content_hash = 'edited'")
    queue.enqueue()
    wave = outbox(database, "next").claim(1)
    sql.execute("update job_semantic_chunks set passage_sha256 = null")  # the broker was here
    document = EmbeddedDocument(Document(wave.claims[0], "edited", (kept("a", 0),), 1), ())
    assert queue.replace(wave.lease, [document]) == {wave.claims[0].entry_id: Outcome.RELEASED}
    assert stamp(sql, claim.job_id) == (MODEL, "h")
    assert entry(sql, claim.job_id)["claimed_at"] is None


def test_a_wave_costs_the_same_statements_whatever_its_size(sql, database, monkeypatch):
    def statements(n):
        queue, wave = claimed(sql, database, n=n)
        sent = []
        execute = psycopg.Connection.execute
        monkeypatch.setattr(
            psycopg.Connection, "execute", lambda *args, **kw: sent.append(args[1]) or execute(*args, **kw)
        )
        queue.replace(wave.lease, [embedded(claim, "one", "two") for claim in wave.claims])
        monkeypatch.undo()
        return sent

    few, many = statements(2), statements(50)
    assert few == many
    assert len(few) + len(["begin", "copy", "commit"]) <= 8
