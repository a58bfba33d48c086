"""What needs work is found by one idempotent predicate."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from freehire_embed.store.database import Database
from freehire_embed.store.faults import StatementTimeout
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


@pytest.fixture
def cancelled_above(sql, monkeypatch):
    """More than so many rows at once outlast the database's statement_timeout; parts go down to 40 ids."""
    monkeypatch.setattr("freehire_embed.store.outbox._SMALLEST_PART", 40)
    sql.execute(f"alter database {sql.info.dbname} set statement_timeout = '10min'")

    def cancel(rows):
        sql.execute(
            "create or replace function cancel() returns trigger language plpgsql as $$ begin "
            f"if (select count(*) from fresh) > {rows} then raise query_canceled; end if; return null; end $$; "
            "create or replace trigger cancel after insert on semantic_outbox "
            "referencing new table as fresh for each statement execute function cancel()"
        )

    return cancel


def test_an_enqueue_that_outlasts_a_statement_timeout_goes_on_in_parts(sql, database_url, cancelled_above):
    ids = [add_posting(sql) for _ in range(300)]
    cleared = add_posting(sql, **stamped(closed_at="2026-01-01"))
    cancelled_above(60)
    with Database(SecretStr(database_url)) as database:
        report = outbox(database).enqueue()
    assert (report.missing, report.clear) == (300, 1)
    queued = sql.execute("select job_id from semantic_outbox").fetchall()
    assert sorted(id_ for (id_,) in queued) == [*ids, cleared]


def test_what_parts_have_queued_stays_when_a_later_one_cannot_be(sql, database_url, cancelled_above):
    for _ in range(300):
        add_posting(sql)
    cancelled_above(60)
    sql.execute(
        "create function never() returns trigger language plpgsql as $$ begin raise query_canceled; end $$; "
        "create trigger never before insert on semantic_outbox for each row "
        f"when (new.job_id > {count(sql, 'select max(id) from jobs') - 50}) execute function never()"
    )
    set_by = f"statement_timeout is 10min, set by ALTER DATABASE {sql.info.dbname} SET"
    with Database(SecretStr(database_url)) as database:
        with pytest.raises(StatementTimeout, match=set_by):
            outbox(database).enqueue()
        assert 200 < count(sql, "select count(*) from semantic_outbox") < 300
        sql.execute("drop trigger never on semantic_outbox")
        cancelled_above(1000)
        assert 0 < outbox(database).enqueue().missing < 100
    assert count(sql, "select count(*) from semantic_outbox") == 300
