"""An event loop in a thread of its own, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

T = TypeVar("T")

_CLOSE_SECONDS = 5.0
_HEED_SECONDS = 0.5


class BackgroundLoop:
    """Runs coroutines for any thread. The thread is a daemon, so it never keeps a process alive."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tei-client", daemon=True)
        self._thread.start()
        self._open = True
        # What came in between the last cancellation and the end of the loop would be waited for without end.
        self._entrance = threading.Lock()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result.

        Whatever reaches the waiting thread meanwhile (Ctrl-C, a signal handler's exception, Dagster's
        interrupt) cancels the coroutine and goes on up at once, without waiting for the cancellation. Raises
        RuntimeError once `close` was called.
        """
        with self._entrance:
            if not self._open:
                coroutine.close()
                raise RuntimeError("the client is closed")
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            # A signal that comes just before a wait without end would be noticed only after it.
            while not future.done():
                wait([future], _HEED_SECONDS)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Callable[[], Awaitable[object]]) -> None:
        """Cancels what still runs, awaits `last()`, then ends the thread; does nothing the second time."""
        with self._entrance:
            if not self._open:
                return
            self._open = False
        asyncio.run_coroutine_threadsafe(_cancel_others_then(last), self._loop).result(_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        self._loop.close()


async def _cancel_others_then(last: Callable[[], Awaitable[object]]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last()
