"""What a faulty server may do to a request, each a small coroutine on the wire.

`named` turns words into faults for command lines: a status, or one of the names in `NAMED`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import orjson

if TYPE_CHECKING:
    from numpy.typing import NDArray

Headers = Sequence[tuple[str, str]]
_HOLD_CHECK_SECONDS = 0.01


class Exchange(Protocol):
    """One request that is being answered."""

    texts: list[str]
    marked: list[int]
    """Places of the rows that the fault is meant for: those with the rule's marker, or all."""

    def vectors(self, model: str | None = None) -> NDArray[np.float32]:
        """The right answer, shape (rows, width), or that of another model."""

    def wrap(self, rows: Sequence[bytes]) -> bytes:
        """The body of a 200 with `rows`, each the JSON of a vector, in the dialect of the request."""

    async def reply(self, status: int, body: bytes, headers: Headers = ()) -> None: ...

    async def write(self, data: bytes) -> None:
        """Raw bytes on the wire."""

    async def hung_up(self) -> None:
        """Waits until the client closes the connection."""

    def abort(self) -> None:
        """Resets this connection."""

    def crash(self) -> None:
        """Resets every connection of the server."""


Fault = Callable[[Exchange], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Body:
    error_type: str = ""
    message: str = ""
    plain: bool = False

    def encode(self) -> bytes:
        if self.plain:
            return self.message.encode()
        return orjson.dumps({"error": self.message, "error_type": self.error_type})


_PAGE = "<html><head><title>gateway</title></head><body>try later</body></html>"
_USUAL = {
    302: _Body(message="", plain=True),
    400: _Body("Empty", "`inputs` cannot be empty"),
    401: _Body(message="", plain=True),
    403: _Body(message="forbidden", plain=True),
    404: _Body(message="not found", plain=True),
    405: _Body(message="", plain=True),
    413: _Body(message="Failed to buffer the request body: length limit exceeded", plain=True),
    415: _Body(message="Expected request with `Content-Type: application/json`", plain=True),
    422: _Body("Validation", "`inputs` must have less than 512 tokens. Given: 731"),
    424: _Body("Backend", "DriverError(CUDA_ERROR_OUT_OF_MEMORY, out of memory)"),
    429: _Body("Overloaded", "Model is overloaded"),
    500: _Body(message="internal error", plain=True),
    502: _Body(message=_PAGE, plain=True),
    503: _Body("Unhealthy", "unhealthy"),
    504: _Body(message=_PAGE, plain=True),
}


def status(
    code: int,
    *,
    error_type: str | None = None,
    message: str | None = None,
    plain: bool | None = None,
    headers: Headers = (),
) -> Fault:
    """An error answer; what is not given is what TEI, or the proxy before it, usually says."""
    usual = _USUAL.get(code, _Body(plain=True))
    body = _Body(
        usual.error_type if error_type is None else error_type,
        usual.message if message is None else message,
        plain=(usual.plain and error_type is None) if plain is None else plain,
    ).encode()

    async def answer(exchange: Exchange) -> None:
        await exchange.reply(code, body, headers)

    return answer


def echo(code: int = 422, error_type: str = "Validation") -> Fault:
    """An error whose message quotes the marked rows."""

    async def answer(exchange: Exchange) -> None:
        quoted = ", ".join(repr(exchange.texts[place]) for place in exchange.marked)
        await exchange.reply(code, orjson.dumps({"error": f"cannot take {quoted}", "error_type": error_type}))

    return answer


def redirect(location: str) -> Fault:
    return status(302, headers=[("location", location)])


def body(content: bytes, headers: Headers = ()) -> Fault:
    """Status 200 with any content."""

    async def answer(exchange: Exchange) -> None:
        await exchange.reply(200, content, headers)

    return answer


def html() -> Fault:
    return body(_PAGE.encode(), [("content-type", "text/html")])


async def reset(exchange: Exchange) -> None:
    exchange.abort()


async def crash(exchange: Exchange) -> None:
    exchange.crash()


async def hang(exchange: Exchange) -> None:
    """Never answers; ends when the client hangs up."""
    await exchange.hung_up()


def hold(until: threading.Event, then: Fault | None = None) -> Fault:
    """Nothing before `until` is set, so that requests stay in flight; after that `then`, or the right answer."""

    async def answer(exchange: Exchange) -> None:
        while not until.is_set():
            await asyncio.sleep(_HOLD_CHECK_SECONDS)
        if then:
            await then(exchange)
        else:
            await exchange.reply(200, _encoded(exchange, exchange.vectors()))

    return answer


async def truncated(exchange: Exchange) -> None:
    """Promises the whole body, sends half of it and closes."""
    whole = _encoded(exchange, exchange.vectors())
    await exchange.write(_head(len(whole)) + whole[: len(whole) // 2])
    exchange.abort()


async def cut_json(exchange: Exchange) -> None:
    """A well-formed HTTP answer whose JSON ends in the middle."""
    whole = _encoded(exchange, exchange.vectors())
    await exchange.reply(200, whole[: len(whole) // 2])


def drip_body(every_seconds: float) -> Fault:
    """The right body, a byte at a time."""

    async def answer(exchange: Exchange) -> None:
        whole = _encoded(exchange, exchange.vectors())
        await exchange.write(_head(len(whole)))
        await _drip(exchange, whole, every_seconds)

    return answer


def drip_headers(every_seconds: float) -> Fault:
    """Headers that never end."""

    async def answer(exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            await _drip(exchange, b"x-more: y\r\n", every_seconds)

    return answer


def values(json_value: str) -> Fault:
    """The marked rows with every value replaced: `null`, `NaN`, `0.0`, `true`, `"0.1"`, ..."""

    async def answer(exchange: Exchange) -> None:
        await exchange.reply(200, _spoiled(exchange, lambda width: f"[{','.join([json_value] * width)}]"))

    return answer


def width(wrong: int) -> Fault:
    """The marked rows with another width, of norm 1."""

    async def answer(exchange: Exchange) -> None:
        row = orjson.dumps([1.0] + [0.0] * (wrong - 1)).decode()
        await exchange.reply(200, _spoiled(exchange, lambda _: row))

    return answer


def scaled(factor: float) -> Fault:
    """All vectors with another norm, as of a server that does not normalise."""

    async def answer(exchange: Exchange) -> None:
        matrix = exchange.vectors() * factor
        await exchange.reply(200, _encoded(exchange, matrix))

    return answer


def foreign(model: str = "example/other") -> Fault:
    """The right shape, from another model of the same width: a replica that was left behind by an update."""

    async def answer(exchange: Exchange) -> None:
        await exchange.reply(200, _encoded(exchange, exchange.vectors(model)))

    return answer


def turned(shift: int | None = None) -> Fault:
    """The right vectors in the wrong order: reversed, or moved on by `shift` rows."""

    async def answer(exchange: Exchange) -> None:
        matrix = exchange.vectors()
        await exchange.reply(
            200, _encoded(exchange, matrix[::-1] if shift is None else np.roll(matrix, shift, axis=0))
        )

    return answer


def count(difference: int) -> Fault:
    """More or fewer vectors than rows."""

    async def answer(exchange: Exchange) -> None:
        rows = [orjson.dumps(row) for row in exchange.vectors().tolist()]
        rows = rows + rows[:1] * difference if difference > 0 else rows[:difference]
        await exchange.reply(200, exchange.wrap(rows))

    return answer


NAMED: dict[str, Fault] = {
    "reset": reset,
    "crash": crash,
    "hang": hang,
    "truncated": truncated,
    "cut-json": cut_json,
    "html": html(),
    "drip-body": drip_body(0.05),
    "drip-headers": drip_headers(0.05),
    "null": values("null"),
    "nan": values("NaN"),
    "zero": values("0.0"),
    "width": width(7),
    "count": count(-1),
    "foreign": foreign(),
    "reversed": turned(),
    "shifted": turned(1),
}


def named(name: str) -> Fault:
    """Raises ValueError for a word that is neither a status nor in NAMED."""
    if name.isdigit():
        return status(int(name))
    if name in NAMED:
        return NAMED[name]
    raise ValueError(f"unknown fault {name!r}: a status, or one of {', '.join(NAMED)}")


@dataclass(slots=True)
class Rule:
    """A fault, and the requests that it strikes."""

    fault: Fault
    times: int | None
    after: int
    marker: str | None
    info_too: bool
    every: int = 1
    """Only each so many-th of the requests that are left after `after`."""
    seen: int = 0

    def takes(self, texts: list[str] | None) -> bool:
        """Whether the rule applies to this request (None = /info); counts it."""
        if self.times == 0 or (texts is None and not self.info_too):
            return False
        if self.marker is not None and not any(self.marker in text for text in texts or ()):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        self.seen += 1
        if self.seen % self.every:
            return False
        if self.times is not None:
            self.times -= 1
        return True


def _encoded(exchange: Exchange, matrix: NDArray[np.float32]) -> bytes:
    return exchange.wrap(
        [orjson.dumps(np.ascontiguousarray(row), option=orjson.OPT_SERIALIZE_NUMPY) for row in matrix]
    )


def _head(length: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % length


async def _drip(exchange: Exchange, data: bytes, every_seconds: float) -> None:
    for place in range(len(data)):
        await exchange.write(data[place : place + 1])
        await asyncio.sleep(every_seconds)


def _spoiled(exchange: Exchange, row: Callable[[int], str]) -> bytes:
    matrix = exchange.vectors()
    marked = set(exchange.marked)
    rows = [
        row(matrix.shape[1]).encode() if place in marked else orjson.dumps(vector.tolist())
        for place, vector in enumerate(matrix)
    ]
    return exchange.wrap(rows)
