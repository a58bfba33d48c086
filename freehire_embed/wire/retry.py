"""One question asked until it is answered, or patience ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from freehire_embed.wire.faults import ConfigFault, UpstreamFault
from freehire_embed.wire.refusal import Kind, Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from freehire_embed.wire.address import Server
    from freehire_embed.wire.pace import Patience

T = TypeVar("T")


async def persist(
    once: Callable[[], Awaitable[T | Refusal]],
    server: Server,
    patience: Patience,
    *,
    attempts: int | None = None,
    seconds: float | None = None,
) -> tuple[T, int]:
    """The first answer of `once` that is no Refusal, and how many attempts it took.

    Raises what `unavailable` gives after that many attempts, or when an attempt that began after that many seconds
    has failed as well: the last pause is cut, so that the time is used to its end.
    """
    started = time.monotonic()
    waited = 0.0
    tried = 0
    while True:
        answer = await once()
        tried += 1
        if not isinstance(answer, Refusal):
            return answer, tried
        elapsed = max(time.monotonic() - started, waited)
        if tried == attempts or (seconds is not None and elapsed >= seconds):
            raise unavailable(server, tried, elapsed, answer)
        pause = answer.retry_after_seconds or patience.pause_seconds(tried)
        if seconds is not None:
            pause = min(pause, seconds - elapsed)
        await patience.sleep(pause)
        waited += pause


def unavailable(server: Server, attempts: int, seconds: float, last: Refusal) -> UpstreamFault | ConfigFault:
    """The fault that used-up patience amounts to: a server of another model all along is misconfigured."""
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    told = f"{tries} in {seconds:.1f} s, last answer: {last.detail}"
    if last.kind is Kind.FOREIGN:
        return ConfigFault(f"{server} serves another model: {told}")
    return UpstreamFault(f"{server.role} unavailable: {server}, {told}")
