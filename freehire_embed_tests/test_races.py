"""Somebody changes a posting between any two stages, and several runs work at once: the catalogue comes right."""

from __future__ import annotations

import random
import threading

import psycopg
import pytest
from pydantic import SecretStr

from freehire_embed import stages
from freehire_embed.chunks import passages
from freehire_embed.domain import Embeddings, Outcome
from freehire_embed.drill.checks import wait_until
from freehire_embed.drill.faulty_tei import vector_for
from freehire_embed.store.database import Database
from freehire_embed_tests.bench import (
    ELIGIBLE,
    PROFILE,
    SERVED,
    assert_catalogue_comes_right,
    assert_every_vector_belongs,
    charged,
    drained,
    endings,
    sent,
    server,
)
from freehire_embed_tests.catalogue import MODEL, add_posting, chunk_indexes, count, outbox, stamp, vector
from freehire_embed_tests.conftest import WIDTH


class Server:
    """The embedding server without the wire."""

    def embed(self, passages, timeout_seconds=None):
        return Embeddings([vector_for(text, WIDTH, SERVED) for text in passages])


def foreign_rows(sql, job_id, start=0, rows=2):
    """As the other writer does it: plain SQL, without our columns, vectors that are none of ours."""
    for index in range(start, start + rows):
        sql.execute(
            "insert into job_semantic_chunks (job_id, chunk_index, embedding) values (%s, %s, %s) "
            "on conflict (job_id, chunk_index) do update set embedding = excluded.embedding, passage_sha256 = null",
            [job_id, index, str(vector(index + 1).tolist())],
        )


CHANGES = {
    "edited": "update jobs set description = '<p>Another text</p>', content_hash = 'edited' where id = %s",
    "closed": "update jobs set closed_at = now() where id = %s",
    "made a duplicate": "update jobs set duplicate_of = (select min(id) from jobs) where id = %s",
    "un-teched": "update jobs set is_tech = false where id = %s",
    "undecided": "update jobs set is_tech = null where id = %s",
    "deleted": "delete from jobs where id = %s",
    "embedded by the other writer": foreign_rows,
    "crawled again": "update jobs set updated_at = now(), last_seen_at = now() where id = %s",
}
GAPS = ["enqueue", "claim", "chunk", "embed"]


def embed_as_the_other_writer(sql, job_id):
    """The volunteer broker at its best: right vectors and stamp in one transaction, without our columns."""
    with sql.transaction():
        row = sql.execute(
            f"select title, company, description from jobs where id = %s and {ELIGIBLE} for no key update",
            [job_id],
        ).fetchone()
        if row is None:
            return
        sql.execute("delete from job_semantic_chunks where job_id = %s", [job_id])
        for index, text in enumerate(passages(*row, PROFILE)):
            sql.execute(
                "insert into job_semantic_chunks (job_id, chunk_index, embedding) values (%s, %s, %s)",
                [job_id, index, str(vector_for(text, WIDTH, SERVED).tolist())],
            )
        sql.execute(
            "update jobs set semantic_embedded_model = %s, semantic_embedded_hash = content_hash where id = %s",
            [MODEL, job_id],
        )


def change(sql, name, job_id):
    what = CHANGES[name]
    if callable(what):
        what(sql, job_id)
    else:
        sql.execute(what, [job_id])


EXPECTED = {
    "closed": {Outcome.REMOVED},
    "made a duplicate": {Outcome.REMOVED},
    "un-teched": {Outcome.REMOVED},
    "undecided": {Outcome.REMOVED},
}


@pytest.mark.parametrize("before", ["new", "embedded before"])
@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_between_any_two_stages_comes_right(sql, database, name, before):
    for number, gap in enumerate(GAPS):
        add_posting(sql)  # the canonical one of a duplicate
        job_id = add_posting(sql)
        if before == "embedded before":
            work(outbox(database, f"before-{number}"))
            text = "<p>A new text</p>"
            sql.execute(
                "update jobs set description = %s, content_hash = 'new' where id = %s", [text, job_id]
            )
        report = work(outbox(database, f"run-{number}"), after={gap: lambda j=job_id: change(sql, name, j)})
        assert report.outcomes[Outcome.FAILED] == report.outcomes[Outcome.DEAD_LETTERED] == 0, gap
        if name in EXPECTED:
            assert report.outcomes[Outcome.REMOVED] == 1, gap
            assert chunk_indexes(sql, job_id) == [], gap
            assert stamp(sql, job_id) == (None, None), gap
        elif name == "deleted":
            assert report.outcomes[Outcome.LOST] == (gap != "enqueue"), gap
        assert_every_vector_belongs(sql, database)
    assert charged(sql) == 0
    assert_catalogue_comes_right(sql, database)


