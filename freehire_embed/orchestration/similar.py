"""`similar_postings`: the stored neighbours of every posting, kept current after each look at the coverage."""

import time
from typing import Any

import dagster as dg
from pydantic import Field

from freehire_embed.orchestration.coverage import semantic_coverage
from freehire_embed.orchestration.failures import explained
from freehire_embed.orchestration.jobs import LANE_TAG
from freehire_embed.orchestration.resources import Postgres
from freehire_embed.run import followed_identity
from freehire_embed.similar import LEAST_COVERED, REFRESH_DAYS, refresh
from freehire_embed.store.similar import count_lists

_LOG_EVERY_SECONDS = 30


class Refresh(dg.Config):
    """Which lists are due, and for how long a run computes them."""

    refresh_days: int = Field(
        default=REFRESH_DAYS,
        ge=1,
        description="Age at which a list is computed again, for postings new since.",
    )
    least_covered_percent: float = Field(
        default=100 * LEAST_COVERED,
        ge=0,
        le=100,
        description="Below this share of current vectors, as in a model change, lists stay as they are.",
    )
    max_minutes: float = Field(default=25, gt=0, description="Stop after that; the next run goes on.")


@dg.asset(
    deps=[semantic_coverage],
    description="The 20 postings most like each; computed where vectors changed, lists aged or neighbours closed.",
    automation_condition=dg.AutomationCondition.eager(),
)
def similar_postings(
    context: dg.AssetExecutionContext, config: Refresh, postgres: Postgres
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    database = postgres.database
    logged = time.monotonic()

    def tell(done: int) -> None:
        nonlocal logged
        if time.monotonic() - logged > _LOG_EVERY_SECONDS:
            logged = time.monotonic()
            context.log.info(f"{done:,} lists computed")

    with explained():
        model = followed_identity(postgres.settings, database)
        report = refresh(
            database,
            model,
            refresh_days=config.refresh_days,
            least_covered=config.least_covered_percent / 100,
            seconds=60 * config.max_minutes,
            on_batch=tell,
        )
        counts = count_lists(database, model)
    if report.waiting:
        context.log.info(f"nothing computed: {report.waiting}")
    metadata: dict[str, Any] = {
        "computed": report.computed,
        "short": report.short,
        "lost": report.lost,
        "thinned_by_closing": report.thin,
        "finished": report.finished,
        "lists": counts.postings - counts.missing,
        "missing": counts.missing,
        "full": counts.full,
        "empty": counts.empty,
        "oldest_days": counts.oldest_seconds / 86400,
        "target_model": model,
    }
    if report.computed:
        metadata["milliseconds_a_posting"] = 1000 * report.seconds / report.computed
    if report.waiting:
        metadata["waiting"] = report.waiting
    return dg.MaterializeResult(metadata=metadata)


similar_job = dg.define_asset_job(
    "similar_job",
    selection=[similar_postings],
    description="Computes the similar postings that are due; goes on where the last run ended.",
    tags={LANE_TAG: "similar"},
    executor_def=dg.in_process_executor,
)
