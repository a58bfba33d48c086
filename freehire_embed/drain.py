"""The five stages in a loop, for cron and the command line: enqueue, then wave after wave until none is left."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from freehire_embed import stages
from freehire_embed.domain import Embeddings, EnqueueReport, Halt, HaltKind, Outcome, WaveReport
from freehire_embed.once import EmbedOnce
from freehire_embed.store.faults import DatabaseDown, DatabaseFault, DatabaseMisfit, RowRejected
from freehire_embed.store.outbox import Superseded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from freehire_embed.run import Run
    from freehire_embed.tei import TeiEmbedder
    from freehire_embed.waves import Wave

logger = logging.getLogger(__name__)

# Fresh postings go first, so a long drain has to hear of them.
ENQUEUE_EVERY_SECONDS = 180
# The server answers, yet wave after wave cannot be embedded: one more will not help.
UNDECIDED_IN_A_ROW = 3
# One wave at the server, one on its way there, one on its way out: with fewer the server waits for Postgres.
WAVES_AT_ONCE = 3
# How long an interrupted run waits for commits that are under way, to count them.
_LANDING_SECONDS = 5
# A signal that comes just before a wait without end is noticed only after it: no wait of ours is without end.
_HEED_SECONDS = 0.5


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
        if self.total.usage.foreign:
            return 1
        bad = (Outcome.FAILED, Outcome.DEAD_LETTERED, Outcome.ABANDONED)
        return 1 if any(self.total.outcomes[outcome] for outcome in bad) else 0


class Interrupted(KeyboardInterrupt):
    """A drain that was told to stop: what it had done by then, and how many entries it gave back."""

    def __init__(self, report: RunReport, given_back: int) -> None:
        super().__init__()
        self.report = report
        self.given_back = given_back


class _OneWaveAtATime:
    """Lets one wave use the server at a time: it gets all of its speed, and its time limit runs only then.

    The next one may start while the last answer is on its way, so that the server does not wait for us. What
    stopped one wave stops those that wait: an outage is probed once, not once a wave.
    """

    def __init__(self, embedder: TeiEmbedder) -> None:
        self._embedder = embedder
        self._turn = threading.Semaphore()
        self._halt: Halt | None = None

    def embed(self, passages: Sequence[str], timeout_seconds: float | None = None) -> Embeddings:
        self._turn.acquire()
        with ExitStack() as turn:
            turn.callback(self._turn.release)
            if self._halt:
                return Embeddings([None] * len(passages), halt=self._halt)
            result = self._embedder.embed(passages, timeout_seconds, on_last=turn.close)
            if result.halt and stops_run(result.halt):
                self._halt = result.halt
            return result


class _Flight:
    """The waves in hand, each worked from chunk to commit by a thread of its own, and what has landed so far."""

    def __init__(
        self, run: Run, on_wave: Callable[[int, WaveReport, float], None] | None, clock: Callable[[], float]
    ) -> None:
        self._run = run
        self._on_wave = on_wave
        self._clock = clock
        self._embedder = EmbedOnce(_OneWaveAtATime(run.embedder))
        self._one_chunks = threading.Lock()
        self._threads = ThreadPoolExecutor(WAVES_AT_ONCE, thread_name_prefix="wave")
        self._flying: dict[Future[WaveReport], float] = {}
        self._outlook = Outlook()
        self.started = clock()
        self.enqueued = EnqueueReport()
        self.waves = 0
        self.total = WaveReport()
        self.over = False
        """A wave's halt says that the next one would not fare better."""

    @property
    def launched(self) -> int:
        return self.waves + len(self._flying)

    def enqueue(self) -> None:
        """Queues what is new. A table that refuses it (a corrupted row, say) fails the run, but stops no wave."""
        try:
            self.enqueued += stages.enqueue(self._run.outbox)
        except Superseded as error:
            self.halt(error)
            self.over = True
        except DatabaseMisfit as error:
            self.halt(error)

    def halt(self, error: DatabaseFault) -> None:
        kind = HaltKind.DATABASE if isinstance(error, DatabaseDown) else HaltKind.CONFIG
        self.total += WaveReport(halt=Halt(kind, str(error)))

    def launch(self, wave: Wave) -> None:
        """Starts `wave`; a wave that has to be alone waits for the others and ends before this returns."""
        if wave.alone:
            with wave.lease.kept_alive():
                self.land(all_of_them=True)
        self._flying[self._threads.submit(self._work, wave)] = self._clock()
        if wave.alone:
            self.land(all_of_them=True)

    def _work(self, wave: Wave) -> WaveReport:
        # Two at once would both take twice as long: it is all computing.
        with wave.lease.kept_alive(), self._one_chunks:
            chunked = stages.chunk(self._run.outbox, wave, self._run.profile)
        embedded = stages.embed(self._embedder, chunked, self._run.call_timeout_seconds)
        return stages.commit(self._run.outbox, embedded)

    def make_room(self) -> None:
        """Waits until another wave can be launched."""
        if len(self._flying) >= WAVES_AT_ONCE:
            self.land()

    def land(self, *, all_of_them: bool = False) -> None:
        """Waits for a wave (or all) to end and counts it."""
        done: set[Future[WaveReport]] = set()
        while self._flying and (len(done) < len(self._flying) if all_of_them else not done):
            done, _ = wait(
                self._flying, _HEED_SECONDS, return_when=ALL_COMPLETED if all_of_them else FIRST_COMPLETED
            )
        for future in done:
            self._count(future.result(), self._clock() - self._flying.pop(future))

    def _count(self, report: WaveReport, seconds: float) -> None:
        self.waves += 1
        self.total += report
        note(self._run, report)
        if self._on_wave:
            self._on_wave(self.waves, report, seconds)
        if self._outlook.is_bleak_after(report):
            self.over = True

    def stop(self) -> int:
        """Ends everything at once and returns how many claims were given back.

        Closing the client ends what waits for the server; a commit that is already under way ends by itself, and
        one that comes after the claims were given back finds the fence closed.
        """
        self._run.embedder.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        landed, _ = wait(self._flying, timeout=_LANDING_SECONDS)
        for future in landed:
            if not future.cancelled() and future.exception() is None:
                self.waves += 1
                self.total += future.result()
                note(self._run, future.result())
        return close(self._run)

    def report(self) -> RunReport:
        return RunReport(self.enqueued, self.waves, self.total, self._clock() - self.started)


