"""A server that costs next to nothing: answers are made beforehand, a device can be pretended.

Run as a process, so that its work is not the client's: the first line printed is its URL. GET /stats tells
the seconds from the first request (a probe is none) to the last answer, the rows, and the longest time without
work in between.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import orjson

from benchmarks.yardsticks import vectors
from freehire_embed.profiles import E5_BASE
from freehire_embed.tei.proof import PROBE_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS = 32
_PROBE = PROBE_TEXT.encode()


class _Device:
    """Works one request after the other: `latency` seconds each, and a second for `rate` rows."""

    def __init__(self, rate: float, latency: float) -> None:
        self._rate = rate
        self._latency = latency
        self._free_at = 0.0
        self.first = self.last = 0.0
        self.rows = 0
        self.longest_gap = 0.0

    def take(self, rows: int) -> tuple[float, float]:
        """Seconds until the answer is ready, and how many of them are waiting."""
        now = time.monotonic()
        if rows > 1:  # a probe is no work
            self.longest_gap = max(self.longest_gap, now - self._free_at) if self.first else 0.0
            self.first = self.first or now
        starts = max(now, self._free_at)
        self._free_at = starts + self._latency + (rows / self._rate if self._rate else 0)
        self.last = self._free_at
        self.rows += rows
        return self._free_at - now, starts - now

    def tell(self) -> bytes:
        return orjson.dumps(
            {"seconds": self.last - self.first, "rows": self.rows, "longest_gap": self.longest_gap}
        )


class _Exchange(asyncio.Protocol):
    def __init__(self, device: _Device, known: bytes, rows: list[bytes]) -> None:
        self._device = device
        self._known = known
        self._rows = rows
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if not found or len(body) < length:
            return
        self._read = body[length:]
        if b" /stats " in head:
            self._reply(self._device.tell())
        elif b" /info " in head:
            info = {"model_id": E5_BASE, "max_client_batch_size": _ROWS, "max_concurrent_requests": 512}
            self._reply(orjson.dumps(info))
        else:
            rows = body.count(b'","') + 1
            answer = self._answer(body, rows)
            seconds, waited = self._device.take(rows)
            header = f"x-queue-time: {waited * 1000:.0f}\r\n".encode()
            if seconds > 0:
                asyncio.get_running_loop().call_later(seconds, self._reply, answer, header)
            else:
                self._reply(answer, header)

    def _answer(self, body: bytes, count: int) -> bytes:
        rows = self._rows[:count]
        if (found := body.find(_PROBE)) >= 0:
            rows[body.count(b'","', 0, found)] = self._known
        return b"[" + b",".join(rows) + b"]"

    def _reply(self, body: bytes, header: bytes = b"") -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % len(body)
        self._transport.writelines((head, header, b"\r\n", body))


@contextmanager
def serving(rate: float = 0, latency: float = 0) -> Iterator[str]:
    """The URL of such a server while the block runs; `rate` 0 is no device at all."""
    command = [sys.executable, "-m", "benchmarks.canned_tei", str(rate), str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - ourselves
        try:
            assert process.stdout  # noqa: S101 - asked for
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def stats(url: str) -> dict[str, float]:
    answer: dict[str, float] = httpx.get(url.replace("/embed", "/stats"), trust_env=False).json()
    return answer


async def _serve(rate: float, latency: float) -> None:
    known, *rows = (orjson.dumps(vector, option=orjson.OPT_SERIALIZE_NUMPY) for vector in vectors(_ROWS + 1))
    device = _Device(rate, latency)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Exchange(device, known, rows), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    sys.stdout.write(f"http://{host}:{port}/embed\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rate", type=float)
    parser.add_argument("latency", type=float)
    given = parser.parse_args()
    asyncio.run(_serve(given.rate, given.latency))
