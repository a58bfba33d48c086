"""Is everything in place? Checks as data, each fault with its way out. Reads only."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from freehire_embed import migrate
from freehire_embed.local.defaults import with_database, with_embedder
from freehire_embed.profiles import load_profiles
from freehire_embed.run import make_embedder, resolve_profile
from freehire_embed.settings import FALSE_WORDS, RULES, TRUE_WORDS, VARIABLES, SettingsError
from freehire_embed.store import identities, inspection, vector_index
from freehire_embed.store.database import Database
from freehire_embed.store.faults import DatabaseDown, DatabaseFault
from freehire_embed.tei import ServerFault, UpstreamFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from freehire_embed.profiles import Profile
    from freehire_embed.settings import Settings

_POSTGRES = 150_000
_PGVECTOR = (0, 7)
# A wave's longest transaction takes seconds; dumps and forgotten sessions take hours.
_OLD_SNAPSHOT_SECONDS = 300
# Dagster's own tolerance for a daemon that does not beat.
_DAEMON_SEEN_SECONDS = 300
_PSYCOPG2 = "postgresql+psycopg2://"

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


def diagnose(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Checks `settings` and everything they name, as it goes; what cannot be looked at is left out."""
    yield from _values(environment)
    yield from _unknown_variables(environment)
    yield from _automation(settings, environment)
    try:
        load_profiles(settings.profiles_path)
        settings = with_database(settings)
        assert settings.database_url is not None  # noqa: S101 - just filled in
        database = Database(settings.database_url)
    except SettingsError as error:
        yield _faulty("settings", error)
        return
    except DatabaseFault as error:
        yield _faulty("database", error)
        return
    with database:
        profile = None
        try:
            yield from _database(database)
            if migrate.IDENTITIES in migrate.pending(database):
                profile = resolve_profile(settings, None)
            else:
                profile = resolve_profile(settings, database)
                yield from _schema(database, profile)
        except (SettingsError, DatabaseFault) as error:
            yield _faulty("database" if isinstance(error, DatabaseFault) else "settings", error)
        if profile is not None:
            yield from _server(settings, database, profile)


def _values(environment: Mapping[str, str]) -> Iterator[Check]:
    for rule in RULES.values():
        given = environment.get(rule.variable, "").strip()
        if not given:
            continue
        try:
            number = int(given)
        except ValueError:
            found = f"{rule.variable}={given!r} is not a whole number; {rule.default} is used"
            yield Check("settings", False, found, f"set {rule.variable} to a whole number, or unset it")
            continue
        if number < rule.floor:
            found = f"{rule.variable}={number} is below the floor; {rule.floor} is used: {rule.why}"
        elif number > rule.ceiling:
            found = f"{rule.variable}={number} is above the ceiling; {rule.ceiling} is used"
        else:
            found = f"{rule.variable}={number}"
        yield Check("settings", True, found)
    for variable in ("EMBED_VERIFY_MODEL", "EMBED_ADAPTIVE"):
        word = environment.get(variable, "").strip()
        if word and word.lower() not in (*TRUE_WORDS, *FALSE_WORDS):
            found = f"{variable}={word!r} is neither true nor false; true is used"
            yield Check("settings", False, found, f"set {variable} to true or false, or unset it")


def _unknown_variables(environment: Mapping[str, str]) -> Iterator[Check]:
    for variable in sorted(environment):
        if variable.startswith("EMBED_") and variable not in VARIABLES:
            near = difflib.get_close_matches(variable, VARIABLES, 1)
            fix = f"did you mean {near[0]}?" if near else "unset it, or see docs/settings.md"
            yield Check("settings", False, f"{variable} is no setting", fix)


