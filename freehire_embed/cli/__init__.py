"""The command line: `freehire-embed COMMAND`. One small module a group of commands; `exits.py` rules exit codes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from freehire_embed.cli import (
    audit,
    dead,
    demo,
    doctor,
    drill,
    identities,
    importing,
    index,
    run,
    schema,
    search,
    serve,
    similar,
    status,
)
from freehire_embed.cli.exits import CLEAN, EXPECTED, FAILED, MISUSED, exit_code
from freehire_embed.cli.interrupts import interruptible
from freehire_embed.cli.output import configure_logging, say
from freehire_embed.cli.streams import sturdy_streams

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.group(
    context_settings={"auto_envvar_prefix": "FREEHIRE", "help_option_names": ["-h", "--help"]},
    commands=[
        demo.demo,
        schema.migrate,
        importing.import_files,
        status.plan,
        run.run,
        status.status,
        status.metrics,
        dead.dead,
        identities.models,
        index.index,
        search.search,
        similar.similar,
        audit.audit,
        serve.serve_tei,
        doctor.doctor,
        drill.drill,
    ],
)
@click.version_option(package_name="freehire_embed")
def commands() -> None:
    """\b
    Example: freehire-embed demo

    Keeps the vectors of a Postgres catalogue of job postings equal to its text. Settings come from the environment
    (docs/settings.md). Exit codes: 0 clean, 1 something failed or is down, 2 usage or configuration.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command in `arguments` (default: this process's) and exits with its code."""
    with sturdy_streams() as lost:
        configure_logging()
        code = _run(arguments)
        if reason := lost():
            _explain(f"standard output did not take all of the result: {reason}", FAILED)
            code = code or FAILED
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        # Whatever a command began, an embedded server for one, ends with it: no signal kills it outright.
        with interruptible():
            return commands.main(arguments, prog_name="freehire-embed", standalone_mode=False) or CLEAN
    except click.ClickException as error:
        return _explain(_usage(error), MISUSED)
    except EXPECTED as error:
        return _explain(str(error), exit_code(error))
    except (KeyboardInterrupt, click.Abort):
        return _explain("stopped", FAILED)


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message()
    # A group without a command is answered with its whole help.
    return f"{message} See: {context.command_path} --help" if context and "\n" not in message else message


def _explain(message: str, code: int) -> int:
    is_help = message.startswith("Usage:")
    for line in message.splitlines() if is_help else [f"freehire-embed: {' '.join(message.split())}"]:
        say(line, err=True)
    return code
