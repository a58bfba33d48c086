"""`vector_audit`: once a day, whether what is stored is what it should be; each kind of fault is a check."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import dagster as dg
import pandas as pd
from pydantic import Field

from freehire_embed.audit import MEANING, SAMPLE, AuditReport, Kind, audit
from freehire_embed.orchestration.coverage import semantic_coverage
from freehire_embed.orchestration.failures import explained
from freehire_embed.orchestration.resources import Postgres, Tei
from freehire_embed.run import make_embedder
from freehire_embed.store import identities
from freehire_embed.store.runs import Truncation, measure_truncation

_TRUNCATION_DAYS = 7


class Audit(dg.Config):
    """How much is looked at, and whether it is put right."""

    sample: int = Field(
        default=SAMPLE,
        ge=0,
        le=1000,
        description="Postings whose vectors are compared with the server's; 0 = none.",
    )
    repair: bool = Field(
        default=False, description="Queue what is wrong, so that the next run puts it right."
    )
    cut_percent: float = Field(
        default=1.0, ge=0, le=100, description="Share of passages that may be longer than the model takes."
    )


@dg.asset(
    deps=[semantic_coverage],
    description="Stamps, chunks, texts and vectors that contradict each other, and passages that the server cut.",
    automation_condition=dg.AutomationCondition.on_cron("17 3 * * *"),
    check_specs=[
        *(
            dg.AssetCheckSpec(f"no_{kind.value}", asset="vector_audit", description=f"No postings {meaning}.")
            for kind, meaning in MEANING.items()
        ),
        dg.AssetCheckSpec(
            "passages_fit_the_model", asset="vector_audit", description="The server cuts hardly any passage."
        ),
    ],
)
def vector_audit(config: Audit, postgres: Postgres, tei: Tei) -> dg.MaterializeResult:  # type: ignore[type-arg]
    database = postgres.database
    with explained(), ExitStack() as stack:
        profile = postgres.usable_profile()
        embedder = None
        if config.sample:
            served = replace(stack.enter_context(tei.serving(postgres.settings)), warmup_seconds=0)
            embedder = stack.enter_context(make_embedder(served, profile, rows_per_request=1))
            embedder.preflight(identities.check_usable(database, profile))
        report = audit(
            database, profile, embedder, sample=config.sample, seed=int(time.time()), repair=config.repair
        )
        lately = measure_truncation(database, profile.identity, _TRUNCATION_DAYS)
    metadata: dict[str, Any] = {
        "faults": sum(finding.postings for finding in report.findings.values()),
        "requeued": report.requeued,
        "sampled": report.sampled,
        "passages_compared": report.compared,
        "passages_cut_in_sample": report.cut.total(),
        "target_model": profile.identity,
    }
    if report.not_compared:
        metadata["not_compared"] = report.not_compared
    return dg.MaterializeResult(
        metadata=metadata,
        check_results=[*_check_findings(report), _check_truncation(report, lately, config.cut_percent)],
    )


def _check_findings(report: AuditReport) -> Iterator[dg.AssetCheckResult]:
    for kind, meaning in MEANING.items():
        finding = report.findings.get(kind)
        yield dg.AssetCheckResult(
            check_name=f"no_{kind.value}",
            passed=finding is None,
            # a chunk of a closed posting is the normal state until the next run
            severity=dg.AssetCheckSeverity.WARN
            if kind in (Kind.CHUNKS_OF_INELIGIBLE, Kind.CHUNKS_WITHOUT_STAMP)
            else dg.AssetCheckSeverity.ERROR,
            description=f"{finding.postings} postings {meaning}, for example {finding.examples}: launch this asset "
            "with repair: true, or run `freehire-embed audit --repair`"
            if finding
            else None,
            metadata={"postings": finding.postings if finding else 0},
        )


def _check_truncation(report: AuditReport, lately: Truncation, limit: float) -> dg.AssetCheckResult:
    percent = 100 * lately.cut / lately.passages if lately.passages else 0.0
    languages = sorted(
        {*lately.over_limit, *report.passages}, key=lambda name: -lately.over_limit.get(name, 0)
    )
    table = pd.DataFrame(
        {
            f"cut in {_TRUNCATION_DAYS} days": [lately.over_limit.get(name, 0) for name in languages],
            "sampled": [report.passages[name] for name in languages],
            "cut in the sample": [report.cut[name] for name in languages],
        },
        index=pd.Index(languages, name="language"),
    )
    return dg.AssetCheckResult(
        check_name="passages_fit_the_model",
        passed=percent <= limit,
        severity=dg.AssetCheckSeverity.WARN,
        description=None
        if percent <= limit
        else f"{percent:.1f} % of the passages of {_TRUNCATION_DAYS} days are longer than the model takes, and "
        "their ends are in no vector: change EMBED_MODEL to the identity of the same model that ends in -v2",
        metadata={
            "cut_percent": percent,
            "cut": lately.cut,
            "passages": lately.passages,
            "by_language": dg.MetadataValue.md(table.to_markdown()),
        },
    )
