"""A command that is told to stop takes the embedded server with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMAND = [sys.executable, "-m", "freehire_embed"]


@pytest.fixture
def state() -> Iterator[Path]:
    # Not pytest's folder: the embedded server has its user, who may not pass through there.
    folder = Path(tempfile.mkdtemp(prefix="freehire-stop-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_an_import_that_is_terminated_leaves_no_server_behind(state: Path) -> None:
    ours = ("DATABASE_", "EMBED_", "FREEHIRE_", "DAGSTER_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    variables["FREEHIRE_STATE"] = str(state)
    subprocess.run([*_COMMAND, "migrate"], env=variables, check=True, capture_output=True, timeout=60)
    pipe = state / "postings.jsonl"
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            [*_COMMAND, "import", str(pipe)], env=variables, stderr=subprocess.PIPE, text=True
        ) as importing,
        pipe.open("wb"),
    ):  # opens once the command reads
        assert (state / "postgres" / "postmaster.pid").exists()
        importing.send_signal(signal.SIGTERM)
        _, errors = importing.communicate(timeout=30)
    assert importing.returncode == 1
    assert "stopped" in errors
    assert not (state / "postgres" / "postmaster.pid").exists()
