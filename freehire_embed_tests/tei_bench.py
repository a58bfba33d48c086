"""What the tests of the TEI client share: a profile, texts, a client that does not sleep, scripted answers."""

from __future__ import annotations

import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from freehire_embed.drill.faulty_tei import FaultyTei, vector_for
from freehire_embed.profiles import BUILT_IN, E5_SMALL, LOCAL_IDENTITY, Profile
from freehire_embed.tei import Patience, TeiEmbedder
from freehire_embed.tei.proof import PROBE_TEXT
from freehire_embed.wire.address import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from freehire_embed.domain import Embeddings

PROFILE = BUILT_IN[LOCAL_IDENTITY]
TINY = Profile("tiny", (E5_SMALL,), 4)
SECRET = "sk-TOPSECRET-0123456789"


SERVER = Server("embedding backend", "EMBED_URL http://host/embed")


class Sleeps(list[float]):
    """Takes the place of asyncio.sleep: notes the seconds and returns at once."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def impatient(sleeps: Sleeps | None = None, **policy: Any) -> Patience:
    return Patience(jitter=lambda ceiling: ceiling, sleep=Sleeps() if sleeps is None else sleeps, **policy)


def client(url: str, **options: Any) -> TeiEmbedder:
    options = {"api_key": None, "profile": PROFILE, "patience": impatient(), "warmup_seconds": 0} | options
    return TeiEmbedder(url=url, **options)


class Asked(NamedTuple):
    """A request as it came over the wire."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def inputs(self) -> list[str]:
        texts: list[str] = orjson.loads(self.body)["inputs"]
        return texts


@contextmanager
def answering(answer: Callable[[Asked], tuple[int, Any]], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server that gives `answer`'s status and body, as JSON unless it is bytes, to each request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = Asked(
                self.path, self.headers, self.rfile.read(int(self.headers.get("content-length", 0)))
            )
            status, body = answer(asked)
            content = body if isinstance(body, bytes) else orjson.dumps(body)
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815 - the name that http.server calls

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}/embed"
        server.shutdown()


def info(profile: Profile = TINY, **changes: Any) -> dict[str, Any]:
    return {
        "model_id": profile.served[0],
        "model_type": {"embedding": {"pooling": profile.pooling}},
        "max_concurrent_requests": 512,
        "max_client_batch_size": 32,
        "max_input_length": 512,
    } | changes


def sent(tei: FaultyTei) -> list[list[str]]:
    """The texts of each request, without the known row that rides with them."""
    return [[text for text in texts if PROBE_TEXT not in text] for texts in tei.texts or ()]


def passages(count: int, **odd: str) -> list[str]:
    """Different texts of different lengths; `odd` puts others in: p7="POISON" replaces number 7."""
    texts = [f"passage: posting {number} {'word ' * (number * 7 % 23)}" for number in range(count)]
    for place, text in odd.items():
        texts[int(place[1:])] = text
    return texts


def assert_each_vector_is_of_its_text(
    texts: Sequence[str], embeddings: Embeddings, profile: Profile = PROFILE
) -> None:
    for text, vector in zip(texts, embeddings.vectors, strict=True):
        if vector is not None:
            assert vector.dtype == np.float32
            np.testing.assert_allclose(vector, vector_for(text, profile.width, profile.served[0]), atol=1e-6)
