"""The vectors of the look-alike server, and one request of it on the wire."""

from __future__ import annotations

from base64 import b64encode
from hashlib import shake_128
from typing import TYPE_CHECKING, Protocol

import numpy as np
import orjson

from freehire_embed.profiles import E5_SMALL

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from freehire_embed.drill.tei_faults import Headers

TOKEN_LIMIT = 512
JSON_HEADERS = (("content-type", "application/json"),)
_CHARACTERS_PER_TOKEN = 4


def vector_for(text: str, width: int = 384, model: str = E5_SMALL) -> NDArray[np.float32]:
    """The vector that the server gives for `text`: shape (width,), norm 1; of different texts near orthogonal."""
    row: NDArray[np.float32] = _vectors([text], width, model)[0]
    return row


def _vectors(texts: Iterable[str], width: int, model: str) -> NDArray[np.float32]:
    salt = model.encode() + b"\0"
    noise = b"".join(shake_128(salt + text.encode()).digest(2 * width) for text in texts)
    matrix = np.frombuffer(noise, dtype="<i2").reshape(-1, width).astype(np.float32)
    matrix /= np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    return matrix


class Device(Protocol):
    """What computes for an exchange: the server behind it."""

    width: int
    model_id: str
    object_shape: bool
    timings: bool

    async def compute(self, rows: int) -> float:
        """Takes the time that `rows` texts take; returns the seconds they waited for their turn."""

    def crash(self) -> None: ...


class WireExchange:
    """One request on a connection of the server: what `tei_faults.Exchange` asks for, and the right answer."""

    def __init__(self, server: Device, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self.texts: list[str] = []
        self.marked: list[int] = []
        self.openai = False
        """Asked in the OpenAI form, and answered in it."""
        self.base64 = False

    def vectors(self, model: str | None = None) -> NDArray[np.float32]:
        return _vectors(self.texts, self._server.width, model or self._server.model_id)

    async def serve(self) -> None:
        queued = await self._server.compute(len(self.texts))
        headers = [*JSON_HEADERS]
        if self.openai:
            body = self.wrap([self._embedding(row) for row in self.vectors()])
        else:
            body = orjson.dumps(self.vectors(), option=orjson.OPT_SERIALIZE_NUMPY)
            if self._server.object_shape:
                body = b'{"embeddings":' + body + b"}"
            headers.append(("x-compute-tokens", str(self.tokens)))
        if self._server.timings:
            headers.append(("x-queue-time", str(round(queued * 1000))))
        await self.reply(200, body, headers)

    @property
    def tokens(self) -> int:
        return sum(min(len(text) // _CHARACTERS_PER_TOKEN + 2, TOKEN_LIMIT) for text in self.texts)

    def _embedding(self, row: NDArray[np.float32]) -> bytes:
        if self.base64:
            return b'"' + b64encode(row.astype("<f4").tobytes()) + b'"'
        return orjson.dumps(np.ascontiguousarray(row), option=orjson.OPT_SERIALIZE_NUMPY)

    def wrap(self, rows: Sequence[bytes]) -> bytes:
        if not self.openai:
            return b"[" + b",".join(rows) + b"]"
        # Backwards, as the order of an answer is that of `index`.
        data = b",".join(
            b'{"object":"embedding","index":%d,"embedding":%b}' % (index, row)
            for index, row in reversed(list(enumerate(rows)))
        )
        usage = b'{"prompt_tokens":%d,"total_tokens":%d}' % (self.tokens, self.tokens)
        return b'{"object":"list","data":[%b],"model":"m","usage":%b}' % (data, usage)

    async def reply(self, status: int, body: bytes, headers: Headers = ()) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        head = f"HTTP/1.1 {status} .\r\ncontent-length: {len(body)}\r\n{lines}\r\n"
        await self.write(head.encode() + body)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def hung_up(self) -> None:
        while await self._reader.read(1024):
            pass

    def abort(self) -> None:
        self._writer.transport.abort()

    def crash(self) -> None:
        self._server.crash()
