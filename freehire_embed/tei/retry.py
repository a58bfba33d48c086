"""One question asked until it is answered, or patience ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from freehire_embed.tei.answers import Refusal
from freehire_embed.tei.faults import UpstreamFault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from freehire_embed.tei.pace import Patience

T = TypeVar("T")


async def persist(
    once: Callable[[], Awaitable[T | Refusal]],
    shown: str,
    patience: Patience,
    *,
    attempts: int | None = None,
    seconds: float | None = None,
) -> tuple[T, int]:
    """The first answer of `once` that is no Refusal, and how many attempts it took.

    Raises UpstreamFault after that many attempts, or when the next pause would pass that many seconds.
    """
    started = time.monotonic()
    waited = 0.0
    tried = 0
    while True:
        answer = await once()
        tried += 1
        if not isinstance(answer, Refusal):
            return answer, tried
        elapsed = time.monotonic() - started
        pause = answer.retry_after_seconds or patience.pause_seconds(tried)
        out_of_time = seconds is not None and max(waited, elapsed) + pause >= seconds
        if out_of_time or tried == attempts:
            raise unavailable(shown, tried, elapsed, answer)
        await patience.sleep(pause)
        waited += pause


def unavailable(shown: str, attempts: int, seconds: float, last: Refusal) -> UpstreamFault:
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    return UpstreamFault(
        f"embedding backend unavailable: EMBED_URL {shown}, {tries} in {seconds:.1f} s, last answer: {last.detail}"
    )