def _automation(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Only where Dagster is in use: who runs the pipeline from cron has no instance."""
    configured = bool(environment.get("DAGSTER_HOME"))
    if not configured and not (settings.state_dir / "dagster").is_dir():
        return
    # Dagster takes two seconds to import.
    from freehire_embed.orchestration.inspection import InstanceUnreadable, inspect_automation

    try:
        automation = inspect_automation()
    except InstanceUnreadable as error:
        history = environment.get("DAGSTER_POSTGRES_URL", "")
        if history and not history.startswith(_PSYCOPG2):
            found = "DAGSTER_POSTGRES_URL does not name the driver that Dagster needs"
            yield Check("dagster", False, found, f"let it begin with {_PSYCOPG2}")
            return
        fix = "correct DAGSTER_HOME, its dagster.yaml or DAGSTER_POSTGRES_URL, or start the database named there"
        yield Check("dagster", False, f"the instance cannot be opened: {error}", fix)
        return
    for name in automation.stopped:
        yield Check("dagster", False, f"{name} is switched off", "switch it on in the UI under Automation")
    seconds = automation.daemon_seconds
    if seconds is not None and seconds < _DAEMON_SEEN_SECONDS:
        yield Check("dagster", True, "the daemon is alive")
    elif configured:
        seen = "was never seen" if seconds is None else f"was last seen {seconds / 60:.0f} min ago"
        fix = "start dagster-daemon with this DAGSTER_HOME; without it no schedule or sensor runs"
        yield Check("dagster", False, f"the daemon {seen}", fix)
    else:
        yield Check("dagster", True, "no daemon runs now; `make ui` starts one")


def _database(database: Database) -> Iterator[Check]:
    server = inspection.server(database)
    recent = server.version_number >= _POSTGRES
    yield Check(
        "database", recent, f"PostgreSQL {server.version}", "" if recent else "upgrade to 15 or newer"
    )
    if server.pgvector is None:
        yield Check(
            "pgvector", False, "not installed in this database", "run `freehire-embed migrate` as its owner"
        )
    else:
        recent = server.pgvector >= _PGVECTOR
        fix = "" if recent else "upgrade the package to 0.7 or newer, then run ALTER EXTENSION vector UPDATE"
        yield Check("pgvector", recent, ".".join(map(str, server.pgvector)), fix)
    pending = migrate.pending(database)
    if pending:
        yield Check(
            "migrations", False, f"{len(pending)} pending: {pending[0]} …", "run `freehire-embed migrate`"
        )
    else:
        yield Check("migrations", True, "none pending")


def _schema(database: Database, profile: Profile) -> Iterator[Check]:
    try:
        identities.check_usable(database, profile)
    except (SettingsError, DatabaseFault) as error:
        yield _faulty("identity", error)
    else:
        target = identities.target(database)
        found = f"{profile.identity}, {profile.width} wide"
        new = (
            ""
            if target == profile.identity
            else f"; the next run makes it the target (now {target or 'none'})"
        )
        yield Check("identity", True, found + new)
    yield from _indexes(database)
    if inspection.vectors_in_rows(database):
        yield Check("storage", True, "the vectors lie in their rows (PLAIN)")
    else:
        # an existing table stays as it is, and nothing is wrong with it
        found = (
            "the vectors lie out of line: it works, PLAIN takes a tenth off each commit (docs/performance.md)"
        )
        yield Check("storage", True, found)
    lacking = inspection.lacking_privileges(database)
    yield Check(
        "privileges",
        not lacking,
        f"this role lacks {', '.join(lacking)}" if lacking else "all that a run needs",
        "let the owner run sql/least_privilege.sql and make this role a member" if lacking else "",
    )
    snapshots = inspection.old_snapshots(database, _OLD_SNAPSHOT_SECONDS)
    for snapshot in snapshots:
        found = (
            f"{snapshot.what} of {snapshot.who} ({snapshot.handle}) is {snapshot.seconds / 60:.0f} min old"
        )
        yield Check(
            "snapshots",
            False,
            f"{found}: it slows every claim",
            "end it, with pg_terminate_backend if need be",
        )
    if not snapshots:
        yield Check("snapshots", True, "no transaction older than 5 min")


def _indexes(database: Database) -> Iterator[Check]:
    migration = migrate.index_names()
    broken = inspection.broken_indexes(database, migration)
    if vector_index.look(database).valid:
        broken.pop(vector_index.NAME, None)  # an existing database may have one under a name of its own
    pending = migrate.pending(database)
    for name, missing in broken.items():
        if missing:
            if migration[name] in pending:
                fix = "run `freehire-embed migrate`"
            elif name == vector_index.NAME:
                fix = "run `freehire-embed index build`, unless a full re-embed goes on without it"
            else:
                fix = f"run `psql -f sql/migrations/{migration[name]}.sql`"
            yield Check("indexes", False, f"{name} is missing", fix)
        else:
            yield Check(
                "indexes", False, f"{name} is invalid", "run `freehire-embed migrate`, which builds it again"
            )
    if not broken:
        yield Check("indexes", True, "all there and valid")


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
        yield _faulty("server", error)


def _faulty(name: str, error: Exception) -> Check:
    return Check(name, False, str(error), next(fix for kind, fix in _FIXES if isinstance(error, kind)))
