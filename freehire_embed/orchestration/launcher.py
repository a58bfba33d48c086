"""A lane as a process of the code server, whose run ends with it."""

import os
import time
from collections.abc import Callable
from typing import Any

import dagster as dg
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus
from dagster._grpc.types import CanCancelExecutionRequest, CanCancelExecutionResult
from dagster_shared.serdes import deserialize_value

UNREACHABLE_SECONDS = 120
"""A code server that is told to stop may answer no more and still wait for its lanes."""


class WatchedRunLauncher(DefaultRunLauncher):
    """Dagster's default launcher, with an answer for run monitoring.

    Dagster's own has none: what a restarted code server or machine leaves behind would count as running, and block
    its lane, until max_runtime.
    """

    def __init__(self, *arguments: Any, clock: Callable[[], float] = time.monotonic, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._clock = clock
        self._unreachable_since: dict[str, float] = {}

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Asks the code server that started the run."""
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        if client is None:
            # finished meanwhile, or not started by a code server
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        try:
            answer = client.can_cancel_execution(CanCancelExecutionRequest(run_id=run.run_id), timeout=5)
        except DagsterUserCodeUnreachableError:
            return self._unreachable(run.run_id)
        self._unreachable_since.pop(run.run_id, None)
        if deserialize_value(answer, CanCancelExecutionResult).can_cancel:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        # After "Reload" in the UI of `dagster dev` a code server speaks only for the runs since then. One behind a
        # socket is on this machine, and has another socket after a restart.
        if client.socket and self._has_process(run.run_id):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "its code server was started anew since")

    def _has_process(self, run_id: str) -> bool:
        entries = self._instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
        events = [entry.dagster_event for entry in entries if entry.dagster_event]
        pids = [event.engine_event_data.metadata.get("pid") for event in events]
        return any(_is_alive(int(str(pid.value))) for pid in pids if pid)

    def _unreachable(self, run_id: str) -> CheckRunHealthResult:
        since = self._unreachable_since.setdefault(run_id, self._clock())
        if self._clock() - since < UNREACHABLE_SECONDS:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        del self._unreachable_since[run_id]
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "its code server is gone")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's, so it is there
    return True
