"""Dead letters are found, understood and brought back; some come back by themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from freehire_embed.domain import RowFault
from freehire_embed.store.dead_letters import Selection, list_causes, list_dead, requeue
from freehire_embed_tests.catalogue import MODEL, add_posting, entry, outbox


def bury(sql, database, reason="its text is odd", **columns):
    """A posting whose entry is a dead letter; returns its id."""
    job_id = add_posting(sql, **columns)
    queue = outbox(database, f"run-{job_id}", max_attempts=1)
    queue.enqueue()
    wave = queue.claim(1)
    hash_read = sql.execute("select content_hash from jobs where id = %s", [job_id]).fetchone()[0]
    assert queue.fail(wave.lease, [RowFault(wave.claims[0], reason, content_hash=hash_read or "")])
    return job_id


def is_dead(sql, job_id):
    row = entry(sql, job_id)
    return row is not None and row["failed_at"] is not None


def test_a_failure_is_charged_and_waits_for_the_lease_until_it_was_the_last(sql, database):
    job_id = add_posting(sql)
    for attempt in (1, 2):
        queue = outbox(database, f"run-{attempt}", max_attempts=2)
        queue.enqueue()
        wave = queue.claim(1)
        dead = queue.fail(wave.lease, [RowFault(wave.claims[0], f"attempt {attempt}")])
        assert list(dead.values()) == [attempt == 2]
        row = entry(sql, job_id)
        assert (row["attempts"], row["last_error"]) == (attempt, f"attempt {attempt}")
        assert row["claimed_at"] is not None
        assert outbox(database, "next").claim(1) is None
        sql.execute("update semantic_outbox set claimed_at = claimed_at - interval '1 day'")
    assert is_dead(sql, job_id)


def test_a_final_fault_is_not_tried_again(sql, database):
    add_posting(sql)
    queue = outbox(database, max_attempts=5)
    queue.enqueue()
    wave = queue.claim(1)
    assert list(queue.fail(wave.lease, [RowFault(wave.claims[0], "corrupted", final=True)]).values()) == [
        True
    ]


def test_it_stays_dead_while_nothing_changes(sql, database):
    job_id = bury(sql, database)
    report = outbox(database).enqueue()
    assert (report.revived, report.reaped) == (0, 0)
    assert is_dead(sql, job_id)


@pytest.mark.parametrize("before", ["h1", None])
def test_it_comes_back_when_the_content_changes(sql, database, before):
    job_id = bury(sql, database, content_hash=before)
    sql.execute("update jobs set content_hash = 'h2'")
    assert outbox(database).enqueue().revived == 1
    row = entry(sql, job_id)
    assert (row["attempts"], row["claims"], row["failed_at"], row["last_error"]) == (0, 0, None, "")
    assert outbox(database, "next").claim(1) is not None


def test_it_comes_back_when_its_posting_must_be_cleared(sql, database):
    bury(sql, database, semantic_embedded_model=MODEL, semantic_embedded_hash="old")
    sql.execute("update jobs set closed_at = now()")
    assert outbox(database).enqueue().revived == 1


def test_it_is_reaped_when_its_posting_needs_nothing_any_more(sql, database):
    job_id = bury(sql, database)
    sql.execute("update jobs set closed_at = now()")
    assert outbox(database).enqueue().reaped == 1
    assert entry(sql, job_id) is None


def test_one_of_a_writer_that_records_no_hash_counts_from_the_first_sight(sql, database):
    job_id = add_posting(sql, content_hash="h1")
    sql.execute(
        "insert into semantic_outbox (job_id, target_model, attempts, failed_at) values (%s, %s, 3, now())",
        [job_id, MODEL],
    )
    assert outbox(database).enqueue().revived == 0
    sql.execute("update jobs set content_hash = 'h2'")
    assert outbox(database).enqueue().revived == 1


def test_causes_are_grouped_whatever_their_numbers_and_quotes(sql, database):
    bury(sql, database, 'must have less than 512 tokens. Given: 900 in "a"')
    bury(sql, database, 'must have less than 512 tokens. Given: 1200 in "b"')
    bury(sql, database, "another thing")
    causes = list_causes(database)
    assert [cause.entries for cause in causes] == [2, 1]
    assert len(causes[0].examples) == 2


@pytest.mark.parametrize("by", ["entry", "posting", "cause", "age", "all"])
def test_requeue_takes_what_was_selected_and_once_only(sql, database, by):
    job_id = bury(sql, database, "Tokenizer error 17")
    other = bury(sql, database, "something else")
    sql.execute(
        "update semantic_outbox set failed_at = now() - interval '3 days' where job_id = %s", [job_id]
    )
    selection = {
        "entry": Selection(entries=[entry(sql, job_id)["id"]]),
        "posting": Selection(posting=job_id),
        "cause": Selection(cause="tokenizer ERROR"),
        "age": Selection(older_than_seconds=2 * 86400),
        "all": Selection(),
    }[by]
    assert len(requeue(database, MODEL, selection)) == (2 if by == "all" else 1)
    assert not is_dead(sql, job_id)
    assert is_dead(sql, other) == (by != "all")
    assert requeue(database, MODEL, selection) == []


def test_dead_letters_of_another_model_stay(sql, database):
    job_id = bury(sql, database)
    assert requeue(database, "another-model", Selection()) == []
    assert is_dead(sql, job_id)


def dead(database_url, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "freehire_embed", "dead", *arguments],
        env={
            **os.environ,
            "DATABASE_URL": database_url,
            "EMBED_MODEL": "intfloat/multilingual-e5-small-chunked-v1",
        },
        capture_output=True,
        text=True,
    )


def test_the_command_lists_shows_and_requeues(sql, database, database_url):
    job_id = bury(sql, database, "Tokenizer error 17")
    sql.execute("update semantic_outbox set target_model = 'intfloat/multilingual-e5-small-chunked-v1'")
    entry_id = entry(sql, job_id)["id"]

    listed = json.loads(dead(database_url, "list", "--json").stdout)
    assert listed["causes"][0]["entries"] == 1
    assert [letter["job_id"] for letter in listed["entries"]] == [job_id]
    assert "Tokenizer error 17" in dead(database_url, "show", str(entry_id)).stdout
    assert dead(database_url, "show", "999").returncode == 1
    assert dead(database_url, "requeue").returncode == 2
    assert dead(database_url, "requeue", "--older-than", "soon").returncode == 2
    done = dead(database_url, "requeue", str(entry_id))
    assert (done.returncode, done.stdout.split()[0]) == (0, "1")
    assert list_dead(database) == []
