"""`status`, `plan` and `metrics`: looking without touching."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from freehire_embed.cli.exits import CLEAN
from freehire_embed.cli.options import identity_followed, json_option, opened, read_settings, setting_option
from freehire_embed.cli.output import duration, print_json, say
from freehire_embed.metrics import exposition
from freehire_embed.run import resolve_profile
from freehire_embed.store import vector_index
from freehire_embed.store.coverage import measure_status
from freehire_embed.store.identities import check_usable
from freehire_embed.store.plan import make_plan
from freehire_embed.store.runs import measure_totals

if TYPE_CHECKING:
    from freehire_embed.store.coverage import Status
    from freehire_embed.store.plan import Plan


@click.command(short_help="Show queue, coverage, rate and time left.")
@json_option
def status(json: bool) -> int:
    """\b
    Example: freehire-embed status --json

    How deep the queue is, how much of the catalogue is covered, and how long the rest will take.
    """
    with opened(read_settings()) as (settings, database):
        model = identity_followed(settings, database)
        state = measure_status(database, model, settings.lease_seconds)
    if json:
        print_json(state.as_json())
        return CLEAN
    show_status(state)
    return CLEAN


def show_status(state: Status) -> None:
    """Six lines for people."""
    coverage = state.coverage
    share = f" ({coverage.covered / coverage.eligible:.1%})" if coverage.eligible else ""
    eta = "not known" if state.eta_seconds is None else duration(state.eta_seconds)
    say(f"target     {state.target_model}")
    say(f"coverage   {coverage.covered} of {coverage.eligible} eligible postings{share}")
    say(f"           {coverage.stale} stale, {coverage.no_text} without text")
    say(f"queue      {state.depth} live, {state.leased} of them leased, {state.dead} dead")
    say(f"oldest     {duration(state.oldest_seconds)}")
    rate = "not known" if state.rate_per_hour is None else f"{state.rate_per_hour:.0f} postings an hour"
    say(f"rate       {rate}; time left {eta}")


@click.command(short_help="Print the status as Prometheus text.")
def metrics() -> int:
    """\b
    Example: freehire-embed metrics > /var/lib/node_exporter/freehire_embed.prom

    The figures of `status`, but for the postings without text, as Prometheus text for a textfile collector.
    """
    with opened(read_settings()) as (settings, database):
        model = identity_followed(settings, database)
        state = measure_status(database, model, settings.lease_seconds, no_text=False)
        for line in exposition(state, measure_totals(database)).splitlines():
            say(line)
    return CLEAN


@click.command(short_help="Say what a run would do, and why.")
@json_option
@setting_option("--model", "EMBED_MODEL", "Embedder identity to plan for; without it, the target.")
def plan(json: bool) -> int:
    """\b
    Example: freehire-embed plan --model intfloat/multilingual-e5-base-chunked-v2

    What a run would do now and why. Writes nothing and asks no server.
    """
    with opened(read_settings()) as (settings, database):
        profile = resolve_profile(settings, database)
        check_usable(database, profile)
        made = make_plan(database, profile)
        unindexed = vector_index.rebuild_pays(database, made.passages)
    if json:
        print_json({**asdict(made), "seconds": made.seconds, "drop_index": unindexed is not None})
        return CLEAN
    _show(made)
    if unindexed:
        say(f"index      {vector_index.ADVICE}")
    return CLEAN


def _show(made: Plan) -> None:
    time_needed = (
        "not known: less than a minute of work in the last hour"
        if made.seconds is None
        else f"about {duration(made.seconds)}"
    )
    say(f"model      {made.model}")
    say(f"embed      {made.missing} never embedded, {made.content} changed, {made.by_model} of another model")
    say(f"clear      {made.clear} closed, reposts or not tech any more")
    say(f"waiting    {made.queued} of these are queued already, {made.dead} are blocked by a dead letter")
    say(f"passages   about {made.passages} to embed")
    say(f"time       {time_needed}")
