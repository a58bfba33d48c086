"""`migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from freehire_embed.cli.exits import CLEAN
from freehire_embed.cli.options import opened, option, read_settings
from freehire_embed.cli.output import note, say
from freehire_embed.migrate import IDENTITIES, pending
from freehire_embed.migrate import migrate as apply
from freehire_embed.run import resolve_profile

if TYPE_CHECKING:
    from freehire_embed.settings import Settings
    from freehire_embed.store.database import Database


@click.command(short_help="Bring the schema up to date.")
@option(
    "--width",
    type=click.IntRange(1),
    help="Width of the vectors; without it, that of the identity in force (EMBED_MODEL).",
)
def migrate(width: int | None) -> int:
    """\b
    Example: freehire-embed migrate

    Brings the schema up to date, on an empty database or an existing freehire one. Safe to repeat.
    """
    with opened(read_settings()) as (settings, database):
        width = width or width_in_force(settings, database)
        applied = apply(database, width, report=lambda name: note(f"applying {name}"))
    say(f"{len(applied)} migrations applied" if applied else "nothing to do: the schema is up to date")
    return CLEAN


def width_in_force(settings: Settings, database: Database) -> int:
    """Of EMBED_MODEL, else of the target, which a database without our tables does not have."""
    known = None if IDENTITIES in pending(database) else database
    return resolve_profile(settings, known).width
