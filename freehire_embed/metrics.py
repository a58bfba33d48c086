"""`Status` as Prometheus text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehire_embed.store.coverage import Status
    from freehire_embed.store.runs import Totals


def exposition(status: Status, totals: Totals) -> str:
    """Text format 0.0.4: gauges of what is, counters of what was done; the identity labels an info metric."""
    coverage = status.coverage
    gauges: tuple[tuple[str, str, float], ...] = (
        ("queue_depth", "Live outbox entries, leased ones included.", status.depth),
        ("queue_leased", "Entries that a run works on now.", status.leased),
        ("queue_dead", "Dead letters.", status.dead),
        ("queue_oldest_seconds", "Age of the oldest live entry.", status.oldest_seconds),
        ("postings_eligible", "Open, canonical, tech and public postings.", coverage.eligible),
        ("postings_covered", "Eligible postings whose vectors are current.", coverage.covered),
        ("postings_stale", "Eligible postings without current vectors.", coverage.stale),
    )
    if status.rate_per_hour is not None:
        text = "Measured over the last hour, all runs together; absent while there is too little to measure."
        gauges += (("postings_per_hour", text, status.rate_per_hour),)
    counters = (
        ("postings_indexed_total", "Postings whose vectors were stored.", totals.indexed),
        ("postings_removed_total", "Postings whose vectors were removed.", totals.removed),
        ("dead_letters_total", "Entries that became dead letters.", totals.dead_lettered),
        ("passages_embedded_total", "Passages embedded and stored.", totals.passages),
    )
    identity = status.target_model.replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        "# HELP freehire_embed_target_info The embedder identity that readers use.",
        "# TYPE freehire_embed_target_info gauge",
        f'freehire_embed_target_info{{identity="{identity}"}} 1',
    ]
    for kind, metrics in (("gauge", gauges), ("counter", counters)):
        for name, text, value in metrics:
            lines += [
                f"# HELP freehire_embed_{name} {text}",
                f"# TYPE freehire_embed_{name} {kind}",
                f"freehire_embed_{name} {value}",
            ]
    return "\n".join(lines) + "\n"
