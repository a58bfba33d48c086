"""What a drill says: one line for each thing that was expected."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_STUCK_SECONDS = 60


class DrillStuck(Exception):
    """What a drill waited for did not happen."""


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation and what came of it."""

    what: str
    expected: str
    happened: str
    ok: bool


def equal(what: str, expected: object, happened: object) -> Check:
    return Check(what, str(expected), str(happened), expected == happened)


def at_most(what: str, limit: float, happened: float, unit: str = "") -> Check:
    return Check(what, f"at most {limit:g}{unit}", f"{happened:.4g}{unit}", happened <= limit)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Returns as soon as `condition` holds; raises DrillStuck, naming `what`, when it does not within a minute."""
    deadline = time.monotonic() + _STUCK_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise DrillStuck(f"not within {_STUCK_SECONDS} s: {what}")
        time.sleep(0.02)
