"""A real worker: `freehire-embed run` as a process, to be killed, stopped, frozen and read."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from freehire_embed.drill.checks import Check, DrillStuck, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_END_SECONDS = 90


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker ended."""

    exit_code: int
    counters: dict[str, Any]
    """Its last line, as `run --json` prints it; empty when it never came to work."""
    log: str

    def outcome(self, name: str) -> int:
        """Entries with that outcome."""
        return int(self.counters.get("outcomes", {}).get(name, 0))

    def exits(self, whose: str, *codes: int) -> Check:
        """Expects one of `codes`; any other is shown with its reason."""
        reason = self.counters.get("exit_reason") or (self.log.strip().splitlines() or [""])[-1]
        ok = self.exit_code in codes
        happened = str(self.exit_code) if ok else f"{self.exit_code} ({reason})"
        return Check(f"exit code of {whose}", " or ".join(map(str, codes)), happened, ok)

    @property
    def requests(self) -> int:
        return int(self.counters.get("requests", 0))


class Worker:
    """One run, started at once. Leaving the `with` block kills it if it still lives."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "freehire_embed", "run", "--json"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def reaches(self, condition: Callable[[], bool], what: str) -> None:
        """Waits until `condition` holds. Raises DrillStuck when it does not in time, or the worker ended before."""
        wait_until(lambda: condition() or self._process.poll() is not None, what)
        if self._process.poll() is not None:
            last = (self.end().log.strip().splitlines() or ["nothing said"])[-1]
            raise DrillStuck(f"a worker ended too early: {last}")

    def end(self) -> Ended:
        """Waits for its end. Raises DrillStuck after 90 s."""
        try:
            out, log = self._process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise DrillStuck(f"a worker does not end within {_END_SECONDS} s") from error
        lines = out.splitlines()
        return Ended(self._process.returncode, json.loads(lines[-1]) if lines else {}, log)


def work(environment: Mapping[str, str]) -> Ended:
    """One whole run."""
    with Worker(environment) as worker:
        return worker.end()
