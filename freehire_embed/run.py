"""One run, opened: the identity is settled, the server has proved itself, the queue is bound to the run's name.

`drain.py` works a run from cron, `orchestration/` works it as a Dagster lane; both open it here, so both refuse the
same things before anything is enqueued, claimed or written.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from freehire_embed.profiles import DEFAULT_IDENTITY, LOCAL_IDENTITY, find_profile, load_profiles
from freehire_embed.settings import DEFAULT_EMBED_URL
from freehire_embed.store import identities, vector_index
from freehire_embed.store.outbox import SemanticOutbox, Window
from freehire_embed.store.runs import RunRecord
from freehire_embed.tei import TeiEmbedder

if TYPE_CHECKING:
    from freehire_embed.profiles import Profile
    from freehire_embed.settings import Settings
    from freehire_embed.store.database import Database

logger = logging.getLogger(__name__)


def resolve_profile(settings: Settings, database: Database | None) -> Profile:
    """The profile in force: EMBED_MODEL, else the database's target, else the default of a new database."""
    profiles = load_profiles(settings.profiles_path)
    identity = settings.model
    default = LOCAL_IDENTITY if settings.local else DEFAULT_IDENTITY
    if identity is None and database is not None:
        identity = identities.target(database, profiles)
        if identity is None and (stamped := identities.stamped(database)):
            _say_unknown(stamped[0], default)
    return find_profile(identity or default, profiles)


def followed_identity(settings: Settings, database: Database) -> str:
    """The identity in force in the database, whatever EMBED_MODEL says; before there is one, what would be."""
    profiles = load_profiles(settings.profiles_path)
    return identities.target(database, profiles) or resolve_profile(settings, None).identity


@cache
def _say_unknown(stamp: str, default: str) -> None:
    """Once: several parts of a run ask for the profile."""
    logger.warning(
        "the postings are stamped %s, which no profile describes; going on under %s. If that is not meant, set "
        "EMBED_MODEL and declare the other in EMBED_PROFILES",
        stamp,
        default,
    )


def make_embedder(settings: Settings, profile: Profile, *, rows_per_request: int = 31) -> TeiEmbedder:
    """A client of the server at EMBED_URL for `profile`; nothing is sent yet."""
    return TeiEmbedder(
        url=settings.embed_url or DEFAULT_EMBED_URL,
        api=settings.api,
        api_key=settings.api_key,
        profile=profile,
        concurrency=settings.concurrency,
        adaptive=settings.adaptive,
        attempt_timeout_seconds=settings.attempt_timeout_seconds,
        warmup_seconds=settings.warmup_seconds,
        verify_model=settings.verify_model,
        rows_per_request=rows_per_request,
    )


@dataclass(frozen=True, slots=True)
class Run:
    """The parts of an open run. Close it by leaving its `with` block: whatever it still holds is given back."""

    run_id: str
    settings: Settings
    profile: Profile
    database: Database
    embedder: TeiEmbedder
    outbox: SemanticOutbox
    record: RunRecord
    promoted: bool
    """This run made its identity the target."""

    @property
    def call_timeout_seconds(self) -> float | None:
        return self.settings.call_timeout_seconds or None

    def close(self) -> int:
        """Gives back every claim, notes the end, closes the client (not the database, which the caller owns).

        Returns how many entries were given back.
        """
        try:
            self.embedder.close()
        finally:
            released = self.outbox.release_run()
            if released:
                logger.info("gave back %d entries that were not finished", released)
            self.record.finish()
        return released


def open_run(settings: Settings, database: Database, run_id: str, window: Window | None = None) -> Run:
    """Settles the identity, proves the server, promotes a new identity, and binds the queue to `run_id`.

    Raises SettingsError, ConfigFault or DatabaseMisfit (exit code 2), UpstreamFault or DatabaseDown (1); then
    nothing was promoted, enqueued, claimed or written.
    """
    profile = resolve_profile(settings, database)
    reference = identities.check_usable(database, profile)
    embedder = make_embedder(settings, profile)
    try:
        probe = embedder.preflight(reference)
        promoted = identities.promote_proven(database, profile, probe)
        outbox = SemanticOutbox(
            database,
            run_id=run_id,
            model=profile.identity,
            lease_seconds=settings.lease_seconds,
            max_attempts=settings.max_attempts,
            upstream_grace_days=settings.upstream_grace_days,
            window=window,
        )
        record = RunRecord(database, run_id, profile.identity)
        if promoted:
            logger.info("target is now %s", profile.identity)
            state = vector_index.look(database)
            if state.valid and state.rows:
                logger.info("everything is embedded anew: %s", vector_index.ADVICE)
    except BaseException:
        embedder.close()
        raise
    return Run(run_id, settings, profile, database, embedder, outbox, record, promoted)
