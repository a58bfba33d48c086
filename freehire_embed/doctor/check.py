"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass

from freehire_embed.settings import SettingsError
from freehire_embed.store.faults import DatabaseDown, DatabaseFault
from freehire_embed.tei import ServerFault, UpstreamFault

_FIXES: tuple[tuple[type[Exception], str], ...] = (
    (UpstreamFault, "start the server at EMBED_URL, or point EMBED_URL at one that runs"),
    (
        ServerFault,
        "point EMBED_URL at a server of the model wanted, or set EMBED_MODEL to what this one serves",
    ),
    (DatabaseDown, "start the server that DATABASE_URL names, or correct DATABASE_URL"),
    (DatabaseFault, "correct DATABASE_URL or what its database lacks"),
    (SettingsError, "correct the setting named there, or unset it"),
)


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `fix` says what to do and is empty when nothing is."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def faulty(name: str, error: Exception) -> Check:
    return Check(name, False, str(error), next(fix for kind, fix in _FIXES if isinstance(error, kind)))
