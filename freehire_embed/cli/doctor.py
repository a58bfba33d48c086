"""`doctor`: is everything in place?"""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from freehire_embed.cli.exits import CLEAN, FAILED
from freehire_embed.cli.options import json_option, read_settings
from freehire_embed.cli.output import print_json, say
from freehire_embed.doctor import diagnose


@click.command(short_help="Check everything a run needs.")
@json_option
def doctor(json: bool) -> int:
    """\b
    Example: freehire-embed doctor

    Checks settings, database, schema, identity and embedding server, and says for each fault what to do.
    Exit code 1 when something is wrong. Changes nothing.
    """
    checks = []
    for check in diagnose(read_settings(), os.environ):
        checks.append(check)
        if not json:
            say(f"{'ok   ' if check.ok else 'WRONG'}  {check.name}: {check.found}")
            if check.fix:
                say(f"       fix: {check.fix}")
    if json:
        print_json([asdict(check) for check in checks])
    return CLEAN if all(check.ok for check in checks) else FAILED
