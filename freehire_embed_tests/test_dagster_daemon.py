"""The code location in a real `dagster dev`: launched, watched, terminated and left to itself."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import psycopg
import pytest

from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed_tests.catalogue import add_posting, count, stamp
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.dagster_server import FINISHED, DagsterServer, dagster_dev, wait_until
from freehire_embed_tests.deployment import NEW, OLD, SERVED, environment

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def tei() -> Iterator[FaultyTei]:
    with FaultyTei(width=WIDTH, model_id=SERVED) as server:
        yield server


@pytest.fixture(scope="module")
def desk_url(server: str, template: str) -> Iterator[str]:
    """One database for the module: starting Dagster is what takes time here."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database desk template {template}")
        yield psycopg.conninfo.make_conninfo(server, dbname="desk")
        connection.execute("drop database desk with (force)")


@pytest.fixture(scope="module")
def dagster(
    desk_url: str, tei: FaultyTei, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DagsterServer]:
    folder = tmp_path_factory.mktemp("desk")
    variables = environment(desk_url, tei.url, folder)
    # unset, the deployment follows the target, also after the backfill
    del variables["EMBED_MODEL"]
    with dagster_dev(variables, folder) as server:
        yield server


@pytest.fixture
def sql(desk_url: str, tei: FaultyTei) -> Iterator[psycopg.Connection]:
    """A look into the database, emptied before; OLD is the target."""
    tei.recover()
    with psycopg.connect(desk_url, autocommit=True) as connection:
        connection.execute("truncate jobs, semantic_outbox, semantic_models, semantic_runs cascade")
        connection.execute("insert into semantic_models values (%s, %s, now())", [OLD, WIDTH])
        yield connection


def test_everything_that_automates_is_on_from_the_start(dagster: DagsterServer) -> None:
    location = dagster.location()
    assert location["name"] == "freehire_embed"
    assert {job["name"] for job in location["jobs"]} >= {
        "embed_job",
        "backfill_job",
        "requeue_dead_letters_job",
        "prune_runs_job",
    }
    states = {s["name"]: s["sensorState"]["status"] for s in location["sensors"]}
    states |= {s["name"]: s["scheduleState"]["status"] for s in location["schedules"]}
    assert states == dict.fromkeys(
        [
            "semantic_outbox_depth_sensor",
            "release_claims_of_canceled_run",
            "release_claims_of_failed_run",
            "coverage_automation",
            "embed_schedule",
            "prune_runs_schedule",
        ],
        "RUNNING",
    )


@pytest.mark.parametrize(
    ("ending", "status", "claims"), [("terminate", "CANCELED", 0), ("kill -9", "FAILURE", 1)]
)
def test_a_run_that_is_ended_in_mid_wave_gives_its_claims_back_and_charges_nobody(
    dagster: DagsterServer, tei: FaultyTei, sql: psycopg.Connection, ending: str, status: str, claims: int
) -> None:
    for _ in range(12):
        add_posting(sql)
    # probes are answered, those of the coverage asset among them; the wave is not
    tei.fail(tei_faults.hang, marker="We build bridges")
    run_id = dagster.launch("embed_job")
    held = "select count(*) from semantic_outbox where claimed_at is not null"
    wait_until(lambda: count(sql, held) == 4 and tei.requests_in_flight > 0, "a wave at the server")

    if ending == "terminate":
        dagster.terminate(run_id)
    else:
        os.kill(dagster.worker(run_id), signal.SIGKILL)

    assert dagster.ended("embed_job", run_id) == status
    wait_until(lambda: count(sql, held) == 0, "the claims", 30)
    assert count(sql, "select count(*) from semantic_outbox where attempts = 0") == 12
    assert count(sql, "select max(claims) from semantic_outbox") == claims


def test_the_sensor_alone_drains_what_is_queued(
    dagster: DagsterServer, tei: FaultyTei, sql: psycopg.Connection
) -> None:
    if list(dagster.runs("embed_job").values())[:1] != ["SUCCESS"]:
        # a run that ends well ends the pause after one that did not
        assert dagster.ended("embed_job", dagster.launch("embed_job")) == "SUCCESS"
    jobs = [add_posting(sql) for _ in range(30)]
    sql.execute(
        "insert into semantic_outbox (job_id, target_model, job_posted_at) select id, %s, created_at from jobs",
        [OLD],
    )

    wait_until(lambda: count(sql, "select count(*) from semantic_outbox") == 0, "an empty queue")

    assert {stamp(sql, job)[0] for job in jobs} == {OLD}
    wait_until(lambda: all(s in FINISHED for s in dagster.runs("embed_job").values()), "the lanes' end")


def test_a_backfill_of_two_months_embeds_them_under_the_new_model(
    dagster: DagsterServer, tei: FaultyTei, sql: psycopg.Connection
) -> None:
    jobs = [add_posting(sql, posted_at=f"2026-0{month}-15") for month in (2, 3)]

    dagster.backfill("backfill_job", ["2026-02-01", "2026-03-01"], {"freehire/model": NEW})

    wait_until(lambda: all(stamp(sql, job)[0] == NEW for job in jobs), "the new model's vectors")
    wait_until(lambda: list(dagster.runs("backfill_job").values()) == ["SUCCESS"] * 2, "the backfill's end")
