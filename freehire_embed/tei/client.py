"""One attempt of one request: rows out, vectors or a refusal back. Who is to blame is decided elsewhere."""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import orjson

from freehire_embed.tei.answers import Kind, Refusal, read_refusal
from freehire_embed.tei.vectors import Rows, read_rows
from freehire_embed.tei.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.tei.endpoint import Endpoint
    from freehire_embed.tei.stats import Tally

_CONNECT_SECONDS = 5.0
_MOST_ANSWER_BYTES = 64_000_000
"""32 rows of pgvector's widest vector (16,000) are 12 MB of JSON; what is far above that is no answer."""
_HEAD, _TAIL = b'{"inputs":[', b'],"truncate":true}'


@cache
def _tls() -> ssl.SSLContext:
    """Reads SSL_CERT_FILE, which private authorities need and trust_env=False alone would ignore."""
    return httpx.create_ssl_context()


class _Answer(NamedTuple):
    status: int
    headers: httpx.Headers
    body: bytes


class TeiClient:
    """Speaks HTTP with one server over kept-alive connections. Use it from one event loop only.

    `transport` replaces the network, for tests.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        width: int,
        token_limit: int,
        tally: Tally,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._width = width
        self.token_limit = token_limit
        self._tally = tally
        self._waiting = Waiting()
        headers = {"Accept-Encoding": "identity", "Accept": "application/json"}
        if endpoint.api_key:
            headers["Authorization"] = f"Bearer {endpoint.api_key}"
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS, pool=_CONNECT_SECONDS),
            # Requests in flight are bounded by the gate, so that a query never waits for a bulk connection.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            # A redirect would carry passages, and maybe the key, to a host that nobody configured.
            follow_redirects=False,
            # The environment's proxy is meant for the internet; asked for localhost it answers 502 with a page.
            trust_env=False,
            verify=_tls(),
            transport=transport,
        )

    async def embed(self, rows: Sequence[bytes], timeout_seconds: float) -> Rows | Refusal:
        """One attempt, body included, within `timeout_seconds`. A row is a text as a JSON string."""
        self._tally.requests += 1
        self._tally.rows += len(rows)
        started = time.monotonic()
        answer = await self._exchange("POST", self.endpoint.embed, timeout_seconds, rows)
        rows_read = (
            answer if isinstance(answer, Refusal) else self._read(answer, rows, time.monotonic() - started)
        )
        if isinstance(rows_read, Refusal):
            self._tally.retries[rows_read.cause] += 1
        return rows_read

    async def info(self, timeout_seconds: float) -> Any:
        """The JSON of /info (None when it is no JSON), or a Refusal; one attempt."""
        answer = await self._exchange("GET", self.endpoint.info, timeout_seconds)
        if isinstance(answer, Refusal):
            return answer
        if answer.status != httpx.codes.OK:
            return self._refusal(answer, ())
        try:
            return orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            return None

    async def close(self) -> None:
        await self._http.aclose()

    async def _exchange(
        self, method: str, url: str, timeout_seconds: float, rows: Sequence[bytes] = ()
    ) -> _Answer | Refusal:
        # A row over the model's limit is cut by the server, whatever its own default (which changed in 1.9).
        content = b"".join((_HEAD, b",".join(rows), _TAIL)) if rows else None
        headers = {"Content-Type": "application/json"} if rows else None
        try:
            # httpx times each read; a body that drips would never end.
            async with asyncio.timeout(timeout_seconds):
                async with self._http.stream(method, url, content=content, headers=headers) as response:
                    body = bytearray()
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > _MOST_ANSWER_BYTES:
                            return Refusal(Kind.UPSTREAM, "broken", "an answer of more than 64 MB")
                return _Answer(response.status_code, response.headers, bytes(body))
        except TimeoutError:
            return Refusal(Kind.TIMEOUT, "timeout", f"no whole answer within {timeout_seconds:g} s")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return Refusal(Kind.UPSTREAM, "connect", f"cannot connect ({_words(error)})")
        except httpx.DecodingError:
            return Refusal(Kind.UPSTREAM, "broken", "a body that cannot be decompressed")
        except httpx.RequestError as error:
            return Refusal(Kind.UPSTREAM, "reset", f"connection broken ({type(error).__name__})")

    def _read(self, answer: _Answer, rows: Sequence[bytes], seconds: float) -> Rows | Refusal:
        if answer.status != httpx.codes.OK:
            return self._refusal(answer, rows)
        vectors = read_rows(answer.body, len(rows), self._width)
        if isinstance(vectors, Rows):
            self._tally.latencies.append(seconds)
            tokens = answer.headers.get("x-compute-tokens", "")
            if tokens.isascii() and tokens.isdigit() and len(tokens) < 10:
                self._tally.tokens += int(tokens)
                self._tally.truncated += len(rows) == 1 and int(tokens) >= self.token_limit
            size = sum(map(len, rows))
            waited = self._waiting.seconds(seconds, size, _milliseconds(answer.headers.get("x-queue-time")))
            return replace(vectors, seconds=seconds, waited_seconds=waited)
        return vectors

    def _refusal(self, answer: _Answer, rows: Sequence[bytes]) -> Refusal:
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


def _words(error: httpx.RequestError) -> str:
    return str(error) or type(error).__name__
