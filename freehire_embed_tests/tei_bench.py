"""What the tests of the TEI client share: a profile, texts, and a client that does not sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import orjson

from freehire_embed.drill.faulty_tei import vector_for
from freehire_embed.profiles import BUILT_IN, E5_SMALL, LOCAL_IDENTITY, Profile
from freehire_embed.tei import Patience, TeiEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from freehire_embed.domain import Embeddings

PROFILE = BUILT_IN[LOCAL_IDENTITY]
TINY = Profile("tiny", (E5_SMALL,), 4)
SECRET = "sk-TOPSECRET-0123456789"


class Sleeps(list[float]):
    """Takes the place of asyncio.sleep: notes the seconds and returns at once."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def impatient(sleeps: Sleeps | None = None, **policy: Any) -> Patience:
    return Patience(jitter=lambda ceiling: ceiling, sleep=Sleeps() if sleeps is None else sleeps, **policy)


def client(url: str, **options: Any) -> TeiEmbedder:
    options = {"api_key": None, "profile": PROFILE, "patience": impatient(), "warmup_seconds": 0} | options
    return TeiEmbedder(url=url, **options)


def function_client(
    answer: Callable[[list[str]], httpx.Response], profile: Profile = TINY, **options: Any
) -> TeiEmbedder:
    """A client whose server is a function of the texts; its /info is right."""

    def serve(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/info":
            return httpx.Response(200, json=info(profile))
        return answer(orjson.loads(request.content)["inputs"])

    transport = httpx.MockTransport(serve)
    return client("http://tei.example/embed", profile=profile, transport=transport, **options)


def info(profile: Profile = TINY, **changes: Any) -> dict[str, Any]:
    return {
        "model_id": profile.served[0],
        "model_type": {"embedding": {"pooling": profile.pooling}},
        "max_concurrent_requests": 512,
        "max_client_batch_size": 32,
        "max_input_length": 512,
    } | changes


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
