"""`postgres` and `tei`: where the queue and the server are; `lane`: the run that the ops of a job share."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import dagster as dg
from pydantic import Field, PrivateAttr, SecretStr

from freehire_embed.drain import close
from freehire_embed.local.defaults import with_database, with_embedder
from freehire_embed.migrate import migrate, pending
from freehire_embed.orchestration.lane import LEFT_TAG, Lane
from freehire_embed.profiles import Profile
from freehire_embed.run import open_run, resolve_profile
from freehire_embed.settings import Settings
from freehire_embed.store import identities
from freehire_embed.store.database import Database
from freehire_embed.store.outbox import Window


class Postgres(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The database of queue and vectors. Raises SettingsError, DatabaseDown or DatabaseMisfit when it starts."""

    database_url: str | None = Field(
        default=None, description="libpq URL; None = DATABASE_URL, and the embedded PostgreSQL without one."
    )
    _settings: Settings = PrivateAttr()
    _database: Database = PrivateAttr()

    @property
    def settings(self) -> Settings:
        """The environment's, with a DATABASE_URL filled in."""
        return self._settings

    @property
    def database(self) -> Database:
        return self._database

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["Postgres"]:  # noqa: ARG002
        settings = Settings.from_environment()
        if self.database_url:
            settings = replace(settings, database_url=SecretStr(self.database_url), local=False)
        self._settings = with_database(settings)
        if self._settings.database_url is None:
            raise RuntimeError("with_database left DATABASE_URL open")
        with Database(self._settings.database_url) as self._database:
            if self._settings.local:
                _migrate_embedded(self._settings, self._database)
            yield self

    def usable_profile(self) -> Profile:
        """The profile in force. Raises SettingsError when its identity is unknown or superseded."""
        profile = resolve_profile(self._settings, self._database)
        identities.check_usable(self._database, profile)
        return profile


class Tei(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The embedding server. Nothing is sent before a run is opened."""

    url: str | None = Field(
        default=None,
        description="Endpoint or root; None = EMBED_URL, and beside an embedded database the local model.",
    )
    api_key: str | None = Field(default=None, description="Bearer token; None = EMBED_API_KEY.")

    @contextmanager
    def serving(self, settings: Settings, url: str | None = None) -> Iterator[Settings]:
        """`settings` with the server filled in, `url` before all; a local model is served until the block ends."""
        settings = replace(
            settings,
            embed_url=url or self.url or settings.embed_url,
            api_key=SecretStr(self.api_key) if self.api_key else settings.api_key,
        )
        with with_embedder(settings) as served:
            yield served


def _migrate_embedded(settings: Settings, database: Database) -> None:
    """The embedded database has no operator who would run `freehire-embed migrate` first."""
    if pending(database):
        migrate(database, identities.vector_width(database) or resolve_profile(settings, None).width)


class Drain(dg.Config):
    """What one run works on, and for how long."""

    model: str = Field(
        default="",
        description="Embedder identity, for example intfloat/multilingual-e5-base-chunked-v1. A new one makes the "
        "whole catalogue stale, and the live runs work it off, too. Empty = EMBED_MODEL, or the target without it.",
    )
    embed_url: str = Field(
        default="", description="TEI endpoint or root for this run. Empty = that of the resource `tei`."
    )
    concurrency: int | None = Field(
        default=None, ge=1, description="Requests in flight, at most. Absent = EMBED_CONCURRENCY."
    )
    max_waves: int | None = Field(
        default=None,
        ge=1,
        description="Waves this run works at most. Absent = EMBED_WAVES_PER_RUN, or all of a month.",
    )
    max_minutes: int | None = Field(
        default=None,
        ge=1,
        description="No wave is begun after that, the next run goes on. Absent = 60, or a day for a month; keep it "
        "well below the run's max_runtime.",
    )


class LaneHolder(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Keeps the lane of a Dagster run: `enqueue` opens it, the other ops find it.

    It is closed and its claims are given back in every ending that reaches Python; what does not (kill -9) is left
    to the sensors in release.py.
    """

    postgres: dg.ResourceDependency[Postgres]
    tei: dg.ResourceDependency[Tei]
    _stack: ExitStack = PrivateAttr()
    _lane: Lane | None = PrivateAttr(default=None)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["LaneHolder"]:
        with ExitStack() as self._stack:
            yield self
            if self._lane and context.log and context.instance and context.run:
                # the last line of the run's events, where an operator looks first
                context.log.info(self._lane.summary())
                if self._lane.ended:
                    # what the last wave left may have been done by other lanes since
                    context.instance.add_run_tags(context.run.run_id, {LEFT_TAG: self._lane.left()})

    def open(self, run_id: str, drain: Drain, model: str, window: Window | None) -> Lane:
        """Settles the identity and proves the server before anything is written; raises like `open_run`."""
        given = self.postgres.settings
        settings = replace(
            given,
            model=model or given.model,
            concurrency=drain.concurrency or given.concurrency,
        )
        settings = self._stack.enter_context(self.tei.serving(settings, drain.embed_url.strip()))
        run = open_run(settings, self.postgres.database, run_id, window)
        self._stack.callback(close, run)
        waves, minutes = (settings.waves_per_run, 60) if window is None else (sys.maxsize, 24 * 60)
        self._lane = Lane(run, window, drain.max_waves or waves, 60 * (drain.max_minutes or minutes))
        return self._lane

    @property
    def current(self) -> Lane:
        if self._lane is None:
            raise dg.Failure("this run was not opened: launch the job from its first op, `enqueue`")
        return self._lane
