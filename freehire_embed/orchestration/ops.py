"""The five stages as ops: call the stage, log one line, attach what an operator looks for."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import dagster as dg

from freehire_embed import stages
from freehire_embed.orchestration.failures import explained, failure_of
from freehire_embed.orchestration.lane import DONE_TAG, LEFT_TAG, spoken
from freehire_embed.orchestration.resources import Drain, LaneHolder
from freehire_embed.store.outbox import Window
from freehire_embed.tei import TeiStats
from freehire_embed.waves import ChunkedWave, EmbeddedWave, Wave

MODEL_TAG = "freehire/model"
"""The model string of a backfill over several months: that page of the UI asks for tags, not for config."""


def _depth_first(stage: int) -> dict[str, str]:
    """Without it the in-process executor chunks all waves, then embeds all, holding all of them."""
    return {"dagster/priority": str(stage)}


@dg.op(out={"report": dg.Out(dg.Nothing), "slots": dg.DynamicOut(int)})
def enqueue(
    context: dg.OpExecutionContext, config: Drain, lane: LaneHolder
) -> Iterator[dg.Output[None] | dg.DynamicOutput[int]]:
    """Opens the run, queues what is missing or stale, and offers a slot for each wave to come."""
    with explained():
        model = config.model.strip() or context.run.tags.get(MODEL_TAG, "")
        opened = lane.open(context.run_id, config, model, _window(context))
        report = opened.enqueue()
        slots = opened.slots()
    identity = opened.run.profile.identity
    context.log.info(f"{identity}: {report.enqueued} queued, {slots} waves to work")
    metadata = {"identity": identity, "promoted": opened.run.promoted, "waves": slots, **asdict(report)}
    yield dg.Output(None, "report", metadata=metadata)
    for slot in range(slots):
        yield dg.DynamicOutput(slot, mapping_key=f"wave_{slot + 1:04d}", output_name="slots")


@dg.op(out=dg.Out(Wave, is_required=False), tags=_depth_first(1))
def claim(context: dg.OpExecutionContext, lane: LaneHolder, slot: int) -> Iterator[dg.Output[Wave]]:
    """Leases the slot's wave only now, so that a lane holds no more than one. Nothing to claim skips the slot."""
    opened = lane.current
    with explained(), opened.ended_by_fault():
        wave = opened.next_wave()
    if wave is None:
        context.log.info(f"slot {slot + 1} stays empty: {opened.over}")
        return
    tried_before = sum(claim.attempts > 0 for claim in wave.claims)
    closed = sum(claim.closed for claim in wave.claims)
    metadata = {
        "entries": len(wave.claims),
        "to_remove": closed,
        "tried_before": tried_before,
        "alone": wave.alone,
    }
    yield dg.Output(wave, metadata=metadata)


@dg.op(tags=_depth_first(2))
def chunk(lane: LaneHolder, wave: Wave) -> dg.Output[ChunkedWave]:
    """Reads the wave's postings and cuts them into passages."""
    run = lane.current.run
    chunked = stages.chunk(run.outbox, wave, run.profile)
    texts = chunked.to_embed
    total = sum(len(document.passages) for document in chunked.documents)
    metadata = {
        "postings": len(chunked.documents),
        "passages": total,
        "to_embed": len(texts),
        "reused": total - len(texts),
        "characters": sum(map(len, texts)),
        "to_remove": len(chunked.closed),
        "unreadable": len(chunked.faults),
    }
    return dg.Output(chunked, metadata=metadata)


@dg.op(tags=_depth_first(3))
def embed(context: dg.OpExecutionContext, lane: LaneHolder, chunked: ChunkedWave) -> dg.Output[EmbeddedWave]:
    """Sends the passages that have no stored vector to the server."""
    run = lane.current.run
    before, started = run.embedder.stats, time.monotonic()
    embedded = stages.embed(lane.current.embedder, chunked, run.call_timeout_seconds)
    seconds = time.monotonic() - started
    vectors = sum(len(document.vectors) for document in embedded.documents)
    metadata = {
        "vectors": vectors,
        "vectors_per_second": vectors / seconds,
        "faults": len(embedded.faults) - len(chunked.faults),
        "unfinished": len(embedded.unfinished),
        **_requests(before, run.embedder.stats),
    }
    if embedded.halt:
        context.log.warning(f"wave not finished: {embedded.halt.reason}")
    return dg.Output(embedded, metadata=metadata)


@dg.op(out=dg.Out(dg.Nothing), tags=_depth_first(4))
def commit(
    context: dg.OpExecutionContext, lane: LaneHolder, embedded: EmbeddedWave
) -> Iterator[dg.Output[None]]:
    """Writes the wave and gives each entry its outcome; then fails if anything of it is somebody's business."""
    opened = lane.current
    started = time.monotonic()
    report = stages.commit(opened.run.outbox, embedded)
    seconds = time.monotonic() - started
    with explained(), opened.ended_by_fault():
        opened.settle(report)
        left = opened.left()
    counts = {outcome.value: count for outcome, count in sorted(report.outcomes.items())}
    context.log.info(f"wave {opened.waves}: {spoken(report.outcomes)}; {opened.ended:,} done, left {left}")
    if opened.ended:
        context.instance.add_run_tags(context.run_id, {DONE_TAG: f"{opened.ended:,}", LEFT_TAG: left})
    metadata: dict[str, Any] = {
        **counts,
        "no_text": report.no_text,
        "passages_embedded": report.embedded,
        "passages_reused": report.reused,
        "passages_cut": report.over_limit.total(),
        "passages_cut_by_language": dg.MetadataValue.json(dict(report.over_limit)),
        "postings_per_second": report.claimed / seconds,
        "done": opened.ended,
        "left": left,
    }
    if failure := failure_of(report, metadata):
        raise failure
    yield dg.Output(None, metadata=metadata)


def _window(context: dg.OpExecutionContext) -> Window | None:
    """The month of a partitioned run. The first month takes what is older, the current one what is newer."""
    if not context.has_partition_key:
        return None
    month = context.partition_time_window
    keys = context.job_def.partitions_def.get_partition_keys() if context.job_def.partitions_def else []
    return Window(
        since=None if context.partition_key == keys[0] else month.start,
        until=None if context.partition_key == keys[-1] else month.end,
    )


def _requests(before: TeiStats, after: TeiStats) -> dict[str, Any]:
    """What the client did for one wave; concurrency, requests in flight and latency are those of the run so far."""
    rows = after.rows - before.rows
    retries = Counter(after.retries) - Counter(before.retries)
    return {
        "requests": after.requests - before.requests,
        "retries": dg.MetadataValue.json(dict(retries)),
        "splits": after.splits - before.splits,
        "retry_after_seconds": after.retry_after_seconds - before.retry_after_seconds,
        "tokens": after.tokens - before.tokens,
        "concurrency": after.concurrency,
        "in_flight_mean": round(after.in_flight_mean, 2),
        "in_flight_peak": after.in_flight_peak,
        "truncated_share": (after.truncated - before.truncated) / rows if rows else 0.0,
        "latency_p50_seconds": after.latency_p50_seconds,
        "latency_p95_seconds": after.latency_p95_seconds,
    }
