"""What a run sends to the server: only passages that nobody has embedded yet, and each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from freehire_embed.domain import Embeddings
from freehire_embed.once import EmbedOnce
from freehire_embed_tests.bench import assert_every_vector_belongs, drained, sent, server
from freehire_embed_tests.catalogue import add_posting, count, vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg

    from freehire_embed.drill.faulty_tei import FaultyTei
    from freehire_embed.store.database import Database

PARAGRAPHS = [f"<p>{letter * 8} {f'{letter}word ' * 300}</p>" for letter in "abcd"]


@pytest.fixture
def tei() -> Iterator[FaultyTei]:
    with server() as running:
        yield running


def sent_by(database: Database, tei: FaultyTei) -> int:
    """Passages that one run sends."""
    before = sent(tei)
    drained(database, tei)
    return sent(tei) - before


def rows(sql: psycopg.Connection) -> list[tuple[int, str, bytes]]:
    """Where each chunk lies in the table (a rewritten row moves), its number and hash."""
    return sql.execute(
        "select ctid::text, chunk_index, passage_sha256 from job_semantic_chunks order by 2"
    ).fetchall()


def edit(sql: psycopg.Connection, description: str) -> None:
    sql.execute("update jobs set description = %s, content_hash = content_hash || '+'", [description])


def test_touching_unrelated_columns_sends_nothing(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    add_posting(sql, description="".join(PARAGRAPHS))
    assert sent_by(database, tei) == 4
    sql.execute(
        "update jobs set updated_at = now() + interval '1 hour', last_seen_at = now(), category = 'x'"
    )
    assert sent_by(database, tei) == 0


def test_a_hash_that_changed_without_the_text_moves_only_the_stamp(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    add_posting(sql, description="".join(PARAGRAPHS))
    drained(database, tei)
    sql.execute("update jobs set similar_computed_at = now()")
    sql.execute("truncate search_outbox")
    before = rows(sql)
    edit(sql, "".join(PARAGRAPHS))
    assert sent_by(database, tei) == 0
    assert rows(sql) == before
    assert count(sql, "select count(*) from jobs where semantic_embedded_hash = content_hash") == 1
    assert count(sql, "select count(*) from search_outbox") == 0
    assert count(sql, "select count(*) from jobs where similar_computed_at is not null") == 1


def test_editing_one_paragraph_sends_only_what_it_changed(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    add_posting(sql, description="".join(PARAGRAPHS))
    drained(database, tei)
    sql.execute("update jobs set similar_computed_at = now()")
    before = rows(sql)
    edit(sql, "".join([PARAGRAPHS[0], PARAGRAPHS[1].replace("bword", "Bword", 1), *PARAGRAPHS[2:]]))
    assert sent_by(database, tei) == 1
    assert [row for row in rows(sql) if row in before] == [before[0], before[2], before[3]]
    assert count(sql, "select count(*) from jobs where similar_computed_at is null") == 1
    assert_every_vector_belongs(sql, database)


def test_a_paragraph_put_on_top_moves_the_others_and_sends_itself(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    add_posting(sql, description="".join(PARAGRAPHS))
    drained(database, tei)
    edit(sql, "".join([PARAGRAPHS[0].replace("a", "e"), *PARAGRAPHS]))
    assert sent_by(database, tei) == 1
    assert [row[1] for row in rows(sql)] == [0, 1, 2, 3, 4]
    assert_every_vector_belongs(sql, database)


def test_equal_passages_of_one_posting_are_all_kept(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    add_posting(sql, description=PARAGRAPHS[0] * 3)
    assert sent_by(database, tei) == 1
    before = rows(sql)
    assert len(before) == 3
    sql.execute("update jobs set content_hash = 'touched'")
    assert sent_by(database, tei) == 0
    assert rows(sql) == before


def test_a_new_title_sends_every_passage(database: Database, sql: psycopg.Connection, tei: FaultyTei) -> None:
    add_posting(sql, description="".join(PARAGRAPHS))
    drained(database, tei)
    sql.execute("update jobs set title = 'Engineer of tunnels', content_hash = 'other'")
    assert sent_by(database, tei) == 4


def test_chunks_without_a_hash_are_simply_embedded(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    add_posting(sql, description="".join(PARAGRAPHS))
    drained(database, tei)
    sql.execute("update job_semantic_chunks set passage_sha256 = null where chunk_index < 3")
    edit(sql, "".join(PARAGRAPHS))
    assert sent_by(database, tei) == 3
    assert count(sql, "select count(*) from job_semantic_chunks where passage_sha256 is null") == 0
    assert_every_vector_belongs(sql, database)


def test_equal_passages_of_a_run_are_sent_once_whatever_wave_they_are_in(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    for _ in range(10):
        add_posting(sql, title="Engineer", description=PARAGRAPHS[0])
    report = drained(database, tei, EMBED_BATCH_SIZE="3")
    assert report.waves == 4
    assert sent(tei) == 1
    assert report.total.embedded == 10
    assert_every_vector_belongs(sql, database)


def test_passages_that_the_model_cuts_are_counted_by_language(
    database: Database, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    add_posting(sql, description="We build the bridges of the city. " * 40)
    add_posting(sql, description="我们正在寻找一位有经验的后端工程师，负责设计和维护分布式系统。" * 60)
    report = drained(database, tei)
    assert report.total.over_limit == {"zh": 1}
    assert sql.execute("select over_limit from semantic_runs").fetchone() == ({"zh": 1},)


class Counting:
    """An embedder that tells what it was asked, and whose answer is a fault for `bad`."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.width: int | None = None

    def embed(self, passages: Sequence[str], timeout_seconds: float | None = None) -> Embeddings:
        self.asked.append(list(passages))
        vectors = [None if text == "bad" else vector(len(text))[: self.width] for text in passages]
        return Embeddings(vectors, {i: "refused" for i, text in enumerate(passages) if text == "bad"})


