"""One attempt of one request: rows out, vectors or a refusal back. Who is to blame is decided elsewhere."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from freehire_embed.tei.answers import read_refusal
from freehire_embed.tei.vectors import Rows, read_rows
from freehire_embed.wire.http import HttpClient
from freehire_embed.wire.refusal import Refusal
from freehire_embed.wire.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.tei.endpoint import Endpoint
    from freehire_embed.tei.stats import Tally
    from freehire_embed.wire.http import Answer

# A row over the model's limit is cut by the server, whatever its own default (which changed in 1.9).
_HEAD, _TAIL = b'{"inputs":[', b'],"truncate":true}'


class TeiClient:
    """Speaks HTTP with one server over kept-alive connections. Use it from one event loop only."""

    def __init__(self, endpoint: Endpoint, *, width: int, token_limit: int, tally: Tally) -> None:
        self.endpoint = endpoint
        self._width = width
        self.token_limit = token_limit
        self._tally = tally
        self._waiting = Waiting()
        self._http = HttpClient(endpoint.api_key)

    async def embed(self, rows: Sequence[bytes], timeout_seconds: float) -> Rows | Refusal:
        """One attempt, body included, within `timeout_seconds`. A row is a text as a JSON string."""
        self._tally.requests += 1
        self._tally.rows += len(rows)
        started = time.monotonic()
        content = b"".join((_HEAD, b",".join(rows), _TAIL))
        answer = await self._http.exchange("POST", self.endpoint.embed, timeout_seconds, content)
        rows_read = (
            answer if isinstance(answer, Refusal) else self._read(answer, rows, time.monotonic() - started)
        )
        if isinstance(rows_read, Refusal):
            self.count(rows_read)
        return rows_read

    def count(self, refusal: Refusal) -> None:
        """Notes a request that brought less than it should have."""
        self._tally.retries[refusal.cause] += 1

    def renew(self) -> None:
        """From now on requests go over new connections."""
        self._http.renew()

    async def info(self, timeout_seconds: float) -> Any:
        """The JSON of /info (None when it is no JSON), or a Refusal; one attempt."""
        answer = await self._http.exchange("GET", self.endpoint.info, timeout_seconds)
        if isinstance(answer, Refusal):
            return answer
        if answer.status != HTTPStatus.OK:
            return self._refusal(answer, ())
        try:
            return orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            return None

    async def close(self) -> None:
        await self._http.close()

    def _read(self, answer: Answer, rows: Sequence[bytes], seconds: float) -> Rows | Refusal:
        if answer.status != HTTPStatus.OK:
            return self._refusal(answer, rows)
        vectors = read_rows(answer.body, len(rows), self._width)
        if isinstance(vectors, Rows):
            self._tally.latencies.append(seconds)
            tokens = _count(answer.headers.get("x-compute-tokens", ""))
            self._tally.tokens += tokens or 0
            size = sum(map(len, rows))
            waited = self._waiting.seconds(seconds, size, _milliseconds(answer.headers.get("x-queue-time")))
            return replace(vectors, tokens=tokens, seconds=seconds, waited_seconds=waited)
        return vectors

    def _refusal(self, answer: Answer, rows: Sequence[bytes]) -> Refusal:
        private = [orjson.loads(row) for row in rows]
        if self.endpoint.api_key:
            private.append(self.endpoint.api_key)
        return read_refusal(answer.status, answer.headers, answer.body, private)


def _count(header: str) -> int | None:
    return int(header) if header.isascii() and header.isdigit() and len(header) < 10 else None


def _milliseconds(header: str | None) -> float | None:
    """As seconds; None when it is no number."""
    try:
        value = float(header or "")
    except ValueError:
        return None
    return value / 1000 if 0 <= value < math.inf else None
