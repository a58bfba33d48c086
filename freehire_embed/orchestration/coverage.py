"""`semantic_coverage`: how much of the catalogue has current vectors, over time, and what to do about it."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import dagster as dg
import pandas as pd
from pydantic import Field

from freehire_embed.orchestration.failures import explained
from freehire_embed.orchestration.resources import Postgres, Tei
from freehire_embed.profiles import load_profiles
from freehire_embed.run import followed_identity, make_embedder, resolve_profile
from freehire_embed.settings import SettingsError
from freehire_embed.store import identities
from freehire_embed.store.backlog import seconds_idle
from freehire_embed.store.coverage import Coverage, Status, measure_status
from freehire_embed.store.faults import DatabaseMisfit
from freehire_embed.tei import ServerFault, UpstreamFault

_BAR_CHARACTERS = 30
_WHEN = (
    dg.AutomationCondition.on_cron("*/30 * * * *")
    # Not on_missing(): that is for what goes missing later, and a new desk would be empty for half an hour. After a
    # failure the next try is the cron's.
    | (
        dg.AutomationCondition.missing()
        & ~dg.AutomationCondition.in_progress()
        & ~dg.AutomationCondition.execution_failed()
    )
).with_label("every 30 min, or while missing")


class Limits(dg.Config):
    """Where the checks begin to complain."""

    covered_percent: float = Field(
        default=95.0, ge=0, le=100, description="Least share of eligible postings that is covered."
    )
    dead: int = Field(default=0, ge=0, description="Dead letters that are no cause for concern.")
    oldest_hours: float = Field(
        default=24.0, ge=0, description="Longest that an entry may wait in the queue."
    )
    idle_hours: float = Field(
        default=6.0, ge=0, description="Longest without a finished wave while entries wait."
    )


_CHECKS = {
    "coverage_floor": "Enough eligible postings have current vectors.",
    "no_dead_letters": "No posting was given up.",
    "nothing_waits_too_long": "The oldest entry of the queue is young enough.",
    "embedding_goes_on": "While entries wait, waves are finished.",
    "target_agrees": "EMBED_MODEL, the target and the server mean the same model.",
}


@dg.asset(
    description="Share of eligible postings whose vectors belong to their current text under the target model.",
    automation_condition=_WHEN,
    freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=3)),
    check_specs=[
        dg.AssetCheckSpec(name, asset="semantic_coverage", description=description)
        for name, description in _CHECKS.items()
    ],
)
def semantic_coverage(config: Limits, postgres: Postgres, tei: Tei) -> dg.MaterializeResult:  # type: ignore[type-arg]
    with explained():
        model = followed_identity(postgres.settings, postgres.database)
        status = measure_status(postgres.database, model, postgres.settings.lease_seconds)
        idle = seconds_idle(postgres.database)
        return dg.MaterializeResult(
            metadata=_metadata(status),
            check_results=[*_check_status(status, idle, config), _check_target(postgres, tei)],
        )


coverage_automation = dg.AutomationConditionSensorDefinition(
    name="coverage_automation",
    target=dg.AssetSelection.assets("semantic_coverage", "similar_postings", "vector_audit"),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Measures semantic_coverage every 30 minutes, then computes the similar_postings that are due; "
    "runs vector_audit once a day.",
)
"""The sensor that Dagster would make by itself is off until somebody finds it."""


def _covered_percent(coverage: Coverage) -> float:
    return 100 * coverage.covered / coverage.eligible if coverage.eligible else 100.0


def _metadata(status: Status) -> dict[str, Any]:
    """Numbers become plots on the asset's page."""
    counts = asdict(status.coverage)
    table = pd.DataFrame(
        {
            "postings": {name: f"{count:,}" for name, count in counts.items()},
            "share": {name: f"{_share(count, status.coverage):.1%}" for name, count in counts.items()},
            "": {
                name: "█" * round(_BAR_CHARACTERS * _share(count, status.coverage))
                for name, count in counts.items()
            },
        }
    )
    metadata: dict[str, Any] = {
        "shares": dg.MetadataValue.md(table.to_markdown(stralign="left", disable_numparse=True)),
        "target_model": status.target_model,
        "covered_percent": round(_covered_percent(status.coverage), 2),
        **counts,
        "depth": status.depth,
        "leased": status.leased,
        "dead": status.dead,
        "oldest_hours": round(status.oldest_seconds / 3600, 2),
    }
    if status.rate_per_hour is not None:
        metadata["postings_per_hour"] = round(status.rate_per_hour)
    if status.eta_seconds is not None:
        metadata["hours_left"] = round(status.eta_seconds / 3600, 2)
    return metadata


