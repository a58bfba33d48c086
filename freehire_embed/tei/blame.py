"""One wave's rows -> vectors, with the blame put by evidence.

A slice that fails is split until its bad row stands alone; the row is blamed only when it failed alone and
the probe text succeeded right after. What the probe fails as well is nobody's fault and ends the wave.

    slice -> vectors ................................. delivered
          -> the server refuses a text ............... split
          -> inference failed ................ pause, split
          -> 5xx, reset, time-out, twice ..... probe; split, start over, or halt
          -> some rows defective ..................... those again, alone
          -> another model ................... again; halt when it stays so
          -> key, URL, redirect, rows mixed up ....... halt
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from freehire_embed.domain import Halt, HaltKind, Usage
from freehire_embed.tei.proof import KNOWN_ROWS
from freehire_embed.wire.faults import ConfigFault, UpstreamFault
from freehire_embed.wire.refusal import Kind, Refusal
from freehire_embed.wire.retry import unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from freehire_embed.domain import Vector
    from freehire_embed.tei.client import TeiClient
    from freehire_embed.tei.handshake import Probe
    from freehire_embed.tei.limits import Limits
    from freehire_embed.tei.proof import Proof
    from freehire_embed.tei.stats import Tally
    from freehire_embed.tei.vectors import Rows
    from freehire_embed.wire.pace import Gate, Patience

_TRIES = 2
"""Failures of the upstream's kind before the probe is asked; the retry policy's attempts are then the probe's."""
_BUSY_TRIES = 4
_FREE_EXTRAS = 64
"""Extra requests a wave may always make, beside one a row. One bad row in 32 costs at most 14."""
_SUSPECT_SHARE = 4
"""Pieces of a slice that failed get this fraction of an attempt's time; a row alone gets all of it."""
_DOUBTFUL_ROWS = 8
_BYTES_A_TOKEN = 4
"""Of UTF-8, so that no script has many more tokens than counted: e5 takes 4.5 of Chinese, 6.6 of English."""

_SILENT = frozenset({Kind.UPSTREAM, Kind.TIMEOUT, Kind.COUNT})
"""Nothing was said about any row."""
_STATED = frozenset({Kind.ROW, Kind.SIZE})
"""The server itself said that the text is at fault."""
_PAUSED = _SILENT | {Kind.BACKEND, Kind.MANY_DEFECTS}


class Stopped(Exception):
    """Ends the wave's tasks; why is in `WaveEmbedding.halt`."""


@dataclass(frozen=True, slots=True)
class Blame:
    reason: str
    stated: bool


@dataclass(slots=True)
class Verdicts:
    """Rows decided in all waves of a run, and how many of them were blamed without the server saying why."""

    known: int = 0
    doubtful: int = 0


def _mostly(doubtful: int, known: int) -> bool:
    return known >= _DOUBTFUL_ROWS and doubtful > known / 2


