"""One attempt of one request: rows out, vectors or a refusal back. Who is to blame is decided elsewhere."""

from __future__ import annotations

import asyncio
import io
import math
import ssl
import time
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import orjson
from yarl import URL

from freehire_embed.tei.answers import Kind, Refusal, read_refusal
from freehire_embed.tei.connections import CleanConnector
from freehire_embed.tei.vectors import Rows, read_rows
from freehire_embed.tei.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from freehire_embed.tei.endpoint import Endpoint
    from freehire_embed.tei.stats import Tally

_CONNECT_SECONDS = 5.0
_READ_BYTES = 1 << 20
"""Read ahead of an answer: one of 32 rows of width 768 (0.3 MB) arrives whole, however late we look."""
_MOST_HEADER_BYTES = 65_536
_MOST_HEADERS = 1000
"""Proxies add cookies and policies; aiohttp would refuse more than 8 KB in one header, or 128 of them."""
_MOST_ANSWER_BYTES = 64_000_000
"""32 rows of pgvector's widest vector (16,000) are 12 MB of JSON; what is far above that is no answer."""
_HEAD, _TAIL = b'{"inputs":[', b'],"truncate":true}'


@cache
def _tls() -> ssl.SSLContext:
    """The system's authorities, or those that SSL_CERT_FILE or SSL_CERT_DIR names, as private ones need."""
    return ssl.create_default_context()


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class TeiClient:
    """Speaks HTTP with one server over kept-alive connections. Use it from one event loop only."""

    def __init__(self, endpoint: Endpoint, *, width: int, token_limit: int, tally: Tally) -> None:
        self.endpoint = endpoint
        self._width = width
        self.token_limit = token_limit
        self._tally = tally
        self._waiting = Waiting()
        self._headers = {"Accept-Encoding": "identity", "Accept": "application/json"}
        if endpoint.api_key:
            self._headers["Authorization"] = f"Bearer {endpoint.api_key}"
        self._http: aiohttp.ClientSession | None = None

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
        if answer.status != HTTPStatus.OK:
            return self._refusal(answer, ())
        try:
            return orjson.loads(answer.body)
        except orjson.JSONDecodeError:
            return None

    async def close(self) -> None:
        if self._http:
            await self._http.close()

    def _session(self) -> aiohttp.ClientSession:
        # It belongs to the event loop that it is made in.
        if self._http is None:
            self._http = aiohttp.ClientSession(
                # Requests in flight are bounded by the gate, so that a query never waits for a bulk connection.
                connector=CleanConnector(limit=0, ssl=_tls()),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=_READ_BYTES,
                max_field_size=_MOST_HEADER_BYTES,
                max_headers=_MOST_HEADERS,
                # The environment's proxy is meant for the internet; asked for localhost it answers 502 with a page.
                trust_env=False,
            )
        return self._http

    async def _exchange(
        self, method: str, url: str, timeout_seconds: float, rows: Sequence[bytes] = ()
    ) -> _Answer | Refusal:
        # A row over the model's limit is cut by the server, whatever its own default (which changed in 1.9).
        # As a file, since aiohttp warns of bytes that are more than 1 MB.
        content = io.BytesIO(b"".join((_HEAD, b",".join(rows), _TAIL))) if rows else None
        try:
            async with (
                asyncio.timeout(timeout_seconds),
                self._session().request(
                    method,
                    URL(url, encoded=True),
                    data=content,
                    headers={"Content-Type": "application/json"} if rows else None,
                    # A redirect would carry passages, and maybe the key, to a host that nobody configured.
                    allow_redirects=False,
                ) as response,
            ):
                body = bytearray()
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > _MOST_ANSWER_BYTES:
                        return Refusal(Kind.UPSTREAM, "broken", "an answer of more than 64 MB")
                return _Answer(response.status, response.headers, bytes(body))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            return Refusal(Kind.UPSTREAM, "connect", f"cannot connect ({_words(error)})")
        except TimeoutError:
            return Refusal(Kind.TIMEOUT, "timeout", f"no whole answer within {timeout_seconds:g} s")
        except aiohttp.ClientPayloadError:
            return Refusal(Kind.UPSTREAM, "broken", "a body that is cut short or cannot be decompressed")
        except aiohttp.ClientResponseError:
            return Refusal(Kind.UPSTREAM, "broken", "an answer that is no proper HTTP, or encoded unasked")
        except (aiohttp.ClientError, ConnectionError) as error:
            return Refusal(Kind.UPSTREAM, "reset", f"connection broken ({type(error).__name__})")

    def _read(self, answer: _Answer, rows: Sequence[bytes], seconds: float) -> Rows | Refusal:
        if answer.status != HTTPStatus.OK:
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


def _words(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {_CONNECT_SECONDS:g} s"
    return (error.strerror if isinstance(error, aiohttp.ClientOSError) else None) or type(error).__name__
