"""`Status` as Prometheus text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehire_embed.store.coverage import Status


def exposition(status: Status) -> str:
    """Gauges in the text format 0.0.4, each with its help; the identity is the label of an info metric."""
    coverage = status.coverage
    gauges = (
        ("queue_depth", "Live outbox entries, leased ones included.", status.depth),
        ("queue_leased", "Entries that a run works on now.", status.leased),
        ("queue_dead", "Dead letters.", status.dead),
        ("queue_oldest_seconds", "Age of the oldest live entry.", status.oldest_seconds),
        ("postings_eligible", "Open, canonical, tech and public postings.", coverage.eligible),
        ("postings_covered", "Eligible postings whose vectors are current.", coverage.covered),
        ("postings_stale", "Eligible postings without current vectors.", coverage.stale),
        ("postings_no_text", "Covered postings that have no text.", coverage.no_text),
        ("postings_per_hour", "Measured over the last hour, all runs together.", status.rate_per_hour),
    )
    identity = status.target_model.replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        "# HELP freehire_embed_target_info The embedder identity that readers use.",
        "# TYPE freehire_embed_target_info gauge",
        f'freehire_embed_target_info{{identity="{identity}"}} 1',
    ]
    for name, text, value in gauges:
        lines += [
            f"# HELP freehire_embed_{name} {text}",
            f"# TYPE freehire_embed_{name} gauge",
            f"freehire_embed_{name} {value}",
        ]
    return "\n".join(lines) + "\n"
