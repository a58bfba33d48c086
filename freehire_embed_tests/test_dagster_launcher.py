"""Whether a run that Dagster takes for running has a worker, asked of a real code server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._core.launcher import WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG

from freehire_embed.orchestration.launcher import UNREACHABLE_SECONDS, WatchedRunLauncher
from freehire_embed_tests.clock import Clock
from freehire_embed_tests.dagster_server import wait_until
from freehire_embed_tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def launcher(instance: dg.DagsterInstance, clock: Clock) -> WatchedRunLauncher:
    made = WatchedRunLauncher(clock=clock)
    made.register_instance(instance)
    return made


@pytest.fixture
def run(instance: dg.DagsterInstance, port: int) -> dg.DagsterRun:
    """Taken for running, started by a code server at `port`."""
    where = json.dumps({"host": "127.0.0.1", "port": port})
    return instance.run_storage.add_run(
        dg.DagsterRun(
            "embed_job", run_id="a-run", status=dg.DagsterRunStatus.STARTED, tags={GRPC_INFO_TAG: where}
        )
    )


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def code_server(tmp_path: Path, *where: str) -> Iterator[None]:
    """One that has started no run, at --port or --socket."""
    definitions = tmp_path / "empty.py"
    definitions.write_text("import dagster\ndefs = dagster.Definitions()\n")
    server = subprocess.Popen(
        [sys.executable, "-m", "dagster", "api", "grpc", *where, "-f", str(definitions)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        server.kill()
        server.wait()


def test_a_run_of_which_a_new_code_server_knows_nothing_has_no_worker(
    launcher: WatchedRunLauncher, run: dg.DagsterRun, port: int, tmp_path: Path
) -> None:
    with code_server(tmp_path, "--port", str(port)):
        wait_until(lambda: is_listening(port), "the code server")
        assert launcher.check_run_worker_health(run).status == WorkerStatus.NOT_FOUND


def test_a_run_from_before_its_code_was_reloaded_lives_as_long_as_its_process(
    instance: dg.DagsterInstance, launcher: WatchedRunLauncher, tmp_path: Path
) -> None:
    path = tmp_path / "socket"
    where = json.dumps({"host": "localhost", "socket": str(path)})
    run = instance.run_storage.add_run(
        dg.DagsterRun("embed_job", status=dg.DagsterRunStatus.STARTED, tags={GRPC_INFO_TAG: where})
    )
    with code_server(tmp_path, "--socket", str(path)), subprocess.Popen(["sleep", "1000"]) as process:
        instance.report_engine_event("Started", run, EngineEventData.in_process(process.pid))
        wait_until(path.exists, "the code server")
        assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
        process.kill()
        process.wait()
        assert launcher.check_run_worker_health(run).status == WorkerStatus.NOT_FOUND


def test_a_code_server_that_does_not_answer_is_given_time_to_stop(
    launcher: WatchedRunLauncher, run: dg.DagsterRun, clock: Clock
) -> None:
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    clock.now += UNREACHABLE_SECONDS - 1
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    clock.now += 1
    assert launcher.check_run_worker_health(run).status == WorkerStatus.NOT_FOUND
