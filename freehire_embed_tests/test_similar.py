"""Neighbours of postings on a real Postgres: which, computed when, and what is never written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from freehire_embed import similar
from freehire_embed.queries import query
from freehire_embed.similar import NotEmbedded, refresh, similar_to
from freehire_embed.store import neighbours as probing
from freehire_embed.store import vector_index
from freehire_embed.store.neighbours import KEPT, find_neighbours, store_neighbours
from freehire_embed.store.similar import find_due
from freehire_embed_tests.catalogue import MODEL, add_embedded, count, embedded, outbox

if TYPE_CHECKING:
    import psycopg

    from freehire_embed.store.database import Database


def add(sql: psycopg.Connection, *angles: float, **columns: Any) -> int:
    """An embedded posting of a company that nobody knows."""
    return add_embedded(sql, *angles, **{"company": "", "company_slug": "", **columns})


def neighbours(sql: psycopg.Connection, job_id: int) -> list[int] | None:
    row = sql.execute("select similar_job_ids from jobs where id = %s", [job_id]).fetchone()
    assert row
    return row[0]


def age(sql: psycopg.Connection, days: int) -> None:
    sql.execute(
        "update jobs set similar_computed_at = similar_computed_at - make_interval(days => %s)", [days]
    )


def test_neighbours_are_ordered_by_their_nearest_pair_of_chunks(
    database: Database, sql: psycopg.Connection
) -> None:
    source = add(sql, 0.0, 1.0)
    far = add(sql, 2.5)
    near = add(sql, 3.0, 1.01)
    middle = add(sql, 0.3)
    report = refresh(database, MODEL)
    assert neighbours(sql, source) == [near, middle, far]
    assert (report.computed, report.short, report.lost, report.finished) == (4, 4, 0, True)


def test_only_postings_that_may_be_shown_are_neighbours(database: Database, sql: psycopg.Connection) -> None:
    source = add(sql, 0.0, company_slug="acme")
    right = add(sql, 1.0, company_slug="northwind")
    unknown_company = add(sql, 1.1)
    add(sql, 0.1, company_slug="acme")
    add(sql, 0.1, closed_at="2026-01-01")
    add(sql, 0.1, duplicate_of=right)
    add(sql, 0.1, is_private=True)
    add(sql, 0.1, is_tech=None)
    add(sql, 0.1, model="another-model")
    refresh(database, MODEL, least_covered=0)
    assert neighbours(sql, source) == [right, unknown_company]


def test_postings_of_unknown_companies_are_neighbours_of_each_other(
    database: Database, sql: psycopg.Connection
) -> None:
    one, other = add(sql, 0.0), add(sql, 0.1)
    refresh(database, MODEL)
    assert (neighbours(sql, one), neighbours(sql, other)) == ([other], [one])


def test_no_more_than_twenty_are_kept(database: Database, sql: psycopg.Connection) -> None:
    source = add(sql, 0.0)
    others = [add(sql, 0.1 * number) for number in range(1, 30)]
    refresh(database, MODEL)
    assert neighbours(sql, source) == others[:KEPT]


def test_twenty_are_found_although_hundreds_of_nearer_chunks_drop_out(
    database: Database, sql: psycopg.Connection
) -> None:
    source = add(sql, 0.0, company_slug="acme")
    for number in range(10):
        add(sql, *(0.001 * (number + step) for step in range(30)), company_slug="acme")
    others = [add(sql, 1.0 + 0.05 * number) for number in range(KEPT)]
    refresh(database, MODEL)
    assert neighbours(sql, source) == others


def test_a_posting_without_text_gets_an_empty_list_and_is_not_due_again(
    database: Database, sql: psycopg.Connection
) -> None:
    source = add(sql)
    add(sql, 0.1)
    assert refresh(database, MODEL).computed == 2
    assert neighbours(sql, source) == []
    assert refresh(database, MODEL).computed == 0


def test_a_zero_vector_is_nobodys_neighbour(database: Database, sql: psycopg.Connection) -> None:
    source, other, broken = add(sql, 0.0), add(sql, 0.1), add(sql, 0.2)
    sql.execute("update job_semantic_chunks set embedding = %s where job_id = %s", [str([0.0] * 8), broken])
    refresh(database, MODEL)
    assert neighbours(sql, source) == [other]
    assert neighbours(sql, broken) == []


@pytest.mark.parametrize(
    ("column", "value"), [("semantic_embedded_model", "another-model"), ("semantic_embedded_hash", "edited")]
)
def test_nothing_is_written_once_the_stamp_has_moved_on(
    database: Database, sql: psycopg.Connection, column: str, value: str
) -> None:
    source = add(sql, 0.0)
    add(sql, 0.1)
    (found,) = find_neighbours(database, MODEL, [source])
    sql.execute(f"update jobs set {column} = %s where id = %s", [value, source])
    assert store_neighbours(database, MODEL, found) == set()
    assert neighbours(sql, source) is None


def test_a_null_hash_is_a_stamp_like_any_other(database: Database, sql: psycopg.Connection) -> None:
    source, other = add(sql, 0.0, content_hash=None), add(sql, 0.1, content_hash=None)
    refresh(database, MODEL)
    assert neighbours(sql, source) == [other]


def test_only_what_changed_is_computed_again(database: Database, sql: psycopg.Connection) -> None:
    for number in range(5):
        add(sql, 0.1 * number)
    refresh(database, MODEL)
    assert refresh(database, MODEL).computed == 0
    newcomer = add(sql, 0.05)
    assert find_due(database, MODEL, refresh_days=7, limit=10) == [newcomer]
    assert refresh(database, MODEL).computed == 1


def test_a_commit_that_changes_chunks_makes_the_list_due(database: Database, sql: psycopg.Connection) -> None:
    source = add(sql, 0.0)
    refresh(database, MODEL)
    sql.execute("update jobs set content_hash = 'edited' where id = %s", [source])
    queue = outbox(database)
    queue.enqueue()
    wave = queue.claim(1)
    queue.replace(wave.lease, [embedded(wave.claims[0], "new", content_hash="edited", stored=1)])
    assert find_due(database, MODEL, refresh_days=7, limit=10) == [source]


def test_old_lists_are_refreshed_after_the_missing_ones(database: Database, sql: psycopg.Connection) -> None:
    old = [add(sql, 0.1 * number) for number in range(2)]
    refresh(database, MODEL)
    age(sql, days=8)
    missing = add(sql, 0.5)
    assert find_due(database, MODEL, refresh_days=7, limit=10) == [missing, *old]
    assert refresh(database, MODEL).computed == 3
    assert sorted(neighbours(sql, old[0]) or []) == [old[1], missing]


def test_a_list_is_filled_again_when_half_of_it_has_closed(
    database: Database, sql: psycopg.Connection
) -> None:
    source = add(sql, 0.0)
    others = [add(sql, 0.05 * number) for number in range(1, 2 * KEPT + 1)]
    refresh(database, MODEL)
    close = "update jobs set closed_at = now() where id = any(%s)"
    sql.execute(close, [others[: KEPT // 2]])
    assert refresh(database, MODEL).thin == 0
    sql.execute(close, [others[: KEPT // 2 + 1]])
    assert refresh(database, MODEL).thin > 0
    assert neighbours(sql, source) == others[KEPT // 2 + 1 :][:KEPT]


def test_a_short_list_is_tried_again_after_a_day(database: Database, sql: psycopg.Connection) -> None:
    source = add(sql, 0.0)
    refresh(database, MODEL)
    newcomer = add(sql, 0.1)
    refresh(database, MODEL)
    assert neighbours(sql, source) == []
    age(sql, days=2)
    assert refresh(database, MODEL).thin == 2
    assert neighbours(sql, source) == [newcomer]


def test_lists_stay_as_they_are_while_most_of_the_catalogue_has_another_model(
    database: Database, sql: psycopg.Connection
) -> None:
    source, other = add(sql, 0.0), add(sql, 0.1)
    refresh(database, MODEL)
    report = refresh(database, "new-model")
    assert "0% of the postings" in report.waiting
    assert not report.finished
    assert neighbours(sql, source) == [other]


def test_lists_wait_for_the_index_where_comparing_every_vector_would_take_too_long(
    database: Database, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, other = add(sql, 0.0), add(sql, 0.1)
    vector_index.drop(database)
    monkeypatch.setattr(similar, "MOST_UNINDEXED", 1)
    report = refresh(database, MODEL)
    assert "index build" in report.waiting
    assert neighbours(sql, source) is None
    vector_index.build(database)
    assert refresh(database, MODEL).waiting == ""
    assert neighbours(sql, source) == [other]


def test_a_run_that_ends_early_leaves_the_rest_to_the_next(
    database: Database, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        add(sql, 0.1 * number)
    monkeypatch.setattr(similar, "BATCH", 2)

    class Killed(Exception):
        pass

    def die(done: int) -> None:
        if done == 4:
            raise Killed

    with pytest.raises(Killed):
        refresh(database, MODEL, on_batch=die)
    assert count(sql, "select count(*) from jobs where similar_computed_at is not null") == 4
    assert not refresh(database, MODEL, seconds=-1).finished
    report = refresh(database, MODEL)
    assert (report.computed, report.finished) == (1, True)


def test_a_posting_of_very_many_chunks_holds_up_no_other_list(
    database: Database, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "PROBES", 10)
    long = add(sql, *(0.001 * number for number in range(95)))
    others = [add(sql, 0.05 + 0.1 * number) for number in range(30)]
    statements: list[list[list[int]]] = []

    def probed(parameters: dict[str, Any], connection: Any) -> list[Any]:
        ranges = zip(parameters["job_ids"], parameters["firsts"], parameters["lasts"], strict=True)
        statements.append([list(each) for each in ranges])
        return probe(parameters, connection)

    probe = probing._probe
    monkeypatch.setattr(probing, "_probe", probed)
    found = [each for group in find_neighbours(database, MODEL, [long, *others]) for each in group]
    assert all(sum(last - first for _, first, last in ranges) <= 10 for ranges in statements)
    assert [job_id for job_id, *_ in statements[-1]] == [long]
    assert found[-1].job_id == long
    assert {each.job_id for each in found} == {long, *others}
    monkeypatch.setattr(probing, "PROBES", 1000)
    whole = [each for group in find_neighbours(database, MODEL, [long]) for each in group]
    assert whole == found[-1:]
    assert len(whole[0].job_ids) == KEPT


def test_lists_of_other_postings_are_written_when_the_time_ends_at_a_very_long_one(
    database: Database, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "PROBES", 10)
    long = add(sql, *(0.001 * number for number in range(95)))
    for number in range(25):
        add(sql, 0.05 + 0.1 * number)
    now = [0]
    probe = probing._probe

    def probed(parameters: dict[str, Any], connection: Any) -> list[Any]:
        now[0] += 100 * (long in parameters["job_ids"])
        return probe(parameters, connection)

    monkeypatch.setattr(probing, "_probe", probed)
    monkeypatch.setattr(similar, "time", SimpleNamespace(monotonic=lambda: now[0]))
    report = refresh(database, MODEL, seconds=5)
    assert not report.finished
    assert report.computed >= 20
    assert neighbours(sql, long) is None


def test_what_is_shown_leaves_out_whoever_closed_since(database: Database, sql: psycopg.Connection) -> None:
    source = add(sql, 0.0, 1.0)
    near, far, private = add(sql, 1.1, title="Near"), add(sql, 2.0), add(sql, 0.1)
    refresh(database, MODEL)
    sql.execute("update jobs set is_private = true where id = %s", [private])
    shown = similar_to(database, MODEL, source, 10)
    assert [each.job_id for each in shown] == [near, far]
    assert shown[0].title == "Near"
    assert shown[0].distance == pytest.approx(0.005, abs=1e-3)
    assert [each.job_id for each in similar_to(database, MODEL, source, 1)] == [near]


def test_neighbours_are_computed_on_the_spot_where_none_are_stored(
    database: Database, sql: psycopg.Connection
) -> None:
    source, other = add(sql, 0.0), add(sql, 0.1)
    assert [each.job_id for each in similar_to(database, MODEL, source, 10)] == [other]
    assert neighbours(sql, source) is None


def test_a_posting_without_vectors_says_so(database: Database, sql: psycopg.Connection) -> None:
    foreign = add(sql, 0.0, model="another-model")
    with pytest.raises(NotEmbedded, match="has no vectors of test-model"):
        similar_to(database, MODEL, foreign, 10)
    with pytest.raises(NotEmbedded, match="there is no posting 0"):
        similar_to(database, MODEL, 0, 10)


def test_each_chunk_is_one_probe_of_the_vector_index(sql: psycopg.Connection) -> None:
    for number in range(300):
        add(sql, 0.01 * number)
    sql.execute("analyze jobs, job_semantic_chunks")
    ranges = {"job_ids": [1, 2], "firsts": [0, 0], "lasts": [1, 1]}
    parameters = {"model": MODEL, **ranges, "candidates": 30, "kept": KEPT}
    with sql.transaction():
        # on a table this small the planner would rather read all of it
        sql.execute("set local enable_seqscan = off")
        plan = sql.execute(
            b"explain (analyze, format json) " + query("similar_neighbours"), parameters
        ).fetchone()
    assert plan
    probes = [node for node in nodes(plan[0][0]["Plan"]) if "embedding_idx" in node.get("Index Name", "")]
    assert [(node["Node Type"], node["Actual Loops"]) for node in probes] == [("Index Scan", 2)]
    assert probes[0]["Actual Rows"] <= 30


def test_finding_what_is_due_does_not_read_what_is_not(sql: psycopg.Connection) -> None:
    for number in range(300):
        add(sql, 0.01 * number)
    sql.execute("update jobs set similar_computed_at = now()")
    sql.execute("analyze jobs")
    parameters = {"model": MODEL, "days": 7, "limit": 50}
    with sql.transaction():
        sql.execute("set local enable_seqscan = off")
        plan = sql.execute(b"explain (analyze, format json) " + query("similar_due"), parameters).fetchone()
    assert plan
    scans = [node for node in nodes(plan[0][0]["Plan"]) if node.get("Index Name")]
    assert {node["Index Name"] for node in scans} == {"jobs_similar_due_idx"}
    assert sum(node.get("Rows Removed by Filter", 0) for node in scans) == 0


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The plan's nodes, itself included."""
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]