def test_what_is_remembered_keeps_its_place_among_what_is_not() -> None:
    inner = Counting()
    once = EmbedOnce(inner)
    once.embed(["a", "ccc"])
    result = once.embed(["bad", "a", "bb", "ccc"])
    assert inner.asked == [["a", "ccc"], ["bad", "bb"]]
    assert result.faults == {0: "refused"}
    assert result.vectors[0] is None
    for got, text in zip(result.vectors[1:], ("a", "bb", "ccc"), strict=True):
        assert np.array_equal(got, vector(len(text)))


def test_a_text_that_failed_is_asked_again() -> None:
    inner = Counting()
    once = EmbedOnce(inner)
    once.embed(["bad"])
    once.embed(["bad"])
    assert inner.asked == [["bad"], ["bad"]]


def test_only_so_many_are_remembered_and_the_latest_used_stay() -> None:
    inner = Counting()
    once = EmbedOnce(inner, remembered=2)
    once.embed(["a", "bb"])
    once.embed(["a"])
    once.embed(["ccc"])
    once.embed(["a", "bb"])
    assert inner.asked == [["a", "bb"], ["ccc"], ["bb"]]


def test_a_vector_stays_what_it_was_when_its_place_is_given_to_another_text() -> None:
    once = EmbedOnce(Counting(), remembered=1)
    once.embed(["a"])
    recalled = once.embed(["a"]).vectors[0]
    once.embed(["bb"])
    assert np.array_equal(recalled, vector(1))


def test_remembering_that_is_cut_short_mixes_up_no_texts() -> None:
    inner = Counting()
    once = EmbedOnce(inner, remembered=2)
    once.embed(["a", "bb"])
    inner.width = 3
    with pytest.raises(ValueError, match="shape"):
        once.embed(["odd"])
    inner.width = None
    once.embed(["ccc"])
    assert np.array_equal(once.embed(["bb"]).vectors[0], vector(2))
