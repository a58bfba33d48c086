"""The five stages in a loop, for cron and the command line: enqueue, then wave after wave until none is left."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from freehire_embed import stages
from freehire_embed.domain import EnqueueReport, Halt, HaltKind, Outcome, WaveReport
from freehire_embed.store.faults import DatabaseDown, DatabaseFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from freehire_embed.run import Run
    from freehire_embed.waves import Wave

logger = logging.getLogger(__name__)

# Fresh postings go first, so a long drain has to hear of them.
ENQUEUE_EVERY_SECONDS = 180
# The server answers, yet wave after wave cannot be embedded: one more will not help.
UNDECIDED_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did, all waves added up."""

    enqueued: EnqueueReport = field(default_factory=EnqueueReport)
    waves: int = 0
    total: WaveReport = field(default_factory=WaveReport)
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0 clean, 1 something was not done, 2 the configuration stopped the run."""
        if self.total.halt is not None:
            return 2 if self.total.halt.kind is HaltKind.CONFIG else 1
        bad = (Outcome.FAILED, Outcome.DEAD_LETTERED, Outcome.ABANDONED)
        return 1 if any(self.total.outcomes[outcome] for outcome in bad) else 0


class Interrupted(KeyboardInterrupt):
    """A drain that was told to stop: what it had done by then, and how many entries it gave back."""

    def __init__(self, report: RunReport, given_back: int) -> None:
        super().__init__()
        self.report = report
        self.given_back = given_back


def drain(
    run: Run,
    *,
    max_waves: int | None = None,
    on_wave: Callable[[int, WaveReport, float], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RunReport:
    """Works `run` until nothing is claimable, `max_waves` are done, or a halt ends it.

    `on_wave` is told each wave's number, report and duration in seconds. Faults end in the report.
    A KeyboardInterrupt goes on as Interrupted after everything held has been given back.
    """
    started = clock()
    enqueued = EnqueueReport()
    total = WaveReport()
    waves = 0
    undecided = 0
    enqueue_due = started
    try:
        while max_waves is None or waves < max_waves:
            if clock() >= enqueue_due:
                enqueued += stages.enqueue(run.outbox)
                enqueue_due = clock() + ENQUEUE_EVERY_SECONDS
            wave = stages.claim(run.outbox, run.settings.batch_size)
            if wave is None:
                break
            wave_started = clock()
            report = work_wave(run, wave)
            waves += 1
            total += report
            run.record.add(report)
            if on_wave:
                on_wave(waves, report, clock() - wave_started)
            undecided = undecided + 1 if report.halt and report.halt.kind is HaltKind.UNDECIDED else 0
            if report.halt and (stops_run(report.halt) or undecided >= UNDECIDED_IN_A_ROW):
                break
    except DatabaseFault as error:
        kind = HaltKind.DATABASE if isinstance(error, DatabaseDown) else HaltKind.CONFIG
        total += WaveReport(halt=Halt(kind, str(error)))
    except KeyboardInterrupt as interrupt:
        given_back = close(run)
        raise Interrupted(RunReport(enqueued, waves, total, clock() - started), given_back) from interrupt
    except BaseException:
        close(run)
        raise
    close(run)
    return RunReport(enqueued, waves, total, clock() - started)


def work_wave(run: Run, wave: Wave) -> WaveReport:
    """chunk -> embed -> commit for one claimed wave."""
    chunked = stages.chunk(run.outbox, wave, run.profile)
    embedded = stages.embed(run.embedder, chunked, run.call_timeout_seconds)
    return stages.commit(run.outbox, embedded)


def stops_run(halt: Halt) -> bool:
    """A wave that ran out of time, or could not be decided, says nothing about the next one."""
    return halt.kind not in (HaltKind.CALL_TIMEOUT, HaltKind.UNDECIDED)


def close(run: Run) -> int:
    """Closes `run`, whatever becomes of it, and returns how many claims were given back."""
    try:
        return run.close()
    except DatabaseFault as error:
        logger.warning("claims not given back, they come back after the lease: %s", error)
        return 0
