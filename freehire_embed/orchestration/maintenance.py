"""By hand: dead letters back into the queue. By schedule: old runs out of Dagster's history."""

from datetime import UTC, datetime, timedelta

import dagster as dg
from pydantic import Field

from freehire_embed.orchestration.failures import explained
from freehire_embed.orchestration.resources import Postgres
from freehire_embed.store import dead_letters

_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


class Requeue(dg.Config):
    """Which dead letters to try again; conditions add up, and without any it is all of them."""

    entries: list[int] = Field(default=[], description="Entry ids, as `freehire-embed dead list` shows them.")
    posting: int | None = Field(default=None, description="The dead letter of this posting.")
    cause: str = Field(default="", description="Part of the error's text.")
    older_than_hours: float | None = Field(default=None, ge=0, description="Dead for longer than that.")


class Retention(dg.Config):
    """How long Dagster's history is kept. About 45 KB of events a wave, at least 120 KB a run on SQLite."""

    days: int = Field(default=7, ge=1, description="Days to keep runs that succeeded or were cancelled.")
    failed_days: int = Field(default=30, ge=1, description="Days to keep runs that failed.")
    coverage_days: int = Field(default=90, ge=1, description="Days that the coverage plot reaches back.")


@dg.op(out=dg.Out(dg.Nothing))
def requeue_dead_letters(
    context: dg.OpExecutionContext, config: Requeue, postgres: Postgres
) -> dg.Output[None]:
    """Puts them back with attempts 0; the depth sensor starts a run for them. Doing it twice changes nothing."""
    selection = dead_letters.Selection(
        entries=config.entries or None,
        posting=config.posting,
        cause=config.cause or None,
        older_than_seconds=None if config.older_than_hours is None else config.older_than_hours * 3600,
    )
    with explained():
        model = postgres.usable_profile().identity
        requeued = dead_letters.requeue(postgres.database, model, selection)
        causes = dead_letters.list_causes(postgres.database)
    context.log.info(f"{len(requeued)} dead letters of {model} are back in the queue")
    left = "\n".join(f"- {cause.entries} x {cause.cause}" for cause in causes) or "none"
    return dg.Output(None, metadata={"requeued": len(requeued), "left": dg.MetadataValue.md(left)})


@dg.op(out=dg.Out(dg.Nothing))
def prune_runs(context: dg.OpExecutionContext, config: Retention) -> dg.Output[None]:
    """Deletes finished runs past their days, with their events and logs."""
    now = datetime.now(UTC)
    shortest = min(config.days, config.failed_days, config.coverage_days)
    aged = dg.RunsFilter(statuses=_FINISHED, created_before=now - timedelta(days=shortest))
    deleted = 0
    for record in context.instance.get_run_records(aged):
        run = record.dagster_run
        if now - record.create_timestamp.astimezone(UTC) > timedelta(days=_days(run, config)):
            context.instance.compute_log_manager.delete_logs(prefix=[run.run_id])
            context.instance.delete_run(run.run_id)
            deleted += 1
    context.log.info(f"deleted {deleted} runs")
    return dg.Output(None, metadata={"deleted": deleted})


def _days(run: dg.DagsterRun, config: Retention) -> int:
    # deleting a run deletes what it materialized, the points of the coverage plot among them
    if run.asset_selection:
        return config.coverage_days
    return config.failed_days if run.status == dg.DagsterRunStatus.FAILURE else config.days


@dg.job(executor_def=dg.in_process_executor)
def requeue_dead_letters_job() -> None:
    """Gives dead letters another try, all of them or a selection."""
    requeue_dead_letters()


@dg.job(executor_def=dg.in_process_executor)
def prune_runs_job() -> None:
    """Keeps Dagster's history from growing for ever."""
    prune_runs()


prune_runs_schedule = dg.ScheduleDefinition(
    name="prune_runs_schedule",
    job=prune_runs_job,
    cron_schedule="41 4 * * *",
    description="Deletes old runs with their events and logs, once a day.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
