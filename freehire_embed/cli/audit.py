"""`audit`: is what is stored what it should be?"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from freehire_embed.audit import MEANING, SAMPLE
from freehire_embed.audit import audit as look
from freehire_embed.cli.exits import CLEAN, FAILED
from freehire_embed.cli.options import json_option, opened, option, read_settings
from freehire_embed.cli.output import print_json, say
from freehire_embed.local.defaults import with_embedder
from freehire_embed.run import make_embedder, resolve_profile
from freehire_embed.store.identities import check_usable

if TYPE_CHECKING:
    from freehire_embed.audit import AuditReport


@click.command(short_help="Find vectors that contradict their postings.")
@option("--repair", is_flag=True, help="Queue what is wrong, so that the next run puts it right.")
@option(
    "--sample",
    default=SAMPLE,
    show_default=True,
    type=click.IntRange(0, 1000),
    help="Postings whose vectors are compared with the server's; 0 asks no server.",
)
@json_option
def audit(repair: bool, sample: int, json: bool) -> int:
    """\b
    Example: freehire-embed audit --repair

    Reads all stamps and chunks, and compares a sample of vectors with what the server makes of their text now.
    Exit code 1 when something is wrong.
    """
    with opened(read_settings()) as (settings, database), ExitStack() as stack:
        profile = resolve_profile(settings, database)
        reference = check_usable(database, profile)
        embedder = None
        if sample:
            served = replace(stack.enter_context(with_embedder(settings)), warmup_seconds=0)
            embedder = stack.enter_context(make_embedder(served, profile, rows_per_request=1))
            embedder.preflight(reference)
        report = look(database, profile, embedder, sample=sample, seed=int(time.time()), repair=repair)
    if json:
        print_json(_as_json(report))
    else:
        _show(report, repair=repair)
    return CLEAN if report.clean else FAILED


def _as_json(report: AuditReport) -> dict[str, Any]:
    return {
        "findings": {kind.value: asdict(finding) for kind, finding in report.findings.items()},
        "requeued": report.requeued,
        "sampled": report.sampled,
        "compared": report.compared,
        "passages": dict(report.passages),
        "cut": dict(report.cut),
        "not_compared": report.not_compared,
    }


def _show(report: AuditReport, *, repair: bool) -> None:
    for kind, finding in report.findings.items():
        examples = ", ".join(map(str, finding.examples))
        say(f"{finding.postings} postings {MEANING[kind]}: {examples}{', ...' * (finding.postings > 5)}")
    if report.sampled:
        languages = ", ".join(f"{count} {name}" for name, count in report.cut.most_common())
        say(
            f"sample: {report.sampled} postings, {report.compared} passages compared, "
            f"{report.cut.total()} of them cut by the server{f' ({languages})' if languages else ''}"
        )
    if report.not_compared:
        say(f"not all of the sample could be compared: {report.not_compared}")
    if not report.findings:
        say("nothing is wrong")
    elif repair:
        say(f"{report.requeued} queued: `freehire-embed run` puts them right")
    else:
        say("`freehire-embed audit --repair` queues them for the next run")
