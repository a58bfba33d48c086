"""Fills in what the environment left open: the embedded Postgres and the local model server."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import SecretStr

from freehire_embed.local import model_server, postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehire_embed.settings import Settings


def with_database(settings: Settings) -> Settings:
    """`settings` with a DATABASE_URL; starts the embedded server when none was given.

    Raises SettingsError that says how, when the extra `local` is not installed.
    """
    if settings.database_url is not None:
        return settings
    return replace(settings, database_url=SecretStr(postgres.start(settings.state_dir)))


@contextmanager
def with_embedder(settings: Settings) -> Iterator[Settings]:
    """`settings` with an EMBED_URL; beside an embedded database this process serves the local model meanwhile."""
    with ExitStack() as stack:
        if settings.embed_url is None and settings.local:
            settings = replace(settings, embed_url=stack.enter_context(model_server.running()))
        yield settings