def drain(
    run: Run,
    *,
    max_waves: int | None = None,
    on_wave: Callable[[int, WaveReport, float], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RunReport:
    """Works `run` until nothing is claimable, `max_waves` are done, or a halt ends it.

    Up to WAVES_AT_ONCE waves are in hand: while one is embedded, others are read, cut or committed, so that the
    server does not wait for Postgres. `on_wave` is told each wave's number, report and duration in seconds. Faults
    end in the report. A KeyboardInterrupt goes on as Interrupted after everything held has been given back.
    """
    flight = _Flight(run, on_wave, clock)
    enqueue_due = flight.started
    try:
        try:
            while not flight.over and (max_waves is None or flight.launched < max_waves):
                if clock() >= enqueue_due:
                    flight.enqueue()
                    enqueue_due = clock() + ENQUEUE_EVERY_SECONDS
                    if flight.over:
                        break
                wave = stages.claim(run.outbox, run.settings.batch_size)
                if wave is None:
                    break
                flight.launch(wave)
                flight.make_room()
        except DatabaseFault as error:
            flight.halt(error)
        # The waves in hand end by themselves: a claim that cannot be made must not undo them, run after run.
        flight.land(all_of_them=True)
    except KeyboardInterrupt as interrupt:
        given_back = flight.stop()
        raise Interrupted(flight.report(), given_back) from interrupt
    except BaseException:
        flight.stop()
        raise
    flight.stop()
    return flight.report()


def stops_run(halt: Halt) -> bool:
    """A wave that ran out of time, or could not be decided, says nothing about the next one."""
    return halt.kind not in (HaltKind.CALL_TIMEOUT, HaltKind.UNDECIDED)


class Outlook:
    """Whether the next wave would fare better than those before it; asked after each."""

    def __init__(self) -> None:
        self._undecided = 0

    def is_bleak_after(self, report: WaveReport) -> bool:
        undecided = report.halt is not None and report.halt.kind is HaltKind.UNDECIDED
        self._undecided = self._undecided + 1 if undecided else 0
        return report.halt is not None and (stops_run(report.halt) or self._undecided >= UNDECIDED_IN_A_ROW)


def note(run: Run, report: WaveReport) -> None:
    """Adds a wave to semantic_runs. What is committed stays so, whether it can be noted or not."""
    try:
        run.record.add(report)
    except (DatabaseFault, RowRejected) as error:
        logger.warning("wave not noted in semantic_runs: %s", error)


def close(run: Run) -> int:
    """Closes `run`, whatever becomes of it, and returns how many claims were given back."""
    try:
        return run.close()
    except DatabaseFault as error:
        logger.warning("claims not given back, they come back after the lease: %s", error)
        return 0
