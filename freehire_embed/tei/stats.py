"""What a client did, for metadata and reports."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LATENCIES_KEPT = 2000


@dataclass(frozen=True, slots=True)
class TeiStats:
    """A snapshot since the client was made."""

    requests: int
    """Embedding requests sent: passages, probes and queries."""
    rows: int
    """Rows in them, the known ones included, resent ones counted again."""
    retries: Mapping[str, int]
    """Requests that brought less than they should have, by cause: a status, `timeout`, `connect`, ..."""
    foreign: int
    """Answers that were of another model, and not used."""
    splits: int
    probes: int
    row_faults: int
    retry_after_waits: int
    retry_after_seconds: float
    tokens: int
    """Sum of x-compute-tokens, after truncation; 0 when the server does not tell."""
    truncated: int
    """Rows sent alone that filled the model's limit; how many were cut in company the server does not tell."""
    concurrency: int
    """Requests that may be in flight now; found by the client, or lowered after 429."""
    in_flight_mean: float
    in_flight_peak: int
    """Requests in flight with passages, at the moments when one was sent; 0 without any."""
    latency_p50_seconds: float
    latency_p95_seconds: float
    """Over the latest 2000 answers with vectors; 0 without any."""


@dataclass(slots=True)
class Tally:
    """The running numbers; written by the client's own thread only."""

    requests: int = 0
    rows: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    splits: int = 0
    probes: int = 0
    row_faults: int = 0
    retry_after_waits: int = 0
    retry_after_seconds: float = 0.0
    tokens: int = 0
    truncated: int = 0
    in_flight: Counter[int] = field(default_factory=Counter)
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_LATENCIES_KEPT))

    @property
    def foreign(self) -> int:
        return self.retries["foreign"]

    def snapshot(self, concurrency: int) -> TeiStats:
        latencies = sorted(self.latencies)
        sent = Counter(self.in_flight)

        def percentile(share: float) -> float:
            return latencies[int(share * (len(latencies) - 1))] if latencies else 0.0

        return TeiStats(
            requests=self.requests,
            rows=self.rows,
            retries=Counter(self.retries),
            foreign=self.foreign,
            splits=self.splits,
            probes=self.probes,
            row_faults=self.row_faults,
            retry_after_waits=self.retry_after_waits,
            retry_after_seconds=self.retry_after_seconds,
            tokens=self.tokens,
            truncated=self.truncated,
            concurrency=concurrency,
            in_flight_mean=sum(n * times for n, times in sent.items()) / (sent.total() or 1),
            in_flight_peak=max(sent, default=0),
            latency_p50_seconds=percentile(0.5),
            latency_p95_seconds=percentile(0.95),
        )
