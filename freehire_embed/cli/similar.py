"""`similar`: the postings nearest to one, and the upkeep of those lists for people without Dagster."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from freehire_embed.cli.exits import CLEAN, FAILED
from freehire_embed.cli.options import ID, identity_followed, json_option, opened, option, read_settings
from freehire_embed.cli.output import posting_line, print_json, progress, say
from freehire_embed.similar import NotEmbedded, refresh, similar_to
from freehire_embed.store.neighbours import KEPT
from freehire_embed.store.similar import count_lists

if TYPE_CHECKING:
    from freehire_embed.similar import SimilarReport
    from freehire_embed.store.database import Database


@click.command(short_help="Show the postings most like one.")
@click.argument("posting", required=False, type=ID, metavar="[ID]")
@option("--limit", default=10, show_default=True, type=click.IntRange(1, KEPT), help="Postings to show.")
@option(
    "--refresh", "refreshing", is_flag=True, help="Compute all lists that are due, instead of showing one."
)
@json_option
def similar(posting: int | None, limit: int, refreshing: bool, json: bool) -> int:
    """\b
    Example: freehire-embed similar 4711

    The open, public postings nearest to posting ID, not of the same company. The lists are kept by similar_job of
    Dagster, or by --refresh from cron.
    """
    if (posting is None) is not refreshing:
        raise click.UsageError("give the ID of a posting, or --refresh.", click.get_current_context())
    with opened(read_settings()) as (settings, database):
        model = identity_followed(settings, database)
        if posting is None:
            report = _refresh(database, model)
        else:
            try:
                shown = similar_to(database, model, posting, limit)
            except NotEmbedded as reason:
                say(f"freehire-embed: {reason}", err=True)
                return FAILED
    if posting is None:
        if json:
            print_json(asdict(report))
        else:
            say(_summary(report))
        return CLEAN
    if json:
        print_json([asdict(each) for each in shown])
        return CLEAN
    if not shown:
        say("nothing like it: no other company has embedded postings")
    for number, each in enumerate(shown, 1):
        say(posting_line(number, each.title, each.company, each.distance, each.url))
    return CLEAN


def _refresh(database: Database, model: str) -> SimilarReport:
    missing = count_lists(database, model).missing
    with progress("lists", log_every_seconds=10) as advance:
        return refresh(
            database,
            model,
            on_batch=lambda done: advance(done, max(missing, done), f"{done} lists computed"),
        )


def _summary(report: SimilarReport) -> str:
    if report.waiting:
        return f"nothing computed: {report.waiting}"
    return (
        f"{report.computed} lists computed in {report.seconds:.1f} s, {report.short} of them shorter than {KEPT}; "
        f"{report.thin} were due because their neighbours are gone"
    )
