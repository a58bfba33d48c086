"""The server, and the way to it: what would end, refuse or hide anything that a run does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freehire_embed import migrate
from freehire_embed.doctor.check import Check
from freehire_embed.store import inspection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehire_embed.store.database import Database

_POSTGRES = 150_000
_PGVECTOR = (0, 7)
# The first enqueue of 490,000 postings took 9.2 s (docs/performance.md); twice that for a server that is busy.
_ENQUEUE_SECONDS = 2 * 9.2 / 490_000
# A claim or the commit of a wave that has to wait for a writer.
_LEAST_SECONDS = 30


def check_database(database: Database) -> Iterator[Check]:
    """Needs no table of ours."""
    yield from _versions(database)
    yield _writable(database)
    yield from _limits(database)
    pending = migrate.pending(database)
    if pending:
        yield Check(
            "migrations", False, f"{len(pending)} pending: {pending[0]} …", "run `freehire-embed migrate`"
        )
    else:
        yield Check("migrations", True, "none pending")


def _versions(database: Database) -> Iterator[Check]:
    server = inspection.server(database)
    recent = server.version_number >= _POSTGRES
    yield Check(
        "database", recent, f"PostgreSQL {server.version}", "" if recent else "upgrade to 15 or newer"
    )
    if server.pgvector is None:
        yield Check(
            "pgvector", False, "not installed in this database", "run `freehire-embed migrate` as its owner"
        )
        return
    version = ".".join(map(str, server.pgvector))
    if not server.pgvector_usable:
        found = f"{version} lies in the schema {server.pgvector_schema}, which this role may not use"
        yield Check("pgvector", False, found, f"GRANT USAGE ON SCHEMA {server.pgvector_schema} to this role")
        return
    recent = server.pgvector >= _PGVECTOR
    fix = "" if recent else "upgrade the package to 0.7 or newer, then run ALTER EXTENSION vector UPDATE"
    yield Check("pgvector", recent, version, fix)


def _writable(database: Database) -> Check:
    because = inspection.read_only(database)
    if because is None:
        return Check("writing", True, "the database can be written to")
    fix = "let DATABASE_URL name the primary, or take the setting back"
    return Check("writing", False, f"the database is read-only: {because}", fix)


def _limits(database: Database) -> Iterator[Check]:
    """Settings that are right for a web application end what takes long by nature."""
    limits = inspection.limits(database)
    pooled = inspection.is_pooled(database)
    if pooled and limits:
        fix = f"run `migrate` and `index build` past the pooler, or undo it ({limits[0].by})"
        found = (
            f"through a pooler, and {limits[0]}: the build of an index takes longer, and cannot lift it there"
        )
        yield Check("pooler", False, found, fix)
    elif pooled:
        yield Check("pooler", True, "through a pooler; nothing of ours needs a session")
    needed = max(_LEAST_SECONDS, inspection.postings(database) * _ENQUEUE_SECONDS)
    for limit in limits:
        if limit.seconds is not None and limit.seconds < needed:
            found = f"{limit}: to queue the whole catalogue takes {needed:.0f} s or so, and goes on in small parts"
            yield Check(limit.name, False, found, f"give this role {needed:.0f}s or 0 ({limit.by})")
