"""Which embedder identity a database is meant to have, and who may embed under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from freehire_embed.settings import SettingsError
from freehire_embed.store.database import execute, fetch
from freehire_embed.store.faults import DatabaseMisfit

if TYPE_CHECKING:
    from collections.abc import Container
    from datetime import datetime

    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.store.database import Connection, Database


@dataclass(frozen=True, slots=True)
class Identity:
    """A remembered identity; `stamped` postings carry it (None = not counted)."""

    identity: str
    width: int
    promoted_at: datetime
    stamped: int | None = None


def target(database: Database, known: Container[str]) -> str | None:
    """The newest promoted identity; on a database embedded before there was one, the commonest stamp that is known.

    None where there is neither, also under a stamp that no profile describes: nobody could tell its vectors' rules.
    """
    promoted = database.rows("models_target")
    if promoted:
        return str(promoted[0].identity)
    return next((identity for identity in stamped(database) if identity in known), None)


def stamped(database: Database) -> list[str]:
    """The identities that postings are stamped with, the commonest first."""
    return [row.identity for row in database.rows("models_stamped")]


def list_identities(database: Database) -> list[Identity]:
    """All remembered identities, the target first."""
    return [
        Identity(row.identity, row.width, row.promoted_at, row.stamped)
        for row in database.rows("models_list")
    ]


def check_usable(database: Database, profile: Profile) -> Vector | None:
    """Refuses an identity that must not embed now; returns the probe vector remembered for it, if any.

    Raises SettingsError for a superseded identity and DatabaseMisfit when the vector column has another width.
    """
    width = vector_width(database)
    if width is None:
        raise DatabaseMisfit("the table job_semantic_chunks is not there: run `freehire-embed migrate`")
    if width != profile.width:
        raise DatabaseMisfit(
            f"job_semantic_chunks.embedding is {width} wide and {profile.identity} makes {profile.width}: "
            "set EMBED_MODEL to an identity of that width, or use another database"
        )
    known = database.rows("models_find", {"identity": profile.identity})
    newest = database.rows("models_target")
    if known and newest[0].identity != profile.identity:
        raise SettingsError(
            f"EMBED_MODEL: {profile.identity} is superseded; target is {newest[0].identity} since "
            f"{newest[0].promoted_at:%Y-%m-%d %H:%M %Z}. Unset EMBED_MODEL to follow the target, or run "
            f"`freehire-embed models promote {profile.identity}` to go back."
        )
    probe = known[0].probe if known else None
    return None if probe is None else np.array(probe, dtype=np.float32)


def promote_proven(database: Database, profile: Profile, probe: Vector) -> bool:
    """Makes a new identity the target once its server has proved itself; True when it was new."""
    parameters = {"identity": profile.identity, "probe": probe.tolist()}
    width = {"width": profile.width}

    def promote(connection: Connection) -> bool:
        fetch(connection, "models_lock")
        if fetch(connection, "models_find", {"identity": profile.identity}):
            execute(connection, "models_remember_probe", parameters)
            return False
        execute(connection, "models_promote", {**parameters, **width})
        execute(connection, "models_adopt_stamped", width)
        return True

    return database.transact(promote)


def promote_known(database: Database, identity: str) -> None:
    """Goes back to an identity on purpose. Raises SettingsError when it was never the target."""
    known = database.rows("models_find", {"identity": identity})
    if not known:
        names = ", ".join(row.identity for row in list_identities(database)) or "none yet"
        raise SettingsError(
            f"unknown identity {identity!r}; known are: {names}. A new one becomes the target by running with "
            "EMBED_MODEL set to it."
        )
    database.execute("models_promote", {"identity": identity, "width": known[0].width, "probe": None})


def vector_width(database: Database) -> int | None:
    """Width of job_semantic_chunks.embedding; None when the table is not there."""
    rows = database.rows("vector_width")
    return rows[0].width if rows else None
