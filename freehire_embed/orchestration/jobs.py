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
    # seconds; twice the hour after which a lane begins no wave. Said here, as not every dagster.yaml is ours
    tags={**_TAGS, LANE_TAG: "ad hoc", "dagster/max_runtime": "7200"},
    executor_def=dg.in_process_executor,
)


backfill_job = drain.to_job(
    name="backfill_job",
    description="Embeds one month of postings, by job_posted_at, under the model string in its config; a backfill "
    "of several months takes it from the tag freehire/model, as that page asks for tags only. Launched again it "
    "goes on where it was. It has a lane of its own beside the live runs, and waits for them in the queue.",
    tags={
        **_TAGS,
        LANE_TAG: "backfill",
        "dagster/priority": "-10",
        # seconds; a little over the day that a month is given
        "dagster/max_runtime": str(25 * 3600),
    },
    partitions_def=months,
    executor_def=dg.in_process_executor,
)
