"""Servers and proxies that say something else on the wire than one answer to each request."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import orjson

from freehire_embed.drill.faulty_tei import vector_for
from freehire_embed_tests.tei_bench import TINY, client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def answer(texts: list[str], head: bytes = b"") -> bytes:
    """A whole answer with the vectors of `texts`; `head` are further header lines."""
    body = orjson.dumps([vector_for(text, TINY.width, TINY.served[0]).tolist() for text in texts])
    return b"HTTP/1.1 200 OK\r\n%scontent-length: %d\r\n\r\n%s" % (head, len(body), body)


@contextmanager
def speaking(talk: Callable[[socket.socket, list[str]], None]) -> Iterator[str]:
    """The URL of a server that does `talk` with each connection and the inputs of each request on it."""

    def serve(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while line := stream.readline():
                size = 0
                while line.strip():
                    if line.lower().startswith(b"content-length:"):
                        size = int(line.split(b":")[1])
                    line = stream.readline()
                talk(connection, orjson.loads(stream.read(size))["inputs"])

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/embed"
        listener.shutdown(socket.SHUT_RDWR)


def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_ones() -> None:
    asked = threading.Event()
    said = threading.Event()

    def twice(connection: socket.socket, inputs: list[str]) -> None:
        connection.sendall(answer(inputs))
        if not said.is_set():
            asked.wait(10)
            connection.sendall(answer(["another text", "and one more"]))
            said.set()

    with speaking(twice) as url, client(url, profile=TINY) as embedder:
        for text in ("one", "two", "three"):
            vector = embedder.embed([text]).vectors[0]
            asked.set()
            assert said.wait(10)
            np.testing.assert_allclose(vector, vector_for(text, TINY.width, TINY.served[0]), atol=1e-6)


def test_the_headers_that_a_proxy_adds_may_be_many_and_long() -> None:
    head = b"set-cookie: sso=%s\r\n" % (b"x" * 30_000) + b"".join(b"x-%d: y\r\n" % n for n in range(300))

    def add(connection: socket.socket, inputs: list[str]) -> None:
        connection.sendall(answer(inputs, head))

    with speaking(add) as url, client(url, profile=TINY) as embedder:
        assert embedder.embed(["one"]).halt is None


def test_an_answer_that_is_no_http_is_called_so() -> None:
    def mumble(connection: socket.socket, _inputs: list[str]) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    with speaking(mumble) as url, client(url, profile=TINY) as embedder:
        halt = embedder.embed(["one"]).halt
    assert halt is not None
    assert "no proper HTTP" in halt.reason
