"""What needs work is found by one idempotent predicate."""

from __future__ import annotations

import pytest

from freehire_embed_tests.catalogue import MODEL, add_posting, count, entry, outbox


def stamped(**columns):
    return {"semantic_embedded_model": MODEL, "semantic_embedded_hash": "h", "content_hash": "h", **columns}


def test_queues_each_reason_once_and_nothing_twice(sql, database):
    add_posting(sql)
    add_posting(sql, **stamped(semantic_embedded_model="older"))
    add_posting(sql, **stamped(semantic_embedded_model="zz-newer"))
    add_posting(sql, **stamped(content_hash="edited"))
    add_posting(sql, **stamped(closed_at="2026-01-01"))
    add_posting(sql, **stamped(is_tech=None))
    original = add_posting(sql, **stamped())
    add_posting(sql, **stamped(duplicate_of=original))
    queue = outbox(database)

    report = queue.enqueue()

    assert (report.missing, report.model, report.content, report.clear) == (1, 2, 1, 3)
    assert report.enqueued == 7
    assert queue.enqueue().enqueued == 0
    assert count(sql, "select count(*) from semantic_outbox") == 7


@pytest.mark.parametrize(
    "columns",
    [
        {"closed_at": "2026-01-01"},
        {"is_tech": False},
        {"is_tech": None},
        stamped(),
        stamped(content_hash=None, semantic_embedded_hash=None),
    ],
    ids=["closed", "not tech", "undecided", "fresh", "fresh without a hash"],
)
def test_leaves_alone_what_needs_nothing(sql, database, columns):
    add_posting(sql, **columns)
    assert outbox(database).enqueue().enqueued == 0


def test_orders_by_the_posting_date_or_the_arrival(sql, database):
    dated = add_posting(sql, posted_at="2026-03-01")
    undated = add_posting(sql, created_at="2026-04-01")
    outbox(database).enqueue()
    assert str(entry(sql, dated)["job_posted_at"]).startswith("2026-03-01")
    assert str(entry(sql, undated)["job_posted_at"]).startswith("2026-04-01")


def test_repeating_it_over_a_backlog_burns_no_identity_value(sql, database):
    for _ in range(5):
        add_posting(sql)
    queue = outbox(database)
    queue.enqueue()
    for _ in range(3):
        queue.enqueue()
    assert count(sql, "select last_value from semantic_outbox_id_seq") == 5


def test_entries_of_other_models_are_retired_unless_leased(sql, database):
    for _ in range(3):
        add_posting(sql)
    old = outbox(database, "old", model="old-model")
    old.enqueue()
    old.claim(1)

    report = outbox(database).enqueue()

    assert report.retired == 2
    assert count(sql, "select count(*) from semantic_outbox where target_model = 'old-model'") == 1
    assert count(sql, "select count(*) from semantic_outbox where target_model = %s", MODEL) == 3


def test_a_backfill_window_queues_only_its_month(sql, database):
    from datetime import UTC, datetime

    from freehire_embed.store.outbox import Window

    inside = add_posting(sql, posted_at="2026-02-10")
    add_posting(sql, posted_at="2026-03-01")
    window = Window(datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC))
    queue = outbox(database, window=window)
    assert queue.enqueue().enqueued == 1
    wave = queue.claim(10)
    assert [claim.job_id for claim in wave.claims] == [inside]