def _share(count: int, coverage: Coverage) -> float:
    return count / coverage.eligible if coverage.eligible else 0.0


def _check_status(status: Status, idle: float | None, limits: Limits) -> Iterator[dg.AssetCheckResult]:
    covered = _covered_percent(status.coverage)
    yield _verdict(
        "coverage_floor",
        covered >= limits.covered_percent,
        f"{covered:.1f} % covered, at least {limits.covered_percent:g} % wanted: see whether embed_job runs and "
        "succeeds; `freehire-embed plan` tells how long the rest takes",
        covered_percent=covered,
    )
    yield _verdict(
        "no_dead_letters",
        status.dead <= limits.dead,
        f"dead letters: {status.dead}; `freehire-embed dead list` groups them by cause: remove the cause, then "
        "launch requeue_dead_letters_job",
        dead=status.dead,
    )
    oldest = status.oldest_seconds / 3600
    yield _verdict(
        "nothing_waits_too_long",
        oldest <= limits.oldest_hours,
        f"the oldest entry is {oldest:.1f} h old: raise EMBED_LANES or EMBED_CONCURRENCY if the server has room, "
        "else add a server; entries that keep failing show in the failed runs",
        oldest_hours=oldest,
    )
    idle_hours = None if idle is None else idle / 3600
    waiting_hours = oldest if idle_hours is None else min(oldest, idle_hours)
    yield _verdict(
        "embedding_goes_on",
        not status.depth or waiting_hours <= limits.idle_hours,
        f"{status.depth} entries wait and no wave was finished for {waiting_hours:.1f} h: see that embed_schedule "
        "and semantic_outbox_depth_sensor are on, then look at the last failed run",
        waiting_hours=waiting_hours,
    )


def _check_target(postgres: Postgres, tei: Tei) -> dg.AssetCheckResult:
    """Asks the server as a run would, but writes nothing."""
    settings = replace(postgres.settings, warmup_seconds=0)
    try:
        profile = resolve_profile(settings, postgres.database)
        reference = identities.check_usable(postgres.database, profile)
        target = identities.target(postgres.database, load_profiles(settings.profiles_path))
        if target is not None and target != profile.identity:
            return _verdict(
                "target_agrees",
                False,
                f"EMBED_MODEL is {profile.identity}, the target still {target}: the next run re-embeds the "
                "catalogue. Unset EMBED_MODEL if that is not meant",
            )
        if not settings.local or tei.url or settings.embed_url:
            with tei.serving(settings) as served, make_embedder(served, profile) as embedder:
                embedder.preflight(reference)
    except UpstreamFault as fault:
        return _verdict("target_agrees", False, f"bring the embedding server (EMBED_URL) back: {fault}")
    except (SettingsError, DatabaseMisfit, ServerFault) as fault:
        return _verdict("target_agrees", False, str(fault))
    return _verdict("target_agrees", True, "", model=profile.identity)


def _verdict(name: str, passed: bool, complaint: str, **metadata: Any) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=name,
        passed=bool(passed),
        severity=dg.AssetCheckSeverity.WARN,
        description=None if passed else complaint,
        metadata=metadata,
    )
