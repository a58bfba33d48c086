"""Is everything in place? Checks as data, each fault with its way out. Reads only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from freehire_embed import migrate
from freehire_embed.doctor.check import Check, faulty
from freehire_embed.doctor.database import check_database
from freehire_embed.doctor.environment import check_automation, check_names, check_values
from freehire_embed.doctor.schema import check_schema
from freehire_embed.local.defaults import with_database, with_embedder
from freehire_embed.profiles import load_profiles
from freehire_embed.run import make_embedder, resolve_profile
from freehire_embed.settings import SettingsError
from freehire_embed.store import identities
from freehire_embed.store.database import Database
from freehire_embed.store.faults import DatabaseFault
from freehire_embed.tei import ServerFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from freehire_embed.profiles import Profile
    from freehire_embed.settings import Settings

__all__ = ["Check", "diagnose"]


def diagnose(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Checks `settings` and everything they name, as it goes; what cannot be looked at is left out."""
    yield from check_values(environment)
    yield from check_names(environment)
    yield from check_automation(settings, environment)
    try:
        load_profiles(settings.profiles_path)
        settings = with_database(settings)
        assert settings.database_url is not None  # noqa: S101 - just filled in
        database = Database(settings.database_url)
    except SettingsError as error:
        yield faulty("settings", error)
        return
    except DatabaseFault as error:
        yield faulty("database", error)
        return
    with database:
        profile = None
        try:
            yield from check_database(database)
            if migrate.IDENTITIES in migrate.pending(database):
                profile = resolve_profile(settings, None)
            else:
                profile = resolve_profile(settings, database)
                yield from check_schema(settings, database, profile)
        except (SettingsError, DatabaseFault) as error:
            yield faulty("database" if isinstance(error, DatabaseFault) else "settings", error)
        if profile is not None:
            yield from _server(settings, database, profile)


def _server(settings: Settings, database: Database, profile: Profile) -> Iterator[Check]:
    """The handshake of a run, without waiting for a server that is starting."""
    try:
        reference = identities.check_usable(database, profile)
    except (SettingsError, DatabaseFault):
        reference = None  # told above
    try:
        with (
            with_embedder(replace(settings, warmup_seconds=0)) as settings,
            make_embedder(settings, profile) as embedder,
        ):
            embedder.preflight(reference)
            p50 = embedder.stats.latency_p50_seconds
        where = "the local model server" if settings.local else "EMBED_URL"
        yield Check("server", True, f"{where} serves {profile.served[0]}; the probe took {p50 * 1000:.0f} ms")
    except (ServerFault, SettingsError) as error:
        yield faulty("server", error)
