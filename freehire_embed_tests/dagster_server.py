"""A real `dagster dev` on the checkout, driven over GraphQL as the UI does it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from freehire_embed_tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CHECKOUT = Path(__file__).parents[1]
FINISHED = ("SUCCESS", "FAILURE", "CANCELED")
_START_SECONDS = 120
_ENOUGH_SECONDS = 90

_RUNS = """query ($job: String!) {
  runsOrError(filter: {pipelineName: $job}) { ... on Runs { results { runId status tags { key value } } } }
}"""
_LAUNCH = """mutation ($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}"""
_LOG = """query ($run: ID!) {
  logsForRun(runId: $run) { ... on EventConnection { events { ... on MessageEvent { message } } } }
}"""
_TERMINATE = "mutation ($run: String!) { terminateRun(runId: $run) { __typename } }"
_BACKFILL = """mutation ($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) { __typename ... on PythonError { message } }
}"""
_INSTIGATORS = """{ workspaceOrError { ... on Workspace { locationEntries { name locationOrLoadError {
  ... on PythonError { message }
  ... on RepositoryLocation { repositories {
    jobs { name }
    sensors { name sensorState { status } }
    schedules { name scheduleState { status } }
  } } } } } } }"""
_REPOSITORY = {"repositoryLocationName": "freehire_embed", "repositoryName": "__repository__"}


class DagsterServer:
    """Talks to the webserver at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        answer = httpx.post(f"{self.url}/graphql", json={"query": query, "variables": variables}, timeout=30)
        body = answer.json()
        assert "errors" not in body, body["errors"]
        data: dict[str, Any] = body["data"]
        return data

    def location(self) -> dict[str, Any]:
        """Jobs, sensors and schedules of the code location; fails with the load error if there is one."""
        (entry,) = self.ask(_INSTIGATORS)["workspaceOrError"]["locationEntries"]
        assert "message" not in entry["locationOrLoadError"], entry["locationOrLoadError"]["message"]
        (repository,) = entry["locationOrLoadError"]["repositories"]
        return {"name": entry["name"], **repository}

    def launch(self, job: str, **config: Any) -> str:
        """Launches the job as the launchpad does; returns the run's id."""
        params = {
            "selector": {**_REPOSITORY, "pipelineName": job},
            "runConfigData": {"ops": {"enqueue": {"config": config}}},
        }
        launched = self.ask(_LAUNCH, params=params)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        run_id: str = launched["run"]["runId"]
        return run_id

    def backfill(self, job: str, partitions: list[str], tags: Mapping[str, str]) -> None:
        """Launches a backfill as the job's page of partitions does."""
        params = {
            "selector": {"partitionSetName": f"{job}_partition_set", "repositorySelector": _REPOSITORY},
            "partitionNames": partitions,
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        }
        launched = self.ask(_BACKFILL, params=params)["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched

    def terminate(self, run_id: str) -> None:
        terminated = self.ask(_TERMINATE, run=run_id)["terminateRun"]
        assert terminated["__typename"] == "TerminateRunSuccess", terminated

    def runs(self, job: str) -> dict[str, str]:
        """Status of each run of the job, the newest first."""
        return {run["runId"]: run["status"] for run in self.ask(_RUNS, job=job)["runsOrError"]["results"]}

    def worker(self, run_id: str) -> int:
        """Process id of whoever works the run, as its log tells."""
        log = self.ask(_LOG, run=run_id)["logsForRun"]["events"]
        pids = (re.search(r"\(pid: (\d+)\)", event.get("message", "")) for event in log)
        return next(int(pid[1]) for pid in pids if pid)

    def ended(self, job: str, run_id: str) -> str:
        """Waits for the run's end and returns its status."""
        wait_until(lambda: self.runs(job)[run_id] in FINISHED, f"the end of {job} {run_id}")
        return self.runs(job)[run_id]


def wait_until(happened: Callable[[], bool], what: str, seconds: float = _ENOUGH_SECONDS) -> None:
    """Looks every 0.2 s; a generous limit, to detect a hang."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"still waiting for {what} after {seconds} s"
        time.sleep(0.2)


@contextmanager
def dagster_dev(environment: Mapping[str, str], folder: Path) -> Iterator[DagsterServer]:
    """Webserver, daemon and code server with `environment`; they keep their files in `folder`."""
    shutil.copy(CHECKOUT / "dagster.yaml", folder)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("EMBED_")}
    port = free_port()
    log = folder / "dagster.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "dagster", "dev", "-w", "workspace.yaml", "-p", str(port)],
            cwd=CHECKOUT,
            env={**inherited, "DAGSTER_HOME": str(folder), **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = DagsterServer(f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: _is_up(server, process, log), "dagster dev", _START_SECONDS)
        yield server
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_up(server: DagsterServer, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()[-2000:]
    try:
        return bool(httpx.get(f"{server.url}/server_info", timeout=5).is_success)
    except httpx.TransportError:
        return False
