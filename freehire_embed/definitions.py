"""The code location: what workspace.yaml loads. No logic."""

import os

import dagster as dg

from freehire_embed.orchestration.audit import vector_audit
from freehire_embed.orchestration.automation import embed_schedule, semantic_outbox_depth_sensor
from freehire_embed.orchestration.coverage import coverage_automation, semantic_coverage
from freehire_embed.orchestration.jobs import backfill_job, embed_job
from freehire_embed.orchestration.maintenance import (
    prune_runs_job,
    prune_runs_schedule,
    requeue_dead_letters_job,
)
from freehire_embed.orchestration.release import (
    release_claims_of_canceled_run,
    release_claims_of_failed_run,
)
from freehire_embed.orchestration.resources import LaneHolder, Postgres, Tei
from freehire_embed.orchestration.similar import similar_job, similar_postings
from freehire_embed.orchestration.wave_io import wave_io_manager


def _secret(variable: str) -> str | None:
    """Shown in the UI by its name, read when the resource starts; a variable that is not set cannot be named."""
    return dg.EnvVar(variable) if os.environ.get(variable) else None


postgres = Postgres(database_url=_secret("DATABASE_URL"))
tei = Tei(url=_secret("EMBED_URL"), api_key=_secret("EMBED_API_KEY"))

defs = dg.Definitions(
    jobs=[embed_job, backfill_job, requeue_dead_letters_job, prune_runs_job, similar_job],
    assets=[semantic_coverage, similar_postings, vector_audit],
    schedules=[embed_schedule, prune_runs_schedule],
    sensors=[
        semantic_outbox_depth_sensor,
        release_claims_of_canceled_run,
        release_claims_of_failed_run,
        coverage_automation,
    ],
    resources={
        "postgres": postgres,
        "tei": tei,
        "lane": LaneHolder(postgres=postgres, tei=tei),
        "io_manager": wave_io_manager,
    },
    executor=dg.in_process_executor,
)
