"""Who starts runs: a schedule that finds stale postings, and a sensor that adds lanes while the queue is deep."""

import time
from collections import Counter
from dataclasses import dataclass

import dagster as dg

from freehire_embed.orchestration.jobs import LANE_TAG, embed_job
from freehire_embed.orchestration.lane import DONE_TAG
from freehire_embed.orchestration.resources import Postgres
from freehire_embed.settings import Settings, SettingsError
from freehire_embed.store.backlog import count_claimable, needs_enqueue
from freehire_embed.store.coverage import semantic_outbox_claimable_depth

WAVES_WORTH_A_LANE = 4
"""A run takes about 3 s to start; with fewer waves than that the lanes at work are done sooner."""
PAUSE_SECONDS = 300
"""After a run that failed before it got anything done, the sensor leaves the next try to the schedule."""

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dg.schedule(
    job=embed_job,
    cron_schedule="*/5 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Starts a run when postings are stale or entries wait, and no run is at it already.",
)
def embed_schedule(
    context: dg.ScheduleEvaluationContext, postgres: Postgres
) -> dg.RunRequest | dg.SkipReason:
    if unfinished := _unfinished_runs(context.instance):
        return dg.SkipReason(f"{_named(unfinished)} of embed_job at work; a run enqueues again as it goes")
    settings, database = postgres.settings, postgres.database
    try:
        model = postgres.usable_profile().identity
    except SettingsError as error:
        return dg.SkipReason(str(error))
    waiting = count_claimable(database, model, lease_seconds=settings.lease_seconds, limit=1)
    if not waiting and not needs_enqueue(database, model, settings.lease_seconds):
        return dg.SkipReason(f"nothing is stale under {model}, and the queue holds nothing to claim")
    return dg.RunRequest(tags={LANE_TAG: "1"})


@dg.sensor(
    job_name=embed_job.name,
    minimum_interval_seconds=10,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Keeps EMBED_LANES runs at work while entries can be claimed, one more queued while they are many.",
)
def semantic_outbox_depth_sensor(
    context: dg.SensorEvaluationContext, postgres: Postgres
) -> dg.SensorResult | dg.SkipReason:
    settings, database = postgres.settings, postgres.database
    depth = semantic_outbox_claimable_depth(database)
    if not depth:
        return dg.SkipReason("the queue is empty")
    try:
        model = postgres.usable_profile().identity
    except SettingsError as error:
        return dg.SkipReason(str(error))
    enough = settings.batch_size * (settings.waves_per_run * settings.lanes + 1)
    claimable = count_claimable(database, model, lease_seconds=settings.lease_seconds, limit=enough)
    seen = f"depth {depth:,}, claimable now {claimable:,}{'+' if claimable == enough else ''}"
    if not claimable:
        return dg.SkipReason(f"{seen}: all of it is leased, or waits out the lease of a failed attempt")
    if stopped := _stopped_early(context.instance):
        return dg.SkipReason(f"{seen}: {stopped}")
    unfinished = _unfinished_runs(context.instance)
    requests = plan_lanes(settings, claimable, [run.tags.get(LANE_TAG, "") for run in unfinished])
    if not requests:
        return dg.SkipReason(f"{seen}: {_named(unfinished)} at work, that is enough")
    # Keys are for ever, also those of failed runs. Counting from the clock keeps them new after a cursor reset.
    number = int(context.cursor or time.time())
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key=f"lane-{number + i}",
                tags={LANE_TAG: request.lane},
                run_config={"ops": {"enqueue": {"config": {"max_waves": request.max_waves}}}},
            )
            for i, request in enumerate(requests)
        ],
        cursor=str(number + len(requests)),
    )


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """A run to start: the lane it takes its turn in, and how many waves it works."""

    lane: str
    max_waves: int


def plan_lanes(settings: Settings, claimable: int, taken: list[str]) -> list[LaneRequest]:
    """The runs to start beside those unfinished; `taken` = their lanes, the longest at work last.

    Lanes share the waves there are. While there are more than they can take, runs that start together get unequal
    shares, so that they do not end together, and one more is queued in the lane that is to end first.
    """
    waves = -(-claimable // settings.batch_size)
    long_queue = waves > settings.lanes * settings.waves_per_run
    wanted = min(settings.lanes, -(-waves // WAVES_WORTH_A_LANE))
    lanes = [str(number) for number in range(1, settings.lanes + 1)]
    free = [lane for lane in lanes if lane not in taken]
    starting = free[: max(0, wanted - len(taken))]
    if long_queue and len(taken) + len(starting) == settings.lanes:
        starting.append(next((lane for lane in reversed(taken) if lane in lanes), lanes[-1]))
    share = min(settings.waves_per_run, -(-waves // wanted) + 1)
    stagger = settings.waves_per_run // (2 * settings.lanes) if long_queue and not taken else 0
    return [LaneRequest(lane, max(1, share - i * stagger)) for i, lane in enumerate(starting)]


def _unfinished_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Of embed_job, newest first."""
    return list(instance.get_runs(dg.RunsFilter(job_name=embed_job.name, statuses=_UNFINISHED)))


def _stopped_early(instance: dg.DagsterInstance) -> str | None:
    """Why the run that ended last speaks against starting another one now."""
    ended = dg.RunsFilter(job_name=embed_job.name, statuses=_FINISHED)
    records = instance.get_run_records(ended, limit=1, order_by="update_timestamp")
    if not records or records[0].end_time is None:
        return None
    run, seconds = records[0].dagster_run, time.time() - records[0].end_time
    if seconds > PAUSE_SECONDS:
        return None
    ago = f"run {run.run_id[:8]} of {seconds:.0f} s ago"
    if run.status == dg.DagsterRunStatus.CANCELED:
        return f"{ago} was cancelled; switch this sensor and embed_schedule off to stop for longer"
    if run.status == dg.DagsterRunStatus.FAILURE and DONE_TAG not in run.tags:
        return f"{ago} failed before it got anything done; embed_schedule tries again within 5 minutes"
    return None


def _named(runs: list[dg.DagsterRun]) -> str:
    states = Counter(run.status.value.lower() for run in runs)
    return (
        f"{len(runs)} run{'s' if len(runs) > 1 else ''} ("
        + ", ".join(f"{n} {s}" for s, n in states.items())
        + ")"
    )
