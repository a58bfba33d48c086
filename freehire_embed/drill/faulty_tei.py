"""A look-alike of Text Embeddings Inference that speaks real HTTP, in both dialects, and breaks on purpose.

    with FaultyTei(width=384) as tei:
        tei.fail(tei_faults.status(503), times=3)
        tei.fail(tei_faults.reset, marker="POISON")
        ...tei.url...

Vectors depend on the text and the model only (`vector_for`), so that whoever finds one in a table can tell
whether it belongs there. Also a process: `python -m freehire_embed.drill.faulty_tei --help`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import orjson

from freehire_embed.drill import tei_faults
from freehire_embed.drill.tei_exchange import JSON_HEADERS, TOKEN_LIMIT, WireExchange, vector_for
from freehire_embed.drill.tei_faults import Rule
from freehire_embed.profiles import E5_SMALL

if TYPE_CHECKING:
    from freehire_embed.drill.tei_faults import Fault

__all__ = ["FaultyTei", "vector_for"]


class FaultyTei:
    """Runs in a thread of its own between `__enter__` and `__exit__`.

    `rows_per_second` and `latency_seconds` make it a serial device that requests queue for.
    """

    def __init__(
        self,
        *,
        width: int = 384,
        model_id: str = E5_SMALL,
        pooling: str = "mean",
        host: str = "127.0.0.1",
        port: int = 0,
        api_key: str | None = None,
        max_client_batch_size: int = 32,
        max_batch_tokens: int = 16384,
        slots: int = 512,
        payload_limit: int = 2_000_000,
        out_of_memory_above: int | None = None,
        rows_per_second: float | None = None,
        latency_seconds: float = 0.0,
        object_shape: bool = False,
        info: bool = True,
        keep_texts: bool = False,
        timings: bool = True,
    ) -> None:
        self.width = width
        self.model_id = model_id
        self.pooling = pooling
        self._address = (host, port)
        self._api_key = api_key
        self.max_client_batch_size = max_client_batch_size
        self.max_batch_tokens = max_batch_tokens
        self.slots = slots
        self.payload_limit = payload_limit
        self.out_of_memory_above = out_of_memory_above
        self.rows_per_second = rows_per_second
        self.latency_seconds = latency_seconds
        self.object_shape = object_shape
        self.info = info
        self.timings = timings
        """Tells x-queue-time; some proxies lose it."""
        self.sizes: list[int] = []
        """Rows of each embedding request, in order of arrival."""
        self.texts: list[list[str]] | None = [] if keep_texts else None
        self.info_requests = 0
        self.peak_requests = 0
        self.peak_rows = 0
        self.arrived = threading.Event()
        """Set by every embedding request; clear it to wait for the next one."""
        self._rules: list[Rule] = []
        self._swap: tuple[int, str] | None = None
        self.requests_in_flight = 0
        self._rows_in_flight = 0
        self._device_free_at = 0.0
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty-tei", daemon=True)
        self._server: asyncio.Server | None = None

    def fail(
        self,
        fault: Fault,
        *,
        times: int | None = None,
        after: int = 0,
        marker: str | None = None,
        info_too: bool = False,
        every: int = 1,
    ) -> None:
        """From now on: let `after` requests pass, then do `fault` to `times` of them (None = all), or only to one
        in `every`.

        With `marker`, only to requests with a row that contains it. The first rule that applies wins.
        """
        self._rules.append(Rule(fault, times, after, marker, info_too, every))

    def recover(self) -> None:
        """Forgets all rules."""
        self._rules.clear()

    def swap_model(self, model_id: str, after: int = 0) -> None:
        """Gives another model's vectors after so many more embedding requests; /info then tells the new name."""
        self._swap = (len(self.sizes) + after, model_id)

    def drop_connections(self) -> None:
        """Closes every connection, as a proxy does with idle ones."""
        asyncio.run_coroutine_threadsafe(self._drop(), self._loop).result(10)

    @property
    def requests(self) -> int:
        return len(self.sizes)

    @property
    def root(self) -> str:
        host, port = self._address
        return f"http://{host}:{port}"

    @property
    def url(self) -> str:
        return f"{self.root}/embed"

    @property
    def openai_url(self) -> str:
        return f"{self.root}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._converse, *self._address, backlog=256)
        self._address = (self._address[0], self._server.sockets[0].getsockname()[1])

    async def _stop(self) -> None:
        if self._server:
            self._server.close()
        conversations = list(self._connections)
        for conversation in conversations:
            conversation.cancel()
        await asyncio.gather(*conversations, return_exceptions=True)

    async def _drop(self) -> None:
        self.crash()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._connections[task] = writer
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode("latin-1").split("\r\n")
                headers = {
                    name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = first.split(" ", 2)
                await self._answer(WireExchange(self, reader, writer), method, path, headers, body)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            del self._connections[task]
            writer.transport.abort()

    async def _answer(
        self, exchange: WireExchange, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> None:
        path = path.partition("?")[0]
        if method == "GET" and path in ("/health", "/"):
            await exchange.reply(200, b"")
        elif self._api_key and headers.get("authorization") != f"Bearer {self._api_key}":
            await exchange.reply(401, b"")
        elif method == "GET" and path == "/info" and self.info:
            self.info_requests += 1
            if rule := next((rule for rule in self._rules if rule.takes(None)), None):
                await rule.fault(exchange)
            else:
                await exchange.reply(200, orjson.dumps(self._describe()), JSON_HEADERS)
        elif method == "GET" and path == "/v1/models" and self.info:
            self.info_requests += 1
            if rule := next((rule for rule in self._rules if rule.takes(None)), None):
                await rule.fault(exchange)
            else:
                models = {"object": "list", "data": [{"id": self.model_id, "object": "model"}]}
                await exchange.reply(200, orjson.dumps(models), JSON_HEADERS)
        elif path not in ("/embed", "/", "/v1/embeddings"):
            await exchange.reply(404, b"")
        elif method != "POST":
            await exchange.reply(405, b"")
        elif not headers.get("content-type", "").startswith("application/json"):
            await tei_faults.status(415)(exchange)
        elif len(body) > self.payload_limit:
            await tei_faults.status(413)(exchange)
        else:
            exchange.openai = path == "/v1/embeddings"
            await self._embed(exchange, body)

    async def _embed(self, exchange: WireExchange, body: bytes) -> None:
        try:
            asked = orjson.loads(body)
            inputs = asked["input" if exchange.openai else "inputs"]
            exchange.base64 = asked.get("encoding_format") == "base64"
        except orjson.JSONDecodeError:
            await exchange.reply(400, b"Failed to parse the request body as JSON")
            return
        except (KeyError, TypeError):
            inputs = None
        texts = [inputs] if isinstance(inputs, str) else inputs
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            await exchange.reply(422, b"Failed to deserialize the JSON body into the target type")
            return
        exchange.texts = texts
        exchange.marked = list(range(len(texts)))
        self.sizes.append(len(texts))
        if self.texts is not None:
            self.texts.append(texts)
        self.requests_in_flight += 1
        self._rows_in_flight += len(texts)
        self.peak_requests = max(self.peak_requests, self.requests_in_flight)
        self.peak_rows = max(self.peak_rows, self._rows_in_flight)
        self.arrived.set()
        try:
            if fault := self._fault(texts, exchange):
                await fault(exchange)
            else:
                await exchange.serve()
        finally:
            self.requests_in_flight -= 1
            self._rows_in_flight -= len(texts)

    def _fault(self, texts: list[str], exchange: WireExchange) -> Fault | None:
        if self._swap and len(self.sizes) > self._swap[0]:
            self.model_id = self._swap[1]
            self._swap = None
        for rule in self._rules:
            if rule.takes(texts):
                if rule.marker is not None:
                    exchange.marked = [place for place, text in enumerate(texts) if rule.marker in text]
                return rule.fault
        if self._rows_in_flight > self.slots:
            return tei_faults.status(429)
        if len(texts) > self.max_client_batch_size:
            return tei_faults.status(
                422,
                message=f"batch size {len(texts)} > maximum allowed batch size {self.max_client_batch_size}",
            )
        if not texts or not all(texts):
            return tei_faults.status(400)
        if self.out_of_memory_above is not None and len(texts) > self.out_of_memory_above:
            return tei_faults.status(424)
        return None

    async def compute(self, rows: int) -> float:
        """Waits as long as the simulated device needs, one request after the other; gives the wait in its queue."""
        loop = asyncio.get_running_loop()
        seconds = self.latency_seconds + (rows / self.rows_per_second if self.rows_per_second else 0.0)
        if not seconds:
            return 0.0
        arrived = loop.time()
        starts = max(arrived, self._device_free_at)
        self._device_free_at = starts + seconds
        await asyncio.sleep(self._device_free_at - arrived)
        return starts - arrived

    def crash(self) -> None:
        for writer in self._connections.values():
            writer.transport.abort()

    def _describe(self) -> dict[str, Any]:
        return {
            "model_id": self.model_id,
            "model_sha": None,
            "model_dtype": "float32",
            "model_type": {"embedding": {"pooling": self.pooling}},
            "max_concurrent_requests": self.slots,
            "max_input_length": TOKEN_LIMIT,
            "max_batch_tokens": self.max_batch_tokens,
            "max_batch_requests": None,
            "max_client_batch_size": self.max_client_batch_size,
            "auto_truncate": True,
            "tokenization_workers": 1,
            "version": "1.9.3",
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves until the process is killed; the first line printed is the URL."""
    parser = argparse.ArgumentParser(prog="python -m freehire_embed.drill.faulty_tei", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 = any free one")
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--model-id", default=E5_SMALL)
    parser.add_argument("--api-key")
    parser.add_argument("--rows-per-second", type=float)
    parser.add_argument("--latency-seconds", type=float, default=0.0)
    parser.add_argument("--out-of-memory-above", type=int, metavar="ROWS")
    parser.add_argument("--object-shape", action="store_true")
    parser.add_argument("--no-info", action="store_true")
    parser.add_argument("--fail", metavar="FAULT", help="a status, or one of " + ", ".join(tei_faults.NAMED))
    parser.add_argument("--times", type=int, help="how many requests --fail hits; default all")
    parser.add_argument("--after", type=int, default=0, help="how many requests pass before --fail")
    parser.add_argument("--poison", nargs=2, metavar=("MARKER", "FAULT"), action="append", default=[])
    given = parser.parse_args(arguments)
    tei = FaultyTei(
        host=given.host,
        port=given.port,
        width=given.width,
        model_id=given.model_id,
        api_key=given.api_key,
        rows_per_second=given.rows_per_second,
        latency_seconds=given.latency_seconds,
        out_of_memory_above=given.out_of_memory_above,
        object_shape=given.object_shape,
        info=not given.no_info,
    )
    if given.fail:
        tei.fail(tei_faults.named(given.fail), times=given.times, after=given.after)
    for marker, fault in given.poison:
        tei.fail(tei_faults.named(fault), marker=marker)
    with tei:
        sys.stdout.write(f"{tei.url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
