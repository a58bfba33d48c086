"""`embed_job` on a real Postgres and a server that speaks real HTTP, in this process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from freehire_embed.definitions import defs
from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.orchestration.lane import DONE_TAG, LEFT_TAG, Lane
from freehire_embed.orchestration.ops import MODEL_TAG
from freehire_embed_tests.catalogue import add_posting, chunk_indexes, count, stamp
from freehire_embed_tests.deployment import NEW, OLD

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

pytestmark = pytest.mark.usefixtures("deployed_here")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def run_job(
    instance: dg.DagsterInstance, job: str = "embed_job", partition: str | None = None, **config: Any
) -> dg.ExecuteInProcessResult:
    """Executes the job with `config` for its `enqueue`."""
    return defs.resolve_job_def(job).execute_in_process(
        run_config={"ops": {"enqueue": {"config": config}}},
        partition_key=partition,
        instance=instance,
        raise_on_error=False,
    )


def metadata(result: dg.ExecuteInProcessResult, op: str) -> list[dict[str, Any]]:
    """What each finished step of the op attached to its first output."""
    outputs = [event for event in result.all_node_events if event.is_successful_output]
    return [
        {name: value.value for name, value in event.step_output_data.metadata.items()}
        for event in outputs
        if event.node_name == op and event.step_output_data.output_name in ("result", "report")
    ]


def failures(result: dg.ExecuteInProcessResult) -> list[str]:
    """First line of what each failed step says."""
    described = []
    for event in result.all_events:
        if event.is_step_failure and event.step_failure_data.user_failure_data:
            described.append((event.step_failure_data.user_failure_data.description or "").splitlines()[0])
    return described


def test_a_run_embeds_every_stale_posting_and_clears_a_closed_one(
    instance: dg.DagsterInstance, sql: psycopg.Connection
) -> None:
    open_ones = [add_posting(sql) for _ in range(9)]
    closed = add_posting(sql, closed_at="2026-01-01", semantic_embedded_model=OLD, semantic_embedded_hash="x")

    result = run_job(instance)

    assert result.success
    assert all(stamp(sql, job)[0] == OLD and chunk_indexes(sql, job) == [0] for job in open_ones)
    assert stamp(sql, closed) == (None, None)
    assert count(sql, "select count(*) from semantic_outbox") == 0


def test_a_wave_tells_what_an_operator_looks_for(
    instance: dg.DagsterInstance, sql: psycopg.Connection
) -> None:
    for _ in range(5):
        add_posting(sql)

    result = run_job(instance)

    queued = metadata(result, "enqueue")[0]
    assert (queued["identity"], queued["missing"], queued["waves"]) == (OLD, 5, 2)
    assert [wave["indexed"] for wave in metadata(result, "commit")] == [4, 1]
    embedding = metadata(result, "embed")
    assert all(wave["vectors_per_second"] > 0 and wave["retries"] == {} for wave in embedding)
    seen = [(wave["concurrency"], wave["in_flight_mean"], wave["in_flight_peak"]) for wave in embedding]
    assert seen == [(1, 1.0, 1)] * 2
    assert instance.get_run_by_id(result.run_id).tags[DONE_TAG] == "5"


def test_the_last_words_of_a_run_are_what_it_came_to(
    instance: dg.DagsterInstance, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    tei.fail(tei_faults.status(422), marker="POISON")
    for description in ("<p>one</p>", "<p>two</p>", "POISON"):
        add_posting(sql, description=description)

    result = run_job(instance)

    messages = [
        entry.user_message for entry in instance.all_logs(result.run_id) if not entry.is_dagster_event
    ]
    assert re.fullmatch(r"1 wave in \d+ s: 1 failed, 2 indexed", messages[-1])


def test_an_empty_queue_is_a_clean_run_of_no_waves(instance: dg.DagsterInstance) -> None:
    result = run_job(instance)

    assert result.success
    assert metadata(result, "enqueue")[0]["waves"] == 0


def test_slots_that_find_nothing_to_claim_are_skipped(
    instance: dg.DagsterInstance, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    # after its wave, and once more when the run ends
    left = iter(["8 until Mon 12:00 UTC", "0"])
    monkeypatch.setattr(Lane, "left", lambda _: next(left))
    add_posting(sql)
    for _ in range(8):
        add_posting(sql, is_tech=False, semantic_embedded_model=OLD)
    sql.execute(
        "create function take_all() returns trigger language plpgsql as $$ begin "
        "update semantic_outbox set claimed_at = now(), claimed_by = 'another' where claimed_at is null; "
        "return null; end $$"
    )
    sql.execute(
        "create trigger take_all after delete on semantic_outbox for each statement execute function take_all()"
    )

    result = run_job(instance)

    assert result.success
    assert len(metadata(result, "commit")) == 1
    assert len([event for event in result.all_events if event.event_type_value == "STEP_SKIPPED"]) > 0
    assert instance.get_run_by_id(result.run_id).tags[LEFT_TAG] == "0"


def test_a_bad_posting_fails_the_run_after_all_others_are_committed(
    instance: dg.DagsterInstance, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    tei.fail(tei_faults.status(422), marker="POISON")
    poison = add_posting(sql, description="POISON", posted_at="2026-01-01")
    good = [add_posting(sql) for _ in range(9)]

    result = run_job(instance)

    assert not result.success
    assert all(chunk_indexes(sql, job) == [0] for job in good)
    assert stamp(sql, poison) == (None, None)
    assert failures(result) == ["Nothing to do yet, 1 failed and will be tried again after their lease"]
    assert count(sql, "select attempts from semantic_outbox") == 1


def test_a_server_that_goes_away_stops_the_run_and_charges_nobody(
    instance: dg.DagsterInstance, sql: psycopg.Connection, tei: FaultyTei
) -> None:
    # the preflight's probe passes; a first attempt that is refused for good needs no waiting
    tei.fail(tei_faults.status(401), after=1)
    for _ in range(12):
        add_posting(sql)

    result = run_job(instance)

    assert not result.success
    assert len(failures(result)) == 1
    assert failures(result)[0].startswith("Correct the configuration, then launch the job again: ")
    assert count(sql, "select count(*) from semantic_outbox where attempts = 0 and claimed_at is null") == 12


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model": "no-such-model"}, "unknown embedder identity 'no-such-model'"),
        ({"embed_url": "http://127.0.0.1:9/embed"}, "127.0.0.1:9"),
    ],
)
def test_a_run_that_cannot_work_says_so_before_anything_is_written(
    instance: dg.DagsterInstance, sql: psycopg.Connection, config: dict[str, Any], says: str
) -> None:
    add_posting(sql)

    result = run_job(instance, **config)

    assert not result.success
    assert says in failures(result)[0]
    assert count(sql, "select count(*) from semantic_outbox") == 0
    assert count(sql, "select count(*) from semantic_models") == 0


def test_a_backfill_works_its_month_only_and_makes_the_new_model_the_target(
    instance: dg.DagsterInstance, sql: psycopg.Connection
) -> None:
    run_job(instance)
    march = add_posting(sql, posted_at="2026-03-31T12:00Z")
    april = add_posting(sql, posted_at="2026-04-01T12:00Z")

    result = run_job(instance, "backfill_job", "2026-03-01", model=NEW)

    assert result.success
    assert (stamp(sql, march)[0], stamp(sql, april)[0]) == (NEW, None)
    assert metadata(result, "enqueue")[0]["promoted"] is True
    assert "superseded" in failures(run_job(instance))[0]


def test_a_backfill_of_several_months_takes_its_model_from_a_tag(
    instance: dg.DagsterInstance, sql: psycopg.Connection
) -> None:
    march = add_posting(sql, posted_at="2026-03-31T12:00Z")
    result = defs.resolve_job_def("backfill_job").execute_in_process(
        partition_key="2026-03-01", tags={MODEL_TAG: NEW}, instance=instance
    )
    assert result.success
    assert stamp(sql, march)[0] == NEW


def test_the_first_month_takes_what_is_older_and_the_last_what_is_newer(
    instance: dg.DagsterInstance, sql: psycopg.Connection
) -> None:
    old = add_posting(sql, posted_at="1999-12-31")
    ahead = add_posting(sql, posted_at="2999-01-01")
    keys = defs.resolve_job_def("backfill_job").partitions_def.get_partition_keys()

    for key in (keys[0], keys[-1]):
        assert run_job(instance, "backfill_job", key).success

    assert (stamp(sql, old)[0], stamp(sql, ahead)[0]) == (OLD, OLD)


def embed_job_as_deployed() -> dg.JobDefinition:
    return defs.resolve_job_def("embed_job")


def test_a_step_cannot_be_executed_again_and_says_what_to_do_instead(
    sql: psycopg.Connection, tei: FaultyTei
) -> None:
    tei.fail(tei_faults.status(422), marker="POISON")
    add_posting(sql, description="POISON")
    job = dg.reconstructable(embed_job_as_deployed)
    with dg.instance_for_test() as instance:
        first = dg.execute_job(job, instance)
        again = dg.execute_job(
            job,
            instance,
            reexecution_options=dg.ReexecutionOptions.from_failure(first.run_id, instance),
        )
    assert not again.success
    failed = next(event for event in again.all_events if event.is_step_failure)
    assert failed.step_failure_data.user_failure_data.description.startswith("Launch the job anew: ")
