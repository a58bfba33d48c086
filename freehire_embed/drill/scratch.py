"""The ground a drill happens on: a database of its own, an invented catalogue, and looks into its tables."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psycopg
from psycopg import sql
from pydantic import SecretStr

from freehire_embed.chunks import passages
from freehire_embed.drill.checks import wait_until
from freehire_embed.drill.tei_exchange import vector_for
from freehire_embed.drill.wire import Wire
from freehire_embed.local import postgres
from freehire_embed.migrate import migrate
from freehire_embed.profiles import Profile
from freehire_embed.queries import query
from freehire_embed.store.backlog import count_claimable
from freehire_embed.store.database import Database
from freehire_embed.store.faults import DatabaseMisfit, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERVED = "example/drill"
WIDTH = 8
PROFILE = Profile("drill-v1", (SERVED,), WIDTH)
MARKER = "POISON"
LEASE_SECONDS = 5
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "SYSTEMROOT")


@dataclass(frozen=True, slots=True)
class Look:
    """Counts over the scratch database at one moment."""

    indexed: int
    """Postings whose stamp is the target and their current content."""
    queued: int
    """Live entries, leased ones included."""
    leased: int
    dead: int
    charged: int
    """Attempts of all entries."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """A migrated database that nobody else uses."""

    url: str
    database: Database
    folder: Path
    state: Path | None
    """The state folder of the embedded server; None = the server behind DATABASE_URL, which is not ours."""

    def begin(self, postings: int, *, poisoned: int | None = None) -> None:
        """Empties all tables and fills in so many postings, one of them with MARKER in its text if wanted."""
        self.database.execute("drill_empty")
        self.database.execute(
            "drill_fill", {"postings": postings, "poisoned": poisoned, "marker": f"{MARKER} of the drill"}
        )

    def look(self) -> Look:
        return Look(*self.database.rows("drill_look", {"model": PROFILE.identity})[0])

    def claimable(self) -> int:
        return count_claimable(
            self.database, PROFILE.identity, lease_seconds=LEASE_SECONDS, limit=1_000_000_000
        )

    def end_leases(self) -> None:
        """Spares the wait for every lease in the table to end."""
        self.database.execute("drill_end_leases")

    def fingerprint(self, *, but: int | None = None) -> str:
        """Differs after any write to any row, the rows of posting `but` left out."""
        return str(self.database.rows("drill_fingerprint", {"but": but})[0].fingerprint)

    def strangers(self) -> list[int]:
        """Postings that hold a vector which is not that of their text under the drill's model."""
        return strangers(self.database, PROFILE, SERVED)

    def environment(self, embed_url: str, **changes: str) -> dict[str, str]:
        """The variables of a worker on this database; waves of 10 postings and leases of 5 s unless changed."""
        profiles = self.folder / "profiles.toml"
        profiles.write_text(f'[profiles."{PROFILE.identity}"]\nserved = ["{SERVED}"]\nwidth = {WIDTH}\n')
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        return {
            **kept,
            "DATABASE_URL": self.url,
            "EMBED_URL": embed_url,
            "EMBED_MODEL": PROFILE.identity,
            "EMBED_PROFILES": str(profiles),
            "EMBED_BATCH_SIZE": "10",
            "EMBED_LEASE_SECONDS": str(LEASE_SECONDS),
            "EMBED_WARMUP_SECONDS": "0",
            "FREEHIRE_STATE": str(self.folder),
            **changes,
        }

    @contextmanager
    def interruption(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """A URL of this database, and a function that takes Postgres away from whoever uses that URL.

        The embedded server is restarted; of any other, which is not ours to restart, the connections are cut and
        refused for a second.
        """
        if self.state:
            yield self.url, self._restart
            return
        with Wire(self.url) as wire:

            def cut() -> None:
                with wire.refuse():
                    time.sleep(1)

            yield wire.url, cut

    def _restart(self) -> None:
        assert self.state is not None  # noqa: S101 - asked before
        pid_file = self.state / "postgres" / "postmaster.pid"
        # "fast": sessions are ended, transactions rolled back.
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGINT)
        wait_until(lambda: not pid_file.exists(), "the embedded server has stopped")
        postgres.start(self.state)


@contextmanager
def scratch(database_url: SecretStr | None) -> Iterator[Scratch]:
    """A scratch database beside `database_url`, or on an embedded server of its own; dropped at the end.

    Raises DatabaseDown or DatabaseMisfit when it cannot be created or migrated, SettingsError when there is
    neither a URL nor the extra `local`.
    """
    with tempfile.TemporaryDirectory(prefix="freehire-drill-") as name:
        folder = Path(name)
        state = None if database_url else folder
        server = database_url.get_secret_value() if database_url else postgres.start(folder)
        try:
            with (
                _created(server, f"freehire_drill_{os.getpid()}") as url,
                Database(SecretStr(url)) as database,
            ):
                migrate(database, WIDTH)
                yield Scratch(url, database, folder, state)
        finally:
            if state:
                postgres.release(state)


@contextmanager
def _created(server: str, name: str) -> Iterator[str]:
    Database(SecretStr(server)).close()  # a server that is down, or refuses us, is told in the usual words
    _run(server, "drill_create", name)
    try:
        yield psycopg.conninfo.make_conninfo(server, dbname=name)
    finally:
        _run(server, "drill_drop", name)


def _run(server: str, statement: str, name: str) -> None:
    try:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL(query(statement).decode()).format(name=sql.Identifier(name)))
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseMisfit(
            "DATABASE_URL: this role may not create a scratch database: use one with CREATEDB, or unset "
            "DATABASE_URL to drill on an embedded server"
        ) from error
    except psycopg.Error as error:
        raise translate(error) from error


def strangers(database: Database, profile: Profile, model: str) -> list[int]:
    """Ids of postings with a stored vector that is not the one `model` gives for their present text."""
    found = []
    for row in database.rows("drill_vectors"):
        stored = [np.array(text.strip("[]").split(","), dtype=np.float32) for text in row.embeddings]
        right = [
            vector_for(text, profile.width, model)
            for text in passages(row.title, row.company, row.description, profile)
        ]
        if len(stored) != len(right) or not all(map(np.allclose, stored, right)):
            found.append(row.id)
    return found
