"""`demo`: everything once, on a machine that has nothing."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import click

from freehire_embed.cli.exits import CLEAN, FAILED
from freehire_embed.cli.importing import load
from freehire_embed.cli.options import opened, read_settings
from freehire_embed.cli.output import progress, say
from freehire_embed.cli.schema import width_in_force
from freehire_embed.cli.search import answer, show
from freehire_embed.cli.status import show_status
from freehire_embed.local import POSTINGS
from freehire_embed.local.defaults import with_embedder
from freehire_embed.migrate import migrate
from freehire_embed.run import resolve_profile
from freehire_embed.settings import SettingsError
from freehire_embed.store.coverage import measure_status

if TYPE_CHECKING:
    from freehire_embed.settings import Settings
    from freehire_embed.store.database import Database

# Small enough that 65 postings make several waves to look at in the UI.
_BATCH_SIZE = "16"
_QUESTIONS = ("protect networks against attackers", "programar robots y drones")


@click.command(short_help="Run everything once on an embedded database and model.")
def demo() -> int:
    """\b
    Example: freehire-embed demo

    Starts the embedded Postgres and the local model, migrates, loads the bundled postings, runs embed_job through
    Dagster, and answers two searches. Safe to repeat: what is embedded already is not embedded again.
    """
    settings = read_settings()
    if not settings.local:
        raise SettingsError(
            "DATABASE_URL is set, and demo would put its invented postings into that database: unset it for the "
            "demo (env -u DATABASE_URL make demo)"
        )
    os.environ.setdefault("EMBED_BATCH_SIZE", _BATCH_SIZE)
    with opened(settings) as (settings, database):
        _headline(f"1. The database: embedded PostgreSQL under {settings.state_dir}")
        applied = migrate(database, width_in_force(settings, database))
        say(f"{len(applied)} migrations applied" if applied else "the schema is up to date")
        _headline("2. The postings")
        with progress("postings", log_every_seconds=10) as advance:
            say(load(database, [POSTINGS], advance=advance).line)
        _headline("3. embed_job through Dagster: enqueue -> claim -> chunk -> embed -> commit")
        succeeded = _run_job()
        _headline("4. What is there now")
        show_status(
            measure_status(database, resolve_profile(settings, database).identity, settings.lease_seconds)
        )
        if not succeeded:
            say()
            say("The run failed; `make ui` shows where, `freehire-embed doctor` looks for the cause.")
            return FAILED
        _search(settings, database)
    _headline("Next")
    say("make ui                                         the Dagster UI on the same database")
    say('.venv/bin/freehire-embed search "…" --limit 5   your own question, in any language')
    return CLEAN


def _headline(text: str) -> None:
    say()
    say(text, bold=True)


def _run_job() -> bool:
    """Executes embed_job on the instance that the UI shows."""
    # Dagster takes two seconds to import; no other command needs it.
    from freehire_embed.definitions import defs
    from freehire_embed.orchestration.instance import open_instance

    # Dagster repeats our own messages among the run's.
    logging.getLogger("freehire_embed").propagate = False
    with open_instance() as instance:
        result = defs.resolve_job_def("embed_job").execute_in_process(
            instance=instance,
            run_config={"loggers": {"console": {"config": {"log_level": "INFO"}}}},
            # The pages of a job list only runs that carry it, as those launched through a code server do.
            tags={".dagster/repository": "__repository__@freehire_embed"},
            raise_on_error=False,
        )
    say(f"run {result.run_id}: {'succeeded' if result.success else 'FAILED'}")
    return result.success


def _search(settings: Settings, database: Database) -> None:
    with with_embedder(settings) as settings:
        for number, question in enumerate(_QUESTIONS, 5):
            _headline(f"{number}. search: {question}")
            show(answer(settings, database, question, 3))
