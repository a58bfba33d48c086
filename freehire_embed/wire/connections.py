"""Kept-alive connections that carry nothing but the answers to our own requests."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import aiohttp

if TYPE_CHECKING:
    from asyncio import Transport

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace


class CleanConnector(aiohttp.TCPConnector):
    """Drops an idle connection on which something came after its last answer.

    aiohttp would take that for the answer to the next request: vectors of other texts, and so on with each request
    that follows. It may be the server's goodbye as well, after which a request fails.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: WeakSet[ResponseHandler] = WeakSet()
        self._outworn: WeakSet[ResponseHandler] = WeakSet()

    def renew(self) -> None:
        """From now on requests go over new connections; those in flight end on their own."""
        self._outworn.update(self._used)

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A new connection, or a kept one on which nothing has come since its last answer."""
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol, transport = connection.protocol, connection.transport
            if protocol is None or transport is None or protocol not in self._used:
                break
            clean = not protocol.should_close and not _is_readable(transport)
            if clean and protocol not in self._outworn:
                break
            connection.close()
        if protocol is not None:
            self._used.add(protocol)
        return connection


def _is_readable(transport: Transport) -> bool:
    """Whether something lies in the socket that the event loop has not come to read yet."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket"), select.POLLIN)
    return bool(poll.poll(0))
