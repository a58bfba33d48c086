"""Ticks of the schedule and the sensors on a real instance and a real Postgres."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehire_embed.definitions import defs
from freehire_embed.orchestration.automation import (
    LaneRequest,
    embed_schedule,
    plan_lanes,
    semantic_outbox_depth_sensor,
)
from freehire_embed.orchestration.jobs import LANE_TAG
from freehire_embed.orchestration.lane import DONE_TAG
from freehire_embed.orchestration.release import (
    release_claims_of_canceled_run,
    release_claims_of_failed_run,
)
from freehire_embed.orchestration.resources import Postgres
from freehire_embed.settings import Settings
from freehire_embed.store.database import Database
from freehire_embed_tests.catalogue import add_posting, count, outbox
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.deployment import NEW, OLD, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg


@pytest.fixture(autouse=True)
def deployed(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in environment(database_url, "http://127.0.0.1:9/embed", tmp_path).items():
        monkeypatch.setenv(variable, value)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


def tick_schedule(instance: dg.DagsterInstance) -> dg.RunRequest | dg.SkipReason:
    with dg.build_schedule_context(
        instance, resources={"postgres": Postgres()}, scheduled_execution_time=datetime.now(UTC)
    ) as context:
        return embed_schedule(context)


def tick_sensor(instance: dg.DagsterInstance, cursor: str | None = None) -> Any:
    with dg.build_sensor_context(instance, cursor=cursor, resources={"postgres": Postgres()}) as context:
        return semantic_outbox_depth_sensor(context)


def remember_run(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, **tags: str) -> dg.DagsterRun:
    """A run of embed_job as the instance would have it after living up to `status`."""
    run = instance.create_run_for_job(defs.resolve_job_def("embed_job"), tags=tags)
    if status == dg.DagsterRunStatus.FAILURE:
        instance.report_run_failed(run)
    elif status == dg.DagsterRunStatus.CANCELED:
        instance.report_run_canceled(run)
    return run


def test_the_schedule_starts_a_run_when_a_posting_is_stale(
    instance: dg.DagsterInstance, sql: psycopg.Connection
) -> None:
    add_posting(sql)
    assert isinstance(tick_schedule(instance), dg.RunRequest)


def test_the_schedule_starts_nothing_when_nothing_is_stale(instance: dg.DagsterInstance) -> None:
    assert "nothing is stale under tiny-v1" in str(tick_schedule(instance))


def test_the_schedule_waits_for_the_drain_at_work(
    instance: dg.DagsterInstance, sql: psycopg.Connection
) -> None:
    add_posting(sql)
    remember_run(instance, dg.DagsterRunStatus.NOT_STARTED)
    assert "1 run (1 not_started) of embed_job" in str(tick_schedule(instance))


def test_a_superseded_model_starts_nothing_and_says_why(
    instance: dg.DagsterInstance, sql: psycopg.Connection, database: Database
) -> None:
    job = add_posting(sql)
    outbox(database, model=OLD).enqueue()
    for identity in (OLD, NEW):
        sql.execute("insert into semantic_models values (%s, %s, clock_timestamp())", [identity, WIDTH])

    assert job
    assert "tiny-v1 is superseded" in str(tick_schedule(instance))
    assert "tiny-v1 is superseded" in str(tick_sensor(instance))


def test_the_sensor_starts_nothing_for_an_empty_queue(instance: dg.DagsterInstance) -> None:
    assert "the queue is empty" in str(tick_sensor(instance))


def test_the_sensor_starts_nothing_for_entries_that_are_leased(
    instance: dg.DagsterInstance, sql: psycopg.Connection, database: Database
) -> None:
    add_posting(sql)
    queue = outbox(database, model=OLD)
    queue.enqueue()
    queue.claim(10)
    assert "depth 1, claimable now 0: all of it is leased" in str(tick_sensor(instance))


def test_the_sensor_fills_the_lanes_and_never_asks_twice(
    instance: dg.DagsterInstance, sql: psycopg.Connection, database: Database
) -> None:
    for _ in range(60):
        add_posting(sql)
    outbox(database, model=OLD).enqueue()

    first = tick_sensor(instance)
    for request in first.run_requests:
        remember_run(instance, dg.DagsterRunStatus.NOT_STARTED, **request.tags)
    second = tick_sensor(instance, first.cursor)

    assert [request.tags[LANE_TAG] for request in first.run_requests] == ["1", "2", "3"]
    assert len({request.run_key for request in first.run_requests}) == 3
    assert "3 runs (3 not_started) at work" in str(second)


@pytest.mark.parametrize(
    ("status", "tags", "says"),
    [
        (dg.DagsterRunStatus.FAILURE, {}, "failed before it got anything done"),
        (dg.DagsterRunStatus.FAILURE, {DONE_TAG: "4"}, None),
        (dg.DagsterRunStatus.CANCELED, {DONE_TAG: "4"}, "was cancelled"),
    ],
)
def test_the_sensor_pauses_after_a_run_that_another_one_would_only_repeat(
    instance: dg.DagsterInstance,
    sql: psycopg.Connection,
    database: Database,
    status: dg.DagsterRunStatus,
    tags: dict[str, str],
    says: str | None,
) -> None:
    add_posting(sql)
    outbox(database, model=OLD).enqueue()
    remember_run(instance, status, **tags)

    result = tick_sensor(instance)

    if says is None:
        assert len(result.run_requests) == 1
    else:
        assert says in str(result)


@pytest.mark.parametrize(
    ("sensor", "event", "claims_counted"),
    [
        (release_claims_of_canceled_run, dg.DagsterEventType.RUN_CANCELED, 0),
        (release_claims_of_failed_run, dg.DagsterEventType.RUN_FAILURE, 1),
    ],
)
def test_the_claims_of_a_dead_run_are_given_back(
    instance: dg.DagsterInstance,
    sql: psycopg.Connection,
    database: Database,
    sensor: dg.SensorDefinition,
    event: dg.DagsterEventType,
    claims_counted: int,
) -> None:
    add_posting(sql)
    run = remember_run(instance, dg.DagsterRunStatus.NOT_STARTED)
    queue = outbox(database, run.run_id, model=OLD)
    queue.enqueue()
    queue.claim(10)
    happened = dg.DagsterEvent(event.value, job_name="embed_job", message="it ended")

    with dg.build_run_status_sensor_context(
        sensor.name, happened, instance, run, resources={"postgres": Postgres()}
    ) as context:
        sensor(context)

    assert count(sql, "select count(*) from semantic_outbox where claimed_at is null and attempts = 0") == 1
    assert count(sql, "select claims from semantic_outbox") == claims_counted


@given(
    claimable=st.integers(1, 10**6),
    taken=st.lists(st.sampled_from(["1", "2", "3", "4", "ad hoc"]), max_size=6),
    lanes=st.integers(1, 5),
)
def test_lanes_are_never_more_than_allowed_and_one(claimable: int, taken: list[str], lanes: int) -> None:
    settings = Settings.from_environment({"EMBED_LANES": str(lanes)})
    requests = plan_lanes(settings, claimable, taken)
    assert len(taken) + len(requests) <= max(lanes + 1, len(taken))
    assert all(1 <= int(request.lane) <= lanes for request in requests)
    assert all(1 <= request.max_waves <= settings.waves_per_run for request in requests)
    assert requests or taken


def test_a_long_queue_gets_unequal_lanes_and_one_run_ahead() -> None:
    settings = Settings.from_environment({"EMBED_BATCH_SIZE": "500", "EMBED_WAVES_PER_RUN": "100"})
    assert plan_lanes(settings, 900_000, []) == [
        LaneRequest("1", 100),
        LaneRequest("2", 84),
        LaneRequest("3", 68),
        LaneRequest("3", 52),
    ]
    assert plan_lanes(settings, 700_000, ["3", "2", "1"]) == [LaneRequest("1", 100)]


def test_a_new_desk_measures_the_coverage_at_once_and_then_every_half_hour(
    instance: dg.DagsterInstance,
) -> None:
    coverage = dg.AssetKey("semantic_coverage")
    cursor = None
    for minute, materialized, wanted in ((1, False, 1), (2, True, 0), (31, False, 1), (32, True, 0)):
        if materialized:
            instance.report_runless_asset_event(dg.AssetMaterialization(coverage))
        result = dg.evaluate_automation_conditions(
            defs,
            instance,
            dg.AssetSelection.assets(coverage),
            evaluation_time=datetime(2026, 1, 1, 12, minute, tzinfo=UTC),
            cursor=cursor,
        )
        assert (minute, result.get_num_requested(coverage)) == (minute, wanted)
        cursor = result.cursor
