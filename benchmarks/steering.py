"""What a question costs while a bulk run uses the same server."""

from __future__ import annotations

import statistics
import threading
import time
from typing import TYPE_CHECKING

from benchmarks.canned_tei import serving, stats
from benchmarks.figures import Figure
from benchmarks.scratch import PROFILE
from benchmarks.seed import PARAGRAPH
from freehire_embed.tei import TeiEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch

# A small GPU: a forward pass costs 20 ms whatever is in it, and 1 s for 2,000 rows.
_RATE = 2000
_LATENCY = 0.020
_REFERENCE_CONCURRENCY = 14
_QUERY_EVERY_SECONDS = 0.1


def run(_: Scratch, sizes: Sizes) -> Iterator[Figure]:
    idle, _use, _rows = _query_p50(sizes, bulk=None)
    steered, use, in_flight = _query_p50(sizes, bulk=True)
    pushed, pushed_use, _ = _query_p50(sizes, bulk=False)
    yield Figure(
        "query p50 beside a steered bulk run / idle",
        steered / idle,
        4,
        detail=f"{steered * 1000:.0f} ms, idle {idle * 1000:.0f} ms; {in_flight:.1f} in flight",
    )
    yield Figure(
        "device busy in that run", use, 0.95, at_least=True, unit="", detail="between first and last request"
    )
    yield Figure(
        f"the same with EMBED_ADAPTIVE=false, EMBED_CONCURRENCY={_REFERENCE_CONCURRENCY}",
        pushed / idle,
        detail=f"{pushed * 1000:.0f} ms; device busy {pushed_use:.2f}",
    )


def _query_p50(sizes: Sizes, *, bulk: bool | None) -> tuple[float, float, float]:
    """Seconds of a query, share of the time that the device was busy, and the bulk run's requests in flight.

    `bulk` is whether it adapts; None = there is none.
    """
    with serving(_RATE, _LATENCY) as url, _client(url) as asking:
        taken: list[float] = []
        asking.preflight()
        if bulk is None:
            _ask(asking, taken, lambda: len(taken) < 20)
            return statistics.median(taken), 0.0, 0.0
        with _client(url, adaptive=bulk) as working:
            working.preflight()
            end = time.monotonic() + sizes.seconds
            thread = threading.Thread(target=_work, args=(working, end))
            before = stats(url)
            thread.start()
            _ask(asking, taken, thread.is_alive)
            thread.join()
            after = stats(url)
            in_flight = working.stats.in_flight_mean
        rows = after["rows"] - before["rows"]
        requests = (rows - len(taken)) / 32 + len(taken)
        worked = rows / _RATE + requests * _LATENCY
        return statistics.median(taken), worked / (after["seconds"] - before["seconds"]), in_flight


def _ask(client: TeiEmbedder, taken: list[float], going_on: object) -> None:
    assert callable(going_on)  # noqa: S101
    while going_on():
        started = time.perf_counter()
        client.embed_query("who keeps the water clean?")
        taken.append(time.perf_counter() - started)
        time.sleep(_QUERY_EVERY_SECONDS)


def _work(client: TeiEmbedder, end: float) -> None:
    number = 0
    while time.monotonic() < end:
        client.embed([f"passage: {number + place} {PARAGRAPH * 12}" for place in range(1600)])
        number += 1600


def _client(url: str, *, adaptive: bool = True) -> TeiEmbedder:
    return TeiEmbedder(
        url=url, api_key=None, profile=PROFILE, concurrency=_REFERENCE_CONCURRENCY, adaptive=adaptive
    )
