"""No statement of the steady state reads the catalogue: the rows each plan touches are counted, not its time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from freehire_embed.queries import query
from freehire_embed.store.coverage import EXACT_DEPTH_BELOW, semantic_outbox_claimable_depth
from freehire_embed_tests.catalogue import MODEL, count, outbox

if TYPE_CHECKING:
    from freehire_embed.store.database import Database

pytestmark = pytest.mark.directly  # a pooler changes no plan

POSTINGS = 20_000
QUEUED = 12_000


@pytest.fixture
def catalogue(sql: psycopg.Connection, database: Database) -> psycopg.Connection:
    """20,000 postings: 12,000 eligible and up to date, the rest closed; vectors of each fiftieth."""
    sql.execute(
        "insert into jobs (source, external_id, url, title, public_slug, is_tech, posted_at, closed_at, "
        "content_hash, semantic_embedded_model, semantic_embedded_hash) "
        "select 's', i::text, 'u', 't', i::text, true, now() - i * interval '1 minute', "
        "case when i > %(open)s then now() end, md5(i::text), "
        "case when i <= %(open)s then %(model)s end, case when i <= %(open)s then md5(i::text) end "
        "from generate_series(1, %(postings)s) i",
        {"postings": POSTINGS, "open": QUEUED, "model": MODEL},
    )
    sql.execute(
        "insert into job_semantic_chunks (job_id, chunk_index, embedding) "
        "select id, n, array[id %% 97, n + 1, 1, 1, 1, 1, 1, 1]::real[]::vector from jobs, generate_series(0, 1) n "
        "where id %% 50 = 0 and closed_at is null",
        [],
    )
    sql.execute("vacuum analyze")
    return sql


def queue_up(sql: psycopg.Connection, entries: int = QUEUED) -> None:
    sql.execute(
        "insert into semantic_outbox (job_id, target_model, job_posted_at) "
        "select id, %s, posted_at from jobs order by id limit %s",
        [MODEL, entries],
    )
    sql.execute("vacuum analyze semantic_outbox")


def plan(sql: psycopg.Connection, name: str, **parameters: Any) -> dict[str, Any]:
    """What Postgres did for sql/queries/`name`.sql, undone again."""
    defaults = {"model": MODEL, "lease": 300, "since": None, "until": None, "company": None}
    defaults |= {"low": None, "high": None}
    with sql.transaction(force_rollback=True):
        explain = b"explain (analyze, timing off, format json) " + query(name)
        row = psycopg.ClientCursor(sql).execute(explain, defaults | parameters).fetchone()
    assert row
    answer = row[0] if isinstance(row[0], list) else json.loads(row[0])
    root: dict[str, Any] = answer[0]["Plan"]
    return root


def nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(each for child in node.get("Plans", []) for each in nodes(child))]


def rows_read(root: dict[str, Any]) -> float:
    """Rows that the scans of tables and indexes looked at, those filtered out included."""
    return sum(
        float(each["Actual Loops"]) * (each["Actual Rows"] + each.get("Rows Removed by Filter", 0))
        for each in nodes(root)
        if "Relation Name" in each and "Scan" in each["Node Type"]
    )


@pytest.mark.parametrize(
    "name", ["enqueue", "needs_enqueue", "plan", "adopt_dead", "reap", "revive", "retire"]
)
def test_with_nothing_stale_enqueue_reads_next_to_nothing(catalogue: psycopg.Connection, name: str) -> None:
    assert rows_read(plan(catalogue, name)) <= 10


@pytest.mark.parametrize("name", ["enqueue", "adopt_dead", "reap", "revive"])
def test_a_long_queue_costs_an_enqueue_nothing(catalogue: psycopg.Connection, name: str) -> None:
    queue_up(catalogue)
    assert rows_read(plan(catalogue, name)) <= 10


def test_enqueue_reads_as_many_rows_as_are_stale(catalogue: psycopg.Connection) -> None:
    catalogue.execute("update jobs set content_hash = 'edited' where id %% 100 = 0 and closed_at is null", [])
    stale = count(catalogue, "select count(*) from jobs where content_hash = 'edited'")
    catalogue.execute("vacuum analyze jobs")
    assert stale == 120
    assert rows_read(plan(catalogue, "enqueue")) <= 3 * stale


def test_an_enqueue_in_parts_reads_its_own_part(catalogue: psycopg.Connection) -> None:
    row = catalogue.execute("select min(id) from jobs").fetchone()
    assert row
    assert rows_read(plan(catalogue, "enqueue", model="another", low=row[0], high=row[0] + 500)) <= 3 * 500


def test_the_search_for_stale_postings_ends_before_the_first_of_them_is_queued(
    catalogue: psycopg.Connection,
) -> None:
    root = plan(catalogue, "enqueue", model="another")
    insert = next(each for each in nodes(root) if each["Node Type"] == "ModifyTable")
    assert insert["Plans"][0]["Node Type"] in ("Sort", "Incremental Sort", "Subquery Scan")
    assert any(each["Node Type"] == "Sort" for each in nodes(insert))


def test_queued_postings_burn_no_identity_value(catalogue: psycopg.Connection, database: Database) -> None:
    queue_up(catalogue)
    last = "select last_value from semantic_outbox_id_seq"
    before = count(catalogue, last)
    catalogue.execute(
        "update jobs set semantic_embedded_model = 'another' where semantic_embedded_model = %s", [MODEL]
    )
    outbox(database).enqueue()
    assert count(catalogue, last) == before


def test_the_depth_of_a_long_queue_is_not_counted(catalogue: psycopg.Connection, database: Database) -> None:
    queue_up(catalogue)
    assert semantic_outbox_claimable_depth(database) == QUEUED < EXACT_DEPTH_BELOW
    estimate = nodes(plan_only(catalogue, "depth_estimate"))[0]["Plan Rows"]
    assert abs(estimate / QUEUED - 1) < 0.05


def plan_only(sql: psycopg.Connection, name: str) -> dict[str, Any]:
    row = sql.execute(query(name)).fetchone()
    assert row
    root: dict[str, Any] = row[0][0]["Plan"]
    return root


def test_the_stale_are_found_for_coverage_without_reading_the_catalogue(
    catalogue: psycopg.Connection,
) -> None:
    root = plan(catalogue, "coverage")
    index_only = [each for each in nodes(root) if each["Node Type"] == "Index Only Scan"]
    counted = sum(each["Actual Rows"] for each in index_only)
    assert counted == QUEUED
    assert rows_read(root) <= QUEUED + 10


def test_a_wave_is_loaded_by_key(catalogue: psycopg.Connection) -> None:
    ids = list(range(1, 501))
    for name in ("load_postings", "load_stored_passages", "eligibility"):
        root = plan(catalogue, name, job_ids=ids)
        assert rows_read(root) <= 1000
        assert "Seq Scan" not in {each["Node Type"] for each in nodes(root)}


def test_the_fence_reads_the_wave_and_nothing_else(catalogue: psycopg.Connection) -> None:
    queue_up(catalogue)
    catalogue.execute("update semantic_outbox set claimed_at = '2026-01-01' where id <= 500")
    root = plan(catalogue, "lock_held", ids=list(range(1, 501)), stamp="2026-01-01")
    assert rows_read(root) <= 1000


def test_a_search_asks_the_vector_index(catalogue: psycopg.Connection) -> None:
    catalogue.execute("set enable_seqscan = off")
    root = plan(catalogue, "search", query="[1,1,1,1,1,1,1,1]", candidates=20, limit=5)
    scans = {each.get("Index Name") for each in nodes(root)}
    assert "job_semantic_chunks_embedding_idx" in scans
    assert not [
        each for each in nodes(root) if each["Node Type"] == "Seq Scan" and each["Relation Name"] == "jobs"
    ]
