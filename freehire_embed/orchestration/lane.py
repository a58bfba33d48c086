"""A lane: one Dagster run working wave after wave, and what its ops share while it lasts."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from freehire_embed import stages
from freehire_embed.domain import EnqueueReport, Outcome, WaveReport
from freehire_embed.drain import ENQUEUE_EVERY_SECONDS, Outlook, note
from freehire_embed.once import EmbedOnce
from freehire_embed.run import Run
from freehire_embed.store.backlog import count_claimable
from freehire_embed.store.coverage import semantic_outbox_claimable_depth
from freehire_embed.store.faults import DatabaseFault
from freehire_embed.store.outbox import Window
from freehire_embed.store.runs import postings_per_hour
from freehire_embed.waves import Wave

DONE_TAG = "freehire/done"
"""Postings brought to an end; by it the depth sensor tells a run that got somewhere from one that did not."""
LEFT_TAG = "freehire/left"
"""Entries still to be claimed, and until when. Both are short, as the list of runs shows the first 30 letters."""

_ENDED = (Outcome.INDEXED, Outcome.REMOVED, Outcome.FAILED, Outcome.DEAD_LETTERED)
# Half of the largest catalogue known, in one month; a bound for the count's sake.
_MOST_ENTRIES = 1_000_000
# Beyond it the number left is the planner's estimate.
_COUNTED_AHEAD = 100_000


@dataclass(slots=True)
class Lane:
    """The rules that hold between the waves of one run; the waves themselves are worked by the ops."""

    run: Run
    window: Window | None
    max_waves: int
    max_seconds: float
    clock: Callable[[], float] = time.monotonic
    over: str | None = None
    """Why nothing more is claimed; None while the lane is open."""
    waves: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    _outlook: Outlook = field(default_factory=Outlook)
    embedder: EmbedOnce = field(init=False)
    _started: float = field(init=False)
    _enqueue_due: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.embedder = EmbedOnce(self.run.embedder)
        self._started = self.clock()

    def enqueue(self) -> EnqueueReport:
        report = stages.enqueue(self.run.outbox)
        self._enqueue_due = self.clock() + ENQUEUE_EVERY_SECONDS
        return report

    def slots(self) -> int:
        """Waves worth offering: what is claimable now, up to the run's limit."""
        batch = self.run.settings.batch_size
        return -(-self.claimable(min(self.max_waves * batch, _MOST_ENTRIES)) // batch)

    def claimable(self, limit: int = _COUNTED_AHEAD) -> int:
        """Entries that a run could claim now, counted up to `limit`."""
        return count_claimable(
            self.run.database,
            self.run.profile.identity,
            lease_seconds=self.run.settings.lease_seconds,
            limit=limit,
            window=self.window,
        )

    def next_wave(self) -> Wave | None:
        """Claims a wave unless the lane is over; queues anew every few minutes, so that fresh postings go first."""
        if self.over is None and self.clock() > self._started + self.max_seconds:
            self.over = "the run has lasted long enough, the next one goes on"
        if self.over is not None:
            return None
        if self.clock() >= self._enqueue_due:
            self.enqueue()
        wave = stages.claim(self.run.outbox, self.run.settings.batch_size)
        if wave is None:
            self.over = "nothing is claimable any more"
        return wave

    @contextmanager
    def ended_by_fault(self) -> Iterator[None]:
        """A fault between the waves ends the lane: each further slot would only wait for the database again."""
        try:
            yield
        except Exception as fault:
            self.over = str(fault)
            raise

    def settle(self, report: WaveReport) -> None:
        """Counts a finished wave, and ends the lane when its halt says that the next one would not fare better."""
        note(self.run, report)
        self.waves += 1
        self.outcomes += report.outcomes
        if self._outlook.is_bleak_after(report) and report.halt:
            self.over = report.halt.reason

    @property
    def ended(self) -> int:
        """Postings that came to an end, be it a bad one."""
        return sum(self.outcomes[outcome] for outcome in _ENDED)

    def summary(self) -> str:
        """What the run came to, and why it claimed no more."""
        waves = "1 wave" if self.waves == 1 else f"{self.waves} waves"
        told = f"{waves} in {self.clock() - self._started:.0f} s: {spoken(self.outcomes)}"
        return f"{told}; {self.over}" if self.over else told

    def left(self) -> str:
        """What is still to be claimed, and until when at the measured rate of all lanes together."""
        try:
            return self._left()
        except DatabaseFault as fault:
            return f"not known: {fault}"

    def _left(self) -> str:
        left = self.claimable()
        if left >= _COUNTED_AHEAD:
            if self.window:
                return f"over {_COUNTED_AHEAD:,}"
            left = semantic_outbox_claimable_depth(self.run.database)
        rate = postings_per_hour(self.run.database)
        if not left or not rate:
            return f"{left:,}"
        finish = datetime.now(UTC) + timedelta(hours=left / rate)
        return f"{left:,} until {finish:%a %H:%M} UTC"


def spoken(outcomes: Counter[Outcome]) -> str:
    """The counts in words, for a line of a log."""
    return ", ".join(f"{count:,} {outcome.value}" for outcome, count in sorted(outcomes.items())) or "nothing"
