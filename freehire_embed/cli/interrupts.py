"""SIGTERM and SIGINT end a command in good order."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Terminated(KeyboardInterrupt):
    """Raised in the main thread by the first SIGTERM or SIGINT."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns the first signal into Terminated and ignores the others, so that none cuts the giving back short.

    Several arrive as one request to stop: `timeout` and a terminal signal the process and its group.
    """
    before = {number: signal.signal(number, _raise_once) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_once(_number: int, _frame: FrameType | None) -> NoReturn:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise Terminated
