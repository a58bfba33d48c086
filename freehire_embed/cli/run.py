"""`run`: one drain, the form for cron."""

from __future__ import annotations

import os
import socket
import uuid
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from freehire_embed.cli.exits import EXPECTED, FAILED, exit_code
from freehire_embed.cli.options import json_option, opened, option, read_settings, setting_option
from freehire_embed.cli.output import Advance, note, print_json, progress, say
from freehire_embed.domain import Outcome
from freehire_embed.drain import Interrupted, drain
from freehire_embed.local.defaults import with_embedder
from freehire_embed.run import open_run
from freehire_embed.store.coverage import semantic_outbox_claimable_depth
from freehire_embed.store.faults import DatabaseFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from freehire_embed.domain import WaveReport
    from freehire_embed.drain import RunReport
    from freehire_embed.run import Run


@click.command(short_help="Enqueue and drain once; the form for cron.")
@json_option
@option(
    "--max-waves",
    type=click.IntRange(min=1),
    help="Stop after so many waves; without it, when nothing is left.",
)
@setting_option("--model", "EMBED_MODEL", "Embedder identity; a new one becomes the target.")
@setting_option("--url", "EMBED_URL", "The embedding server.")
@setting_option("--batch-size", "EMBED_BATCH_SIZE", "Postings a wave.")
@setting_option("--concurrency", "EMBED_CONCURRENCY", "Requests in flight.")
def run(json: bool, max_waves: int | None) -> int:
    """\b
    Example: freehire-embed run
    From cron: flock -n /run/lock/freehire-embed /opt/freehire-embed/.venv/bin/freehire-embed run --json

    Enqueues what is new, changed or gone, and works the queue until nothing is left. Several may run at once.
    Exit codes: 0 clean, 1 something was not done, 2 the configuration stopped it; what was done stays.
    """
    run_id = f"cron-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        try:
            settings, database = stack.enter_context(opened(read_settings()))
            settings = stack.enter_context(with_embedder(settings))
            work = open_run(settings, database, run_id)
        except (Exception, KeyboardInterrupt) as error:
            if json and isinstance(error, (*EXPECTED, KeyboardInterrupt)):
                print_json({"run_id": run_id, **_not_started(error)})
            raise
        stopped = False
        try:
            with progress("postings") as advance:
                report = drain(work, max_waves=max_waves, on_wave=_teller(work, advance))
        except Interrupted as interrupt:
            note(f"stopped: gave back {interrupt.given_back} entries")
            report, stopped = interrupt.report, True
        # Said before the database is closed, which may fail, too.
        code = FAILED if stopped else report.exit_code
        reason = "stopped" if stopped else _reason(report, max_waves)
        if json:
            print_json(_counters(work, report) | {"exit_code": code, "exit_reason": reason})
        else:
            say(_summary(work, report, code, reason))
    return code


def _not_started(error: BaseException) -> dict[str, Any]:
    if isinstance(error, Exception):
        return {"exit_code": exit_code(error), "exit_reason": " ".join(str(error).split())}
    return {"exit_code": FAILED, "exit_reason": "stopped"}


def _teller(work: Run, advance: Advance) -> Callable[[int, WaveReport, float], None]:
    done = 0

    def tell(number: int, wave: WaveReport, seconds: float) -> None:
        nonlocal done
        done += wave.claimed
        line = f"wave {number}: {wave.claimed} claimed: {_endings(wave)}; {wave.embedded} passages, {seconds:.1f} s"
        advance(done, total(), line)
        for error in wave.errors:
            note(f"  {error}")

    def total() -> int | None:
        try:
            return done + semantic_outbox_claimable_depth(work.database)
        except DatabaseFault:
            return None  # what is shown stops no run; its own statements tell what is wrong

    return tell


def _endings(report: WaveReport) -> str:
    named = [
        f"{report.outcomes[each]} {each.value.replace('_', '-')}" for each in Outcome if report.outcomes[each]
    ]
    return ", ".join(named) or "none"


def _reason(report: RunReport, max_waves: int | None) -> str:
    if report.total.halt is not None:
        return f"{report.total.halt.kind.value}: {report.total.halt.reason}"
    if doubt := report.total.usage.doubt:
        return doubt
    if report.exit_code:
        return "some entries were not done; see `freehire-embed dead list` and the errors above"
    return "max waves worked" if report.waves == max_waves else "nothing left to claim"


def _counters(work: Run, report: RunReport) -> dict[str, Any]:
    total = report.total
    stats = work.embedder.stats
    return {
        "run_id": work.run_id,
        "target_model": work.profile.identity,
        "promoted": work.promoted,
        "waves": report.waves,
        "enqueued": asdict(report.enqueued),
        "claimed": total.claimed,
        "outcomes": {each.value: total.outcomes[each] for each in Outcome},
        "no_text": total.no_text,
        "reused": total.reused,
        "embedded": total.embedded,
        "requests": stats.requests,
        "concurrency": stats.concurrency,
        "in_flight_mean": round(stats.in_flight_mean, 2),
        "in_flight_peak": stats.in_flight_peak,
        "foreign": total.usage.foreign,
        "retries": dict(stats.retries),
        "truncated": stats.truncated,
        "over_limit": dict(total.over_limit),
        "errors": list(total.errors),
        "seconds": round(report.seconds, 3),
    }


def _summary(work: Run, report: RunReport, code: int, reason: str) -> str:
    counters = _counters(work, report)
    enqueued = {name: count for name, count in counters["enqueued"].items() if count}
    parts = [
        f"enqueued {', '.join(f'{count} {name}' for name, count in enqueued.items()) or 'nothing'}",
        f"claimed {counters['claimed']} in {report.waves} waves: {_endings(report.total)}",
        f"passages {counters['embedded']} embedded, {counters['reused']} reused",
    ]
    if counters["no_text"]:
        parts.append(f"{counters['no_text']} postings without text")
    if peak := counters["in_flight_peak"]:
        parts.append(f"requests in flight {counters['in_flight_mean']:.1f} on average, {peak} at most")
    if counters["retries"]:
        parts.append(
            f"retries {', '.join(f'{count} x {cause}' for cause, count in counters['retries'].items())}"
        )
    if total := report.total.over_limit.total():
        by_language = ", ".join(f"{count} {name}" for name, count in report.total.over_limit.most_common())
        parts.append(f"{total} passages cut by the server ({by_language})")
    return f"{'; '.join(parts)}; {report.seconds:.1f} s; exit {code}: {reason}"
