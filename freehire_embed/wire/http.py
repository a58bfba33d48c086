"""One request and its answer, or why there is none. Who is to blame is decided elsewhere."""

from __future__ import annotations

import asyncio
import io
import ssl
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
from yarl import URL

from freehire_embed.wire.connections import CleanConnector
from freehire_embed.wire.refusal import Kind, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONNECT_SECONDS = 5.0
_READ_BYTES = 1 << 20
"""Read ahead of an answer: one of 32 rows of width 768 (0.3 MB) arrives whole, however late we look."""
_MOST_HEADER_BYTES = 65_536
_MOST_HEADERS = 1000
"""Proxies add cookies and policies; aiohttp would refuse more than 8 KB in one header, or 128 of them."""
_MOST_ANSWER_BYTES = 64_000_000
"""32 rows of pgvector's widest vector (16,000) are 12 MB of JSON; what is far above that is no answer."""


@cache
def _tls() -> ssl.SSLContext:
    """The system's authorities, or those that SSL_CERT_FILE or SSL_CERT_DIR names, as private ones need."""
    return ssl.create_default_context()


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Looked up without regard to case."""
    body: bytes


class HttpClient:
    """Speaks HTTP over kept-alive connections. Use it from one event loop only."""

    def __init__(self, api_key: str | None = None) -> None:
        self._headers = {"Accept-Encoding": "identity", "Accept": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._session: aiohttp.ClientSession | None = None
        self._connector: CleanConnector | None = None

    async def exchange(
        self, method: str, url: str, timeout_seconds: float, json: bytes | None = None
    ) -> Answer | Refusal:
        """One attempt, body included, within `timeout_seconds`; a status of any kind is an answer.

        `json` is the body of the request. A Refusal says why there is no whole answer; it quotes neither.
        """
        try:
            async with (
                asyncio.timeout(timeout_seconds),
                self._opened().request(
                    method,
                    URL(url, encoded=True),
                    # As a file, since aiohttp warns of bytes that are more than 1 MB.
                    data=None if json is None else io.BytesIO(json),
                    headers=None if json is None else {"Content-Type": "application/json"},
                    # A redirect would carry texts, and maybe the key, to a host that nobody configured.
                    allow_redirects=False,
                ) as response,
            ):
                body = bytearray()
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > _MOST_ANSWER_BYTES:
                        return Refusal(Kind.UPSTREAM, "broken", "an answer of more than 64 MB")
                return Answer(response.status, response.headers, bytes(body))
        except aiohttp.ClientConnectorCertificateError as error:
            return Refusal(Kind.CONFIG, "certificate", _distrust(error.certificate_error))
        except aiohttp.ClientConnectorSSLError as error:
            if _speaks_no_tls(error):
                return Refusal(Kind.CONFIG, "tls", "it speaks no TLS: begin the URL with http://")
            return Refusal(Kind.UPSTREAM, "connect", f"cannot connect ({_words(error)})")
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

    def renew(self) -> None:
        """From now on requests go over new connections; those in flight end on their own."""
        if self._connector:
            self._connector.renew()

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        # It belongs to the event loop that it is made in.
        if self._session is None:
            # Requests in flight are bounded by the gate, so that a query never waits for a bulk connection.
            self._connector = CleanConnector(limit=0, ssl=_tls())
            self._session = aiohttp.ClientSession(
                connector=self._connector,
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=_READ_BYTES,
                max_field_size=_MOST_HEADER_BYTES,
                max_headers=_MOST_HEADERS,
                # The environment's proxy is meant for the internet; asked for localhost it answers 502 with a page.
                trust_env=False,
            )
        return self._session


def _distrust(error: Exception) -> str:
    """What is wrong with the server's certificate, and the way out."""
    why = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else type(error).__name__
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else None
    if code in _OUT_OF_TIME:
        way_out = "renew it, or set this machine's clock"
    elif code in _OTHER_NAME:
        way_out = "give the URL the name that the certificate is made out for"
    else:
        way_out = "set SSL_CERT_FILE to a PEM file with the authority that signed it"
    return f"its certificate is not to be trusted ({why.rstrip('.')}): {way_out}"


_OUT_OF_TIME = frozenset({9, 10})
"""X509_V_ERR_CERT_NOT_YET_VALID and ..._HAS_EXPIRED of OpenSSL."""
_OTHER_NAME = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH and ..._IP_ADDRESS_MISMATCH."""


_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"})
"""What the releases of OpenSSL call plain text where a handshake should be."""


def _speaks_no_tls(error: aiohttp.ClientConnectorSSLError) -> bool:
    cause = error.os_error
    return isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS


def _words(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {_CONNECT_SECONDS:g} s"
    return (error.strerror if isinstance(error, aiohttp.ClientOSError) else None) or type(error).__name__
