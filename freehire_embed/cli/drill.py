"""`drill`: breaks things on purpose on a scratch database, and compares."""

from __future__ import annotations

import logging

import click

from freehire_embed.cli.exits import CLEAN, FAILED
from freehire_embed.cli.options import json_option, read_settings
from freehire_embed.cli.output import print_json, say
from freehire_embed.drill.kit import DRILLS, DrillReport, run_drills

_COLUMNS = "{:12} {:42} {:>16} {:>16}  {}"


@click.command(short_help="Break things on purpose on a scratch database.")
@json_option
@click.argument("names", nargs=-1, metavar="[DRILL]...", type=click.Choice(list(DRILLS)))
def drill(names: tuple[str, ...], json: bool) -> int:
    """\b
    Example: freehire-embed drill
    Example: freehire-embed drill kill race

    Runs the pipeline against a server and workers that fail on purpose, and compares what happened with what is
    promised. Works on a database of its own, created beside DATABASE_URL (or on an embedded server) and dropped at
    the end. Drills: poison, outage, swap, balancer, kill, stop, stale-owner, race, restart; without a name all
    of them. Exit code 1 when one fails.
    """
    for noisy in ("freehire_embed", "psycopg.pool"):  # faults are what it is about
        logging.getLogger(noisy).setLevel(logging.ERROR)
    reports: list[DrillReport] = []
    if not json:
        say(_COLUMNS.format("drill", "what", "expected", "happened", "ok"))
    for report in run_drills(names or list(DRILLS), read_settings().database_url):
        reports.append(report)
        if not json:
            _show(report)
    failed = [report.name for report in reports if not report.ok]
    if json:
        print_json([_fields(report) for report in reports])
    else:
        seconds = sum(report.seconds for report in reports)
        verdict = f"failed: {', '.join(failed)}" if failed else "all as expected"
        say(f"{len(reports)} drills in {seconds:.0f} s: {verdict}")
    return FAILED if failed else CLEAN


def _show(report: DrillReport) -> None:
    name = report.name
    for check in report.checks:
        mark = "ok" if check.ok else "FAILED"
        say(_COLUMNS.format(name, check.what, check.expected, check.happened, mark))
        name = ""


def _fields(report: DrillReport) -> dict[str, object]:
    return {
        "drill": report.name,
        "ok": report.ok,
        "seconds": round(report.seconds, 1),
        "checks": [
            {"what": c.what, "expected": c.expected, "happened": c.happened, "ok": c.ok}
            for c in report.checks
        ],
    }
