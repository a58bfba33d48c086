"""Coverage, dead letters and retention as an operator uses them from Dagster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from freehire_embed.definitions import defs
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed_tests.catalogue import add_posting, count, outbox
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.deployment import OLD

if TYPE_CHECKING:
    import psycopg

    from freehire_embed.store.database import Database

pytestmark = pytest.mark.usefixtures("deployed_here")


def measure() -> tuple[dict[str, object], dict[str, str | None]]:
    """Materializes the asset: its metadata, and for each check None or its complaint."""
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        asset_selection=[dg.AssetKey("semantic_coverage")]
    )
    materialization = result.asset_materializations_for_node("semantic_coverage")[0]
    checks = {
        check.check_name: None if check.passed else check.description
        for check in result.get_asset_check_evaluations()
    }
    return {name: value.value for name, value in materialization.metadata.items()}, checks


def test_coverage_counts_what_is_covered_and_plots_it_as_numbers(sql: psycopg.Connection) -> None:
    add_posting(sql, content_hash="h", semantic_embedded_model=OLD, semantic_embedded_hash="h")
    for _ in range(3):
        add_posting(sql)

    numbers, checks = measure()

    assert (numbers["eligible"], numbers["covered"], numbers["stale"], numbers["no_text"]) == (4, 1, 3, 1)
    assert numbers["covered_percent"] == 25.0
    assert "| covered" in str(numbers["shares"])
    assert "25.0 % covered" in (checks["coverage_floor"] or "")


def test_a_healthy_deployment_passes_every_check(sql: psycopg.Connection) -> None:
    add_posting(sql, content_hash="h", semantic_embedded_model=OLD, semantic_embedded_hash="h")
    sql.execute("insert into semantic_models values (%s, %s, now())", [OLD, WIDTH])
    _, checks = measure()
    assert set(checks.values()) == {None}


def test_each_check_complains_and_says_what_to_do(
    sql: psycopg.Connection, database: Database, tei: FaultyTei
) -> None:
    tei.model_id = "example/another"
    for _ in range(2):
        add_posting(sql)
    outbox(database, model=OLD).enqueue()
    sql.execute("update semantic_outbox set created_at = now() - interval '2 days'")
    sql.execute(
        "update semantic_outbox set failed_at = now() where id = (select min(id) from semantic_outbox)"
    )

    _, checks = measure()

    assert "requeue_dead_letters_job" in (checks["no_dead_letters"] or "")
    assert "48.0 h old: raise EMBED_LANES" in (checks["nothing_waits_too_long"] or "")
    assert "see that embed_schedule" in (checks["embedding_goes_on"] or "")
    assert "example/another" in (checks["target_agrees"] or "")


def test_dead_letters_go_back_into_the_queue(sql: psycopg.Connection, database: Database) -> None:
    add_posting(sql)
    outbox(database, model=OLD).enqueue()
    sql.execute("update semantic_outbox set failed_at = now(), attempts = 3, last_error = 'too odd'")

    result = defs.resolve_job_def("requeue_dead_letters_job").execute_in_process(
        run_config={"ops": {"requeue_dead_letters": {"config": {"cause": "odd"}}}}
    )

    assert result.success
    assert count(sql, "select count(*) from semantic_outbox where failed_at is null and attempts = 0") == 1


def test_old_runs_leave_the_history_with_their_events() -> None:
    with dg.instance_for_test() as instance:
        for job, status, days in (
            ("embed_job", dg.DagsterRunStatus.SUCCESS, 8),
            ("embed_job", dg.DagsterRunStatus.SUCCESS, 6),
            ("embed_job", dg.DagsterRunStatus.FAILURE, 8),
            ("embed_job", dg.DagsterRunStatus.FAILURE, 31),
            ("embed_job", dg.DagsterRunStatus.STARTED, 31),
        ):
            run = dg.DagsterRun(job, run_id=f"{status.value} {days}", status=status)
            instance.run_storage.add_historical_run(run, datetime.now(UTC) - timedelta(days=days))

        result = defs.resolve_job_def("prune_runs_job").execute_in_process(instance=instance)

        kept = {run.run_id for run in instance.get_runs()}
        assert kept == {"SUCCESS 6", "FAILURE 8", "STARTED 31", result.run_id}