def work(queue, after=None):
    """One enqueue and one wave; `after`: stage -> what happens right after it."""
    happens = after or {}

    def then(stage):
        happens.get(stage, lambda: None)()

    stages.enqueue(queue)
    then("enqueue")
    wave = stages.claim(queue, 100)
    then("claim")
    if wave is None:
        return stages.WaveReport()
    chunked = stages.chunk(queue, wave, PROFILE)
    then("chunk")
    embedded = stages.embed(Server(), chunked)
    then("embed")
    report = stages.commit(queue, embedded)
    assert report.claimed == len(wave.claims)
    return report


def test_rows_that_the_other_writer_adds_to_an_unchanged_posting_do_not_stay(sql, database):
    job_id = add_posting(sql)
    work(outbox(database, "first"))
    sql.execute("update jobs set content_hash = 'only the salary changed'")
    report = work(outbox(database, "second"), after={"embed": lambda: foreign_rows(sql, job_id, start=1)})
    assert (report.outcomes[Outcome.INDEXED], report.reused) == (1, 1)
    assert chunk_indexes(sql, job_id) == [0]
    assert_every_vector_belongs(sql, database)


def test_rows_that_the_other_writer_gives_a_posting_without_text_do_not_stay(sql, database):
    job_id = add_posting(sql, description="")
    report = work(outbox(database), after={"embed": lambda: foreign_rows(sql, job_id)})
    assert (report.outcomes[Outcome.INDEXED], report.no_text) == (1, 1)
    assert chunk_indexes(sql, job_id) == []


def test_a_key_that_the_other_writer_is_just_inserting_is_nobodys_fault(sql, database, database_url):
    """Its transaction is open while ours deletes and copies; then it commits the very same key."""
    job_id = add_posting(sql)
    with psycopg.connect(database_url) as other:
        foreign_rows(other, job_id, rows=1)
        reports = []
        run = threading.Thread(target=lambda: reports.append(work(outbox(database))))
        run.start()
        wait_until(lambda: count(sql, "select count(*) from pg_locks where not granted") > 0, "ours waits")
        other.commit()
        run.join(30)
    assert reports[0].outcomes == {Outcome.INDEXED: 1}
    assert_every_vector_belongs(sql, database)
    assert charged(sql) == 0


@pytest.mark.parametrize("runs", [2, 4, 8])
def test_several_runs_at_once_embed_each_posting_once(sql, database_url, database, runs):
    for _ in range(16 * runs):
        add_posting(sql)
    reports = at_once(runs, database_url)
    with_something = [report for report in reports if report.total.claimed]
    assert sum(endings(report).get("indexed", 0) for report in reports) == 16 * runs
    assert all(set(endings(report)) == {"indexed"} for report in with_something)
    assert all(report.exit_code == 0 for report in reports)
    assert count(sql, "select count(*) from semantic_outbox") == 0
    assert_every_vector_belongs(sql, database)


@pytest.mark.parametrize("runs", [2, 4, 8])
def test_several_runs_among_writers_keep_every_rule(sql, database_url, direct_url, database, runs):
    """An editor, a closer, a deleter and the other writer are at it all the while."""
    ids = [add_posting(sql) for _ in range(60)]
    over = threading.Event()
    errors = []

    def write(seed):
        chance = random.Random(seed)
        try:
            with psycopg.connect(direct_url, autocommit=True) as own:
                while not over.is_set():
                    name = chance.choice([n for n in CHANGES if n != "made a duplicate"])
                    job_id = chance.choice(ids)
                    if name == "embedded by the other writer":
                        embed_as_the_other_writer(own, job_id)
                    else:
                        change(own, name, job_id)
                    over.wait(0.005)
        except Exception as error:  # noqa: BLE001 - for the main thread
            errors.append(error)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    for writer in writers:
        writer.start()
    try:
        reports = at_once(runs, database_url)
    finally:
        over.set()
        for writer in writers:
            writer.join(30)
    assert errors == []
    for report in reports:
        assert set(endings(report)) <= {"indexed", "removed", "released", "lost"}
        assert report.total.halt is None
    assert charged(sql) == 0
    assert_catalogue_comes_right(sql, database)


def at_once(runs, database_url):
    reports = []
    ready = threading.Barrier(runs)
    with server() as tei:

        def run():
            with Database(SecretStr(database_url)) as own:
                ready.wait(30)
                reports.append(drained(own, tei))

        threads = [threading.Thread(target=run) for _ in range(runs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert len(reports) == runs
        if all(set(endings(report)) <= {"indexed"} for report in reports):
            assert sent(tei) == sum(endings(report).get("indexed", 0) for report in reports)
    return reports


def test_a_posting_deleted_while_it_is_being_queued_does_not_end_the_run(sql, database, database_url):
    doomed, other = add_posting(sql), add_posting(sql)
    with psycopg.connect(database_url) as deleter:
        deleter.execute("delete from jobs where id = %s", [doomed])
        reports = []
        run = threading.Thread(target=lambda: reports.append(stages.enqueue(outbox(database))))
        run.start()
        wait_until(lambda: count(sql, "select count(*) from pg_locks where not granted") > 0, "ours waits")
        deleter.commit()
        run.join(30)
    assert reports[0].missing == 1
    assert count(sql, "select job_id from semantic_outbox") == other
