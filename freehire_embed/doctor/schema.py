"""The tables: whose vectors they hold, who else works them, and what is on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freehire_embed import migrate
from freehire_embed.doctor.check import Check, faulty
from freehire_embed.profiles import load_profiles
from freehire_embed.settings import SettingsError
from freehire_embed.store import identities, indexes, inspection, vector_index
from freehire_embed.store.faults import DatabaseFault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehire_embed.profiles import Profile
    from freehire_embed.settings import Settings
    from freehire_embed.store.database import Database
    from freehire_embed.store.indexes import Index

# A wave's longest transaction takes seconds; dumps and forgotten sessions take hours.
_OLD_SNAPSHOT_SECONDS = 300


def check_schema(settings: Settings, database: Database, profile: Profile) -> Iterator[Check]:
    try:
        identities.check_usable(database, profile)
    except (SettingsError, DatabaseFault) as error:
        yield faulty("identity", error)
    else:
        target = identities.target(database, load_profiles(settings.profiles_path))
        found = f"{profile.identity}, {profile.width} wide"
        new = (
            ""
            if target == profile.identity
            else f"; the next run makes it the target (now {target or 'none'})"
        )
        yield Check("identity", True, found + new)
    yield from _writers(database)
    yield from _indexes(database)
    yield _trigger(database)
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
    hidden = inspection.hidden_by_policies(database)
    if hidden:
        found = f"row level security hides rows of {', '.join(hidden)} from this role"
        fix = "let the owner ALTER ROLE ... BYPASSRLS, or make a policy for this role USING (true)"
        yield Check("row security", False, found, fix)
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


def _writers(database: Database) -> Iterator[Check]:
    for writer in inspection.other_writers(database):
        found = f"{writer.rows} {writer.what} are of {writer.identity}: another writer works under it"
        fix = "stop that writer or give it this identity; `freehire-embed audit` finds what it wrote"
        yield Check("writers", False, found, fix)


def _indexes(database: Database) -> Iterator[Check]:
    """By what they are; names tell nothing."""
    found = inspection.present_indexes(database)
    vector_indexes = vector_index.look(database).valid
    complaints = [
        check
        for name in sorted(migrate.index_names())
        for check in _index(indexes.expected()[name], found, vector_indexes)
    ]
    yield from complaints
    useless = _useless(found)
    if useless:
        # somebody else's queries may need them
        told = (
            f"{', '.join(useless)} serve no query of ours and cost every write: drop what nobody else needs"
        )
        yield Check("indexes", True, told)
    if not complaints:
        yield Check("indexes", True, "all there and valid")


def _index(wanted: Index, found: list[Index], vector_indexes: tuple[str, ...]) -> Iterator[Check]:
    same = indexes.serving(wanted, found)
    valid = [index.name for index in same if index.valid]
    is_vector = wanted.name == vector_index.NAME
    if is_vector:
        valid = list(vector_indexes)  # an IVFFlat serves as well
    for index in same:
        if index.builder is not None:
            fix = "wait for it to end"
            yield Check("indexes", False, f"{index.name} is being built by pid {index.builder}", fix)
        elif not index.valid:
            fix = f"run `freehire-embed {'index build' if is_vector else 'migrate'}`, which builds it again"
            yield Check("indexes", False, f"{index.name} is invalid", fix)
    if len(valid) > 1:
        spare = next(name for name in reversed(valid) if name != wanted.name)
        found_twice = f"{', '.join(valid)} do the same, and each costs every write"
        yield Check("indexes", False, found_twice, f"DROP INDEX CONCURRENTLY {spare}")
    if not valid and not same:
        fix = "run `freehire-embed migrate`"
        if is_vector:
            fix = "run `freehire-embed index build`, unless a full re-embed goes on without it"
        wrong = any(index.name == wanted.name for index in found)
        what = "is another index than it should be" if wrong else "is missing"
        yield Check("indexes", False, f"{wanted.name} {what}", fix)


def _useless(found: list[Index]) -> list[str]:
    """Claim indexes in another order than a claim's, vector indexes of another distance or over some rows only."""
    wanted = indexes.expected()
    ours = (wanted["semantic_outbox_claim_idx"], wanted[vector_index.NAME])
    names = {index.name for each in ours for index in indexes.serving(each, found)} | {
        each.name for each in ours
    }
    return [
        index.name
        for index in found
        if index.name not in names and index.shape.startswith(("btree (job_posted_at", "hnsw (embedding"))
    ]


def _trigger(database: Database) -> Check:
    """One that fires, and fires once a statement."""
    triggers = inspection.triggers(database)
    firing = [trigger for trigger in triggers if trigger.enabled]
    if not firing:
        off = f": {triggers[0].name} is disabled" if triggers else ""
        found = f"no trigger on job_semantic_chunks wakes the search{off}"
        fix = (
            f"ALTER TABLE job_semantic_chunks ENABLE TRIGGER {triggers[0].name}"
            if triggers
            else "run `psql -f sql/migrations/0004_search_outbox.sql`, which makes it"
        )
        return Check("triggers", False, found, fix)
    waking = [trigger.name for trigger in firing if trigger.wakes]
    if len(waking) > 1:
        found = f"{', '.join(waking)} do the same on every insert of chunks"
        return Check("triggers", False, found, f"DROP TRIGGER {waking[-1]} ON job_semantic_chunks")
    if firing[0].per_row:
        found = f"{firing[0].name} fires for every row of job_semantic_chunks"
        return Check(
            "triggers", False, found, "drop it and run `psql -f sql/migrations/0004_search_outbox.sql`"
        )
    return Check("triggers", True, "inserts of chunks wake the search")
