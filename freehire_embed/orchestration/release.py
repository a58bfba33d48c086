"""Gives back the claims of runs that could not do it themselves: killed, out of memory, forcibly terminated."""

import dagster as dg

from freehire_embed.orchestration.jobs import backfill_job, embed_job
from freehire_embed.orchestration.resources import Postgres
from freehire_embed.store.outbox import release_run


def _release_sensor(name: str, status: dg.DagsterRunStatus, *, crashed: bool) -> dg.SensorDefinition:
    @dg.run_status_sensor(
        name=name,
        description="Gives back what such a run of embed_job or backfill_job still holds, within seconds.",
        run_status=status,
        monitored_jobs=[embed_job, backfill_job],
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def release(context: dg.RunStatusSensorContext, postgres: Postgres) -> dg.SkipReason:
        run_id = context.dagster_run.run_id
        released = release_run(postgres.database, run_id, crashed=crashed)
        context.log.info(f"run {run_id}: gave back {released} claims")
        return dg.SkipReason(f"run {run_id[:8]}: gave back {released} claims")

    return release


release_claims_of_canceled_run = _release_sensor(
    "release_claims_of_canceled_run", dg.DagsterRunStatus.CANCELED, crashed=False
)
# A run that fails in Python has given everything back before; what is left was held by one that was killed, and
# one of its postings may have been the cause.
release_claims_of_failed_run = _release_sensor(
    "release_claims_of_failed_run", dg.DagsterRunStatus.FAILURE, crashed=True
)
