"""One attempt of one request: rows out, vectors or a refusal back. Who is to blame is decided elsewhere."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from freehire_embed.tei.answers import read_refusal
from freehire_embed.tei.vectors import Rows
from freehire_embed.wire.http import HttpClient
from freehire_embed.wire.refusal import Refusal
from freehire_embed.wire.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.tei.dialects import Dialect
    from freehire_embed.tei.endpoint import Endpoint
    from freehire_embed.tei.stats import Tally
    from freehire_embed.wire.http import Answer


class TeiClient:
    """Speaks HTTP with one server over kept-alive connections. Use it from one event loop only."""

    def __init__(self, endpoint: Endpoint, dialect: Dialect, *, token_limit: int, tally: Tally) -> None:
        self.endpoint = endpoint
        self._dialect = dialect
        self.token_limit = token_limit
        self._tally = tally
        self._waiting = Waiting()
        self._http = HttpClient(endpoint.api_key)

    async def embed(self, rows: Sequence[bytes], timeout_seconds: float) -> Rows | Refusal:
        """One attempt, body included, within `timeout_seconds`. A row is a text as a JSON string.

        Where the server refuses the form of the request and another one may do, that is asked for at once.
        """
        rows_read = await self._once(rows, timeout_seconds)
        if isinstance(rows_read, Refusal) and self._dialect.learn(rows_read):
            return await self._once(rows, timeout_seconds)
        return rows_read

    async def _once(self, rows: Sequence[bytes], timeout_seconds: float) -> Rows | Refusal:
        self._tally.requests += 1
        self._tally.rows += len(rows)
        started = time.monotonic()
        answer = await self._http.exchange(
            "POST", self.endpoint.embed, timeout_seconds, self._dialect.ask(rows)
        )
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

    async def about(self, timeout_seconds: float) -> Any:
        """The JSON of /info or /models (None when it is no JSON), or a Refusal; one attempt."""
        answer = await self._http.exchange("GET", self.endpoint.about, timeout_seconds)
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
        vectors = self._dialect.read(answer.body, answer.headers, len(rows))
        if isinstance(vectors, Rows):
            self._tally.latencies.append(seconds)
            self._tally.tokens += vectors.tokens or 0
            size = sum(map(len, rows))
            waited = self._waiting.seconds(seconds, size, _milliseconds(answer.headers.get("x-queue-time")))
            return replace(vectors, seconds=seconds, waited_seconds=waited)
        return vectors

    def _refusal(self, answer: Answer, rows: Sequence[bytes]) -> Refusal:
        private = [orjson.loads(row) for row in rows]
        if self.endpoint.api_key:
            private.append(self.endpoint.api_key)
        return read_refusal(answer.status, answer.headers, answer.body, private)


def _milliseconds(header: str | None) -> float | None:
    """As seconds; None when it is no number."""
    try:
        value = float(header or "")
    except ValueError:
        return None
    return value / 1000 if 0 <= value < math.inf else None
