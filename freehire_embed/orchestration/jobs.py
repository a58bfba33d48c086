"""`embed_job` keeps the catalogue current; `backfill_job` is the same graph for a month and a model of choice."""

import dagster as dg

from freehire_embed.orchestration.ops import chunk, claim, commit, embed, enqueue

LANE_TAG = "freehire/lane"
"""dagster.yaml lets one run at a time into each lane, so EMBED_LANES rules how many there are."""

_TAGS = {
    # a wave lives in memory: there is nothing to resume from, the next lane claims it again
    "dagster/max_retries": "0",
}

months = dg.MonthlyPartitionsDefinition(start_date="2024-01-01", end_offset=1)
"""By job_posted_at. The first month stands for all before it, the last one is the current month."""


@dg.graph
def drain() -> None:
    """enqueue -> claim -> chunk -> embed -> commit, the last four once a wave."""
    enqueue().slots.map(lambda slot: commit(embed(chunk(claim(slot)))))


embed_job = drain.to_job(
    name="embed_job",
    description="Queues postings whose vectors are missing or stale, and works them wave after wave.",
    tags={**_TAGS, LANE_TAG: "ad hoc"},
    executor_def=dg.in_process_executor,
)


def _whole_month(_month: str) -> dict[str, object]:
    config = {"model": "", "embed_url": "", "max_waves": 10_000, "max_minutes": 24 * 60}
    return {"ops": {"enqueue": {"config": config}}}


backfill_job = drain.to_job(
    name="backfill_job",
    description="Embeds one month of postings, by job_posted_at, under the model string in its config. Launched "
    "again it goes on where it was. It has a lane of its own beside the live runs and waits for them in the queue.",
    tags={
        **_TAGS,
        LANE_TAG: "backfill",
        "dagster/priority": "-10",
        # seconds; a little over max_minutes
        "dagster/max_runtime": str(25 * 3600),
    },
    config=dg.PartitionedConfig(months, run_config_for_partition_key_fn=_whole_month),
    executor_def=dg.in_process_executor,
)
