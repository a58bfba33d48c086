"""How patient and how pushy a client is: pauses, and requests in flight."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator


def _full_jitter(ceiling_seconds: float) -> float:
    return random.uniform(0, ceiling_seconds)  # noqa: S311 - spreads clients, keeps no secret


@dataclass(frozen=True, slots=True)
class Patience:
    """The retry policy: 5 attempts, pauses of up to 1-2-4-8 seconds with full jitter, never over 30."""

    attempts: int = 5
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 30.0
    busy_seconds: float = 300.0
    """Waiting that one request may spend on 429 answers, which use up no attempt."""
    jitter: Callable[[float], float] = _full_jitter
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def pause_seconds(self, failures: int) -> float:
        """How long to wait after the given number of failures in a row (1, 2, ...)."""
        # The exponent is capped only so that it cannot overflow a float.
        ceiling = self.first_pause_seconds * 2.0 ** min(failures - 1, 60)
        return self.jitter(min(ceiling, self.longest_pause_seconds))


# One worked on, one waiting: what keeps a server with one device busy, as most are.
_AT_FIRST = 2
# Requests of ours in the server's queue, on average. The aim is one; between the two nothing changes.
_QUEUED_TOO_FEW = 0.75
_QUEUED_TOO_MANY = 1.5
# A wait that nobody notices, and that a quick server needs: so long may we take to send it the next request.
_SHORT_SECONDS = 0.02


class Ticket(NamedTuple):
    """A place in flight: what the gate wants to know when the answer is there."""

    times_lowered: int
    in_flight: int
    """Requests in flight when it was taken, itself included."""


class Gate:
    """Bounds the requests in flight: halves when the server is busy, grows back one at a time.

    `adaptive` looks for the number at which one request of ours waits in the server's queue while another is worked
    on: with fewer the server idles between two answers, with more a query of somebody else waits for nothing.
    Without it, only a server that says that it is busy (429) lowers the number.
    """

    def __init__(self, most: int, *, adaptive: bool) -> None:
        self._most = most
        self._adaptive = adaptive
        self._allowed = float(min(most, _AT_FIRST) if adaptive else most)
        self._in_flight = 0
        self._closed = 0
        self._changed = asyncio.Event()
        self._times_lowered = 0

    @property
    def most(self) -> int:
        return self._most

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    @property
    def times_lowered(self) -> int:
        return self._times_lowered

    def cap(self, most: int) -> None:
        """Never more than this from now on."""
        self._most = min(self._most, most)
        self._allowed = min(self._allowed, float(self._most))

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[Ticket]:
        """Waits for a place and holds it; gives the ticket that `answered` and `lower` want."""
        while self._closed or self._in_flight >= self.allowed:
            self._changed.clear()
            await self._changed.wait()
        with self._taken() as ticket:
            yield ticket

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[Ticket]:
        """Like `place`, with no other request in flight: what fails then was not another request's doing."""
        with self.closed():
            while self._in_flight:
                self._changed.clear()
                await self._changed.wait()
            with self._taken() as ticket:
                yield ticket

    @contextlib.contextmanager
    def _taken(self) -> Iterator[Ticket]:
        self._in_flight += 1
        try:
            yield Ticket(self._times_lowered, self._in_flight)
        finally:
            self._in_flight -= 1
            self._changed.set()

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Nobody gets a place meanwhile: the server asked for a pause, or a probe finds out whether it lives."""
        self._closed += 1
        try:
            yield
        finally:
            self._closed -= 1
            self._changed.set()

    def answered(self, ticket: Ticket, seconds: float, waited_seconds: float) -> None:
        """After vectors came back in `seconds`, `waited_seconds` of them spent in the server's queue.

        Grows by about one place for each round of answers while none of ours waits; halves when more than one does.
        """
        queued = ticket.in_flight * waited_seconds / seconds if seconds else 0.0
        too_few = queued < _QUEUED_TOO_FEW or waited_seconds < _SHORT_SECONDS
        if not self._adaptive or (too_few and ticket.in_flight >= self.allowed):
            self._allowed = min(self._allowed + 1 / self._allowed, float(self._most))
        elif queued > _QUEUED_TOO_MANY and waited_seconds > 2 * _SHORT_SECONDS:
            self.lower(ticket)

    def lower(self, ticket: Ticket) -> None:
        """Halves what is allowed, once for all the requests that were in flight together."""
        if ticket.times_lowered == self._times_lowered:
            self._times_lowered += 1
            self._allowed = max(self._allowed / 2, 1.0)
