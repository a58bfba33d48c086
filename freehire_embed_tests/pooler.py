"""A real PgBouncer in front of the test server, as most deployments have one: `pool_mode = transaction`.

All else is left at its default, `server_reset_query` included: it is not run in this mode, so whatever a client
leaves on a server connection is the next client's.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from freehire_embed.drill.checks import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_INSTALLED = (
    "PgBouncer is not installed (apt-get install pgbouncer): nothing is seen of how it works through a pooler"
)
_PORT = 6432


def find() -> str | None:
    """The program; Debian keeps it where only root looks."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def pooler(server: str, mode: str = "transaction") -> Iterator[str]:
    """The libpq URL of a PgBouncer in front of `server`, any database and any role of it."""
    program = find()
    assert program is not None
    upstream = conninfo_to_dict(server)
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer-", dir="/tmp"))
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"""[databases]
* = host={upstream["host"]} port={upstream["port"]} auth_user={upstream["user"]}
[pgbouncer]
pool_mode = {mode}
listen_port = {_PORT}
unix_socket_dir = {folder}
auth_type = trust
logfile = {folder / "log"}
max_client_conn = 500
"""
    )
    account = pwd.getpwnam("pgserver") if os.geteuid() == 0 else None  # it refuses to run as root, too
    if account:
        for path in (folder, config):
            os.chown(path, account.pw_uid, account.pw_gid)
    process = subprocess.Popen(
        [program, "-q", str(config)],
        stdin=subprocess.DEVNULL,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
    )
    url = make_conninfo(server, host=str(folder), port=_PORT)

    def answers() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        wait_until(answers, "PgBouncer answers")
        yield url
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)