class WaveEmbedding:
    """The state of one `embed` call: `vectors`, `blamed` and `halt` are its result, at any moment."""

    def __init__(
        self,
        rows: Sequence[bytes],
        *,
        client: TeiClient,
        proof: Proof,
        probe: Probe,
        gate: Gate,
        limits: Limits,
        patience: Patience,
        tally: Tally,
        attempt_timeout_seconds: float,
        on_last: Callable[[], None] | None = None,
    ) -> None:
        """`on_last` is called once, when the last slice is on its way and an earlier one came back whole."""
        self._rows = rows
        self._client = client
        self._proof = proof
        self._probe = probe
        self._gate = gate
        self._limits = limits
        self._patience = patience
        self._tally = tally
        self._attempt_timeout_seconds = attempt_timeout_seconds
        self._on_last = on_last
        self._delivered = False
        # Rows of like length together: servers that pad do no work in vain, and requests take even times.
        self._slices = deque([sorted(range(len(rows)), key=lambda place: len(rows[place]), reverse=True)])
        self._extras_left = _FREE_EXTRAS + len(rows)
        self.vectors: list[Vector | None] = [None] * len(rows)
        self.blamed: dict[int, Blame] = {}
        self.halt: Halt | None = None
        self.usage = Usage()

    async def work(self) -> None:
        """Takes slices until none is left; run as many at once as requests may be in flight."""
        while self._slices:
            first, *rest = self._cut(self._slices.popleft())
            self._slices.extendleft(reversed(rest))
            self._tell_of_last()
            self._delivered |= await self._solve(first) == len(first)
            self._tell_of_last()

    def _tell_of_last(self) -> None:
        if self._on_last and self._delivered and not self._slices:
            self._on_last()
            self._on_last = None

    def doubts(self, verdicts: Verdicts) -> Halt | None:
        """A halt instead of the blame when most rows failed without the server saying why (fp16 does that).

        Counted in this wave, and with the `verdicts` of the waves before: small waves add up.
        """
        doubtful = sum(not blame.stated for blame in self.blamed.values())
        known = sum(vector is not None for vector in self.vectors) + len(self.blamed)
        verdicts.known += known
        verdicts.doubtful += doubtful
        if not doubtful or not (_mostly(doubtful, known) or _mostly(verdicts.doubtful, verdicts.known)):
            return None
        reason = next(blame.reason for blame in self.blamed.values() if not blame.stated)
        return Halt(
            HaltKind.UNDECIDED,
            f"{self._client.endpoint.server} fails for {doubtful} of {known} rows, which is no trait of "
            f"the texts: {reason}",
        )

    async def _solve(self, rows: list[int], *, suspect: bool = False) -> int:
        """Delivers the rows or blames them; gives the size of the largest request that was delivered whole."""
        refusal = await self._deliver(rows, suspect=suspect)
        if refusal is None:
            return len(rows)
        if len(rows) == 1:
            self._tally.row_faults += 1
            reason = f"{refusal.detail}; it failed alone, the probe text succeeded right after"
            self.blamed[rows[0]] = Blame(reason, stated=refusal.kind in _STATED)
            return 0
        self._tally.splits += 1
        if refusal.kind is Kind.LIMIT:
            # Nobody is in doubt: the pieces are what should have been sent at first.
            return max([await self._solve(piece, suspect=suspect) for piece in self._cut(rows)])
        by_size = refusal.kind is Kind.SIZE
        largest = max([await self._solve(half, suspect=True) for half in self._halves(rows, by_size=by_size)])
        if self.blamed.keys().isdisjoint(rows):
            # None of them was at fault, so it was that there were so many.
            if by_size:
                self._limits.lower_bytes(sum(len(self._rows[place]) for place in rows) // 2, refusal.detail)
            elif refusal.kind is Kind.BACKEND:
                self._limits.lower_rows(largest, refusal.detail)
            elif refusal.kind is Kind.TIMEOUT and not suspect:
                # The pieces had only a share of the time that whole slices get.
                self._limits.lower_rows(min(largest * _SUSPECT_SHARE, len(rows) // 2), refusal.detail)
        return largest

    async def _deliver(self, rows: list[int], *, suspect: bool) -> Refusal | None:
        """None when every row is settled; else the refusal that stands, with the probe as witness where due."""
        alone = len(rows) == 1
        seconds = self._attempt_timeout_seconds
        if suspect and not alone:
            seconds /= _SUSPECT_SHARE
        started = time.monotonic()
        failures = sent = strangers = 0
        waited = 0.0
        while True:
            if suspect or sent:
                self._spend_extra()
            sent += 1
            # The server batches requests together, and a crash takes all of them: only what fails with nothing
            # else in flight has failed alone.
            in_doubt = alone and (suspect or sent > 1)
            async with self._gate.alone() if in_doubt else self._gate.place() as ticket:
                answer = await self._proof.embed([self._rows[place] for place in rows], seconds)
            if isinstance(answer, Refusal):
                refusal = answer
            elif (defective := await self._keep(rows, answer)) is not None:
                refusal = defective
            else:
                self._count(rows, answer)
                self._gate.answered(ticket, answer.seconds, answer.waited_seconds)
                self._tally.in_flight[ticket.in_flight] += 1
                return None
            if refusal.kind is Kind.CONFIG:
                self._stop(Halt(HaltKind.CONFIG, f"{self._client.endpoint.server}: {refusal.detail}"))
            if refusal.kind is Kind.BUSY:
                self._gate.lower(ticket)
                if not self._too_many_for_the_slots(refusal, rows, sent):
                    self._extras_left += 1
                    waited += await self._pause(refusal, sent)
                    if waited >= self._patience.busy_seconds:
                        self._give_up(sent, started, refusal)
                    continue
                refusal = Refusal(
                    Kind.LIMIT, refusal.cause, refusal.detail, limit=len(rows) // 2 + KNOWN_ROWS
                )
            if refusal.kind is Kind.FOREIGN:
                strangers += 1
                self._extras_left += 1
                self.usage += Usage(foreign=1)
                if strangers == self._patience.attempts:
                    self._give_up(sent, started, refusal)
                await self._pause(refusal, strangers)
                continue
            refusal = self._learn(refusal, rows)
            failures += 1
            tries = self._tries(refusal.kind, alone=alone, suspect=suspect)
            if failures < tries:
                if refusal.kind in _PAUSED:
                    await self._pause(refusal, failures)
                continue
            if (alone or tries > 1) and not await self._probe_is_fine():
                # There was an outage, and it says nothing about these rows.
                failures = 0
                continue
            if refusal.kind is Kind.MANY_DEFECTS:
                server = self._client.endpoint.server
                self._stop(Halt(HaltKind.UNDECIDED, f"{server} answers badly: {refusal.detail}"))
            if not alone and refusal.kind in _PAUSED:
                await self._pause(refusal, 1)
            return refusal

    @staticmethod
    def _tries(kind: Kind, *, alone: bool, suspect: bool) -> int:
        if kind is Kind.MANY_DEFECTS:
            return _TRIES
        if kind in _SILENT:
            return _TRIES if alone or not suspect else 1
        if kind is Kind.BACKEND:
            return _TRIES if alone else 1
        if kind is Kind.DEFECT:
            return 1 if suspect else _TRIES
        return 1

    async def _keep(self, rows: list[int], answer: Rows) -> Refusal | None:
        """Stores the good vectors; sends the bad rows again, alone, when they are few."""
        bad = answer.defects
        if len(rows) >= _DOUBTFUL_ROWS and len(bad) > len(rows) / 2:
            return Refusal(
                Kind.MANY_DEFECTS, "defect", f"{next(iter(bad.values()))} for {len(bad)} of {len(rows)} rows"
            )
        for place, vector in zip(rows, answer.vectors, strict=True):
            self.vectors[place] = vector
        if bad:
            self._tally.retries["defect"] += 1
        if len(rows) == 1 and bad:
            return Refusal(Kind.DEFECT, "defect", bad[0])
        for index in bad:
            await self._solve([rows[index]], suspect=True)
        return None

    def _count(self, rows: list[int], answer: Rows) -> None:
        own = (answer.tokens or 0) - (self._proof.tokens or 0)
        self._tally.truncated += len(rows) == 1 and own >= self._client.token_limit
        self.usage += Usage(answers=1)

    def _learn(self, refusal: Refusal, rows: list[int]) -> Refusal:
        """Lowers the limits by what the server said; a limit that explains nothing is a refusal of the rows."""
        if refusal.kind is Kind.LIMIT:
            limit = (refusal.limit or 0) - KNOWN_ROWS
            if not 0 < limit < len(rows):
                return Refusal(Kind.ROW, refusal.cause, refusal.detail)
            self._limits.lower_rows(limit, refusal.detail)
        return refusal

    def _too_many_for_the_slots(self, refusal: Refusal, rows: list[int], times: int) -> bool:
        """A request with more rows than the server has slots is refused for ever, and nothing says so."""
        unexplained = refusal.retry_after_seconds is None and times >= _BUSY_TRIES
        return unexplained and len(rows) > 1 and self._gate.allowed == 1

    async def _pause(self, refusal: Refusal, failures: int) -> float:
        """Waits as long as the server asked, and everybody with it; else alone, by the retry policy."""
        asked = refusal.retry_after_seconds
        if not asked:
            seconds = self._patience.pause_seconds(failures)
            await self._patience.sleep(seconds)
            return seconds
        self._tally.retry_after_waits += 1
        self._tally.retry_after_seconds += asked
        with self._gate.closed():
            await self._patience.sleep(asked)
        return asked

    async def _probe_is_fine(self) -> bool:
        """True when the known-good text succeeds at once, False when only after failures; halts if never.

        Nothing else is sent meanwhile, so an outage costs one probe at a time, however many wait for it.
        """
        with self._gate.closed():
            async with self._probe.turn:
                strangers = self._tally.foreign
                try:
                    _, attempts = await self._probe.persist()
                except (UpstreamFault, ConfigFault) as fault:
                    self._stop(fault.as_halt())
                finally:
                    self.usage += Usage(foreign=self._tally.foreign - strangers)
        return attempts == 1

    def _spend_extra(self) -> None:
        self._extras_left -= 1
        if self._extras_left < 0:
            self._stop(
                Halt(
                    HaltKind.UNDECIDED,
                    f"{self._client.endpoint.server} fails too often: the wave's "
                    f"{_FREE_EXTRAS + len(self._rows)} extra requests are used up",
                )
            )

    def _give_up(self, attempts: int, started: float, last: Refusal) -> NoReturn:
        server = self._client.endpoint.server
        self._stop(unavailable(server, attempts, time.monotonic() - started, last).as_halt())

    def _stop(self, halt: Halt) -> NoReturn:
        self.halt = self.halt or halt
        raise Stopped

    def _cut(self, rows: list[int]) -> list[list[int]]:
        """`rows` in pieces that respect the limits; a row over them goes alone."""
        limits = self._limits
        pieces: list[list[int]] = []
        # The known row is one of them.
        least_size = len(self._proof.row) + 1
        least_tokens = least_size // _BYTES_A_TOKEN
        size, tokens = least_size, least_tokens
        for place in rows:
            row_size = len(self._rows[place]) + 1
            row_tokens = min(row_size // _BYTES_A_TOKEN, self._client.token_limit)
            full = pieces and (
                len(pieces[-1]) >= limits.rows
                or size + row_size > limits.bytes
                or tokens + row_tokens > limits.tokens
            )
            if full or not pieces:
                pieces.append([])
                size, tokens = least_size, least_tokens
            pieces[-1].append(place)
            size += row_size
            tokens += row_tokens
        return pieces

    def _halves(self, rows: list[int], *, by_size: bool) -> tuple[list[int], list[int]]:
        middle = len(rows) // 2
        if by_size:
            half = sum(len(self._rows[place]) for place in rows) / 2
            middle = size = 0
            while middle < len(rows) - 1 and (middle == 0 or size + len(self._rows[rows[middle]]) <= half):
                size += len(self._rows[rows[middle]])
                middle += 1
        return rows[:middle], rows[middle:]
