"""`search`: a question in words, answered by the stored vectors."""

from __future__ import annotations

import logging
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from freehire_embed.cli.exits import CLEAN
from freehire_embed.cli.options import json_option, opened, option, read_settings
from freehire_embed.cli.output import print_json
from freehire_embed.local.defaults import with_embedder
from freehire_embed.run import make_embedder, resolve_profile
from freehire_embed.store.identities import check_usable, target
from freehire_embed.store.search import find_nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.settings import Settings
    from freehire_embed.store.database import Database
    from freehire_embed.store.search import Hit

logger = logging.getLogger(__name__)


@click.command(short_help="Find the postings nearest to a text.")
@click.argument("text", nargs=-1, required=True)
@option("--limit", default=10, show_default=True, type=click.IntRange(1, 500), help="Postings to show.")
@json_option
def search(text: tuple[str, ...], limit: int, json: bool) -> int:
    """\b
    Example: freehire-embed search "remote Rust work on databases" --limit 5

    The open, public postings nearest to TEXT, one line a posting.
    """
    with opened(read_settings()) as (settings, database), with_embedder(settings) as settings:
        hits = answer(settings, database, " ".join(text), limit)
    if json:
        print_json([asdict(hit) for hit in hits])
    else:
        show(hits)
    return CLEAN


def answer(settings: Settings, database: Database, text: str, limit: int) -> list[Hit]:
    """Embeds `text` under the target and looks up its neighbours.

    The server has to prove first that it serves the target: a query vector of another model would find nonsense.
    [] where nothing was ever embedded. Raises what `check_usable` and the embedder raise.
    """
    if target(database) is None:
        return []
    profile = resolve_profile(replace(settings, model=None), database)
    if settings.model and settings.model != profile.identity:
        logger.warning("EMBED_MODEL is %s; searching the target %s", settings.model, profile.identity)
    reference = check_usable(database, profile)
    with make_embedder(replace(settings, warmup_seconds=0), profile) as embedder:
        embedder.preflight(reference)
        return find_nearest(database, profile, embedder.embed_query(text), limit)


def show(hits: Sequence[Hit]) -> None:
    """One line a posting and its snippet below."""
    if not hits:
        click.echo("nothing found: is anything embedded yet? See `freehire-embed status`")
    for number, hit in enumerate(hits, 1):
        at = f" at {hit.company}" if hit.company else ""
        click.echo(f"{number:3}. {hit.title}{at}  (distance {hit.distance:.3f})  {hit.url}")
        click.echo(f"     {hit.snippet}")
