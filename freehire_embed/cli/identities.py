"""`models list` and `models promote`."""

from __future__ import annotations

from dataclasses import asdict

import click

from freehire_embed.cli.exits import CLEAN
from freehire_embed.cli.options import json_option, opened, read_settings
from freehire_embed.cli.output import print_json, say
from freehire_embed.store.identities import list_identities, promote_known


@click.group(short_help="List embedder identities or go back to one.")
def models() -> None:
    """\b
    Example: freehire-embed models list

    The embedder identities of this database. The target is the newest promoted one; a new identity becomes the
    target by a `run` with EMBED_MODEL set to it.
    """


@models.command("list", short_help="Show all identities, the target first.")
@json_option
def list_models(json: bool) -> int:
    """\b
    Example: freehire-embed models list --json

    The identities this database has been embedded with, the target first.
    """
    with opened(read_settings()) as (_, database):
        known = list_identities(database)
    if json:
        print_json([{**asdict(each), "target": each is known[0]} for each in known])
        return CLEAN
    if not known:
        say("no identity yet: the first `freehire-embed run` promotes one")
    for each in known:
        mark = "target" if each is known[0] else "      "
        say(
            f"{mark}  {each.identity}  width {each.width}  postings {each.stamped}  "
            f"promoted {each.promoted_at:%Y-%m-%d %H:%M %Z}"
        )
    return CLEAN


@models.command(short_help="Make a known identity the target again.")
@click.argument("identity")
def promote(identity: str) -> int:
    """\b
    Example: freehire-embed models promote intfloat/multilingual-e5-base-chunked-v1

    Goes back to an identity that was the target before. What other identities embedded becomes stale.
    """
    with opened(read_settings()) as (_, database):
        promote_known(database, identity)
    say(f"target is now {identity}")
    return CLEAN
