"""The HTTP API of Text Embeddings Inference 1.9 in front of the local model.

POST ``/embed``, ``/`` and ``/tokenize``; GET ``/info``, ``/health`` and ``/``, with TEI's limits and errors.
openai_api.py has the OpenAI form of the same.
What differs, because the C library does it so:

* A text always gets an e5 prefix: one that starts with ``query: `` or ``passage: `` is taken as such, any other
  is embedded as a passage.
* ``/tokenize`` gives one entry a token, so that counting works, but neither ids nor offsets: those are null.
* Vectors are always normalised; ``normalize: false``, ``truncation_direction: left`` and token ids as input are
  refused, never ignored.
* NUL, which would end the text in C, counts as a space.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
import orjson
from pydantic import BaseModel, StrictBool, StrictInt, StrictStr, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from freehire_embed.local.model import MAX_INPUT_LENGTH
from freehire_embed.profiles import E5_SMALL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from numpy.typing import NDArray
    from starlette.requests import Request

    from freehire_embed.local.model import Model, Row

T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)

MAX_CLIENT_BATCH_SIZE = 32
MAX_CONCURRENT_REQUESTS = 512
"""Rows that may be in flight; TEI counts one slot a row."""
PAYLOAD_LIMIT = 2_000_000
MAX_BATCH_REQUESTS = 8
"""Rows given to the library at once: within 2 % of the speed of 32, and a stop or a query waits a quarter."""
INFO = {
    "model_id": E5_SMALL,
    "model_sha": None,
    "model_dtype": "int4",
    "served_model_name": E5_SMALL,
    "model_type": {"embedding": {"pooling": "mean"}},
    "max_concurrent_requests": MAX_CONCURRENT_REQUESTS,
    "max_input_length": MAX_INPUT_LENGTH,
    "max_batch_tokens": MAX_BATCH_REQUESTS * MAX_INPUT_LENGTH,
    "max_batch_requests": MAX_BATCH_REQUESTS,
    "max_client_batch_size": MAX_CLIENT_BATCH_SIZE,
    "auto_truncate": True,
    "tokenization_workers": 1,
    "version": f"freehire_embed-{version('freehire_embed')}",
    "sha": None,
    "docker_label": None,
}


class TokenizeRequest(BaseModel):
    """The body of /tokenize; fields that TEI does not know are ignored."""

    inputs: StrictStr | list[StrictStr]
    add_special_tokens: StrictBool = True

    @property
    def rows(self) -> list[str]:
        return [self.inputs] if isinstance(self.inputs, str) else self.inputs


class EmbedRequest(TokenizeRequest):
    """The body of /embed; `truncate` unset means true, as with `auto_truncate`."""

    truncate: StrictBool | None = None
    truncation_direction: Literal["right", "Right", "left", "Left"] = "right"
    prompt_name: StrictStr | None = None
    normalize: StrictBool = True
    dimensions: StrictInt | None = None


class Refusal(Exception):
    """A request answered with an error in TEI's form; the text never repeats an input."""

    def __init__(self, status: int, error_type: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.error_type = error_type


class Computed(NamedTuple):
    vectors: NDArray[np.float32]
    """Shape (rows, width), norm 1."""
    tokens: int
    """Of all rows, after truncation."""


class Service:
    """The routes. All work of the model is done by one thread, in the order of arrival, in small batches."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._turn = asyncio.Lock()
        self._rows_in_flight = 0
        self.counts: Counter[str] = Counter()
        """Rows embedded and tokens in them since the start."""

    @asynccontextmanager
    async def lifespan(self, _application: Starlette) -> AsyncIterator[None]:
        yield
        self._thread.shutdown(cancel_futures=True)

    async def embed(self, request: Request) -> Response:
        asked = await parse(request, EmbedRequest)
        done = await self.compute(request, asked)
        if done is None:
            return Response(status_code=499)
        return Response(
            orjson.dumps(done.vectors, option=orjson.OPT_SERIALIZE_NUMPY),
            media_type="application/json",
            headers={
                "x-compute-tokens": str(done.tokens),
                "x-compute-characters": str(sum(map(len, asked.rows))),
            },
        )

    async def compute(self, request: Request, asked: EmbedRequest) -> Computed | None:
        """The vectors of what is asked; None when nobody waits for them any more. Raises Refusal."""
        self._check(asked)
        self._rows_in_flight += len(asked.rows)
        try:
            rows = await self._call(self._prepare, asked)
            vectors = np.empty((len(rows), self._model.width), dtype=np.float32)
            for start in range(0, len(rows), MAX_BATCH_REQUESTS):
                batch = slice(start, start + MAX_BATCH_REQUESTS)
                async with self._turn:
                    if await request.is_disconnected():
                        return None
                    vectors[batch] = await self._call(self._model.embed, rows[batch])
        finally:
            self._rows_in_flight -= len(asked.rows)
        if asked.dimensions is not None:
            vectors = np.ascontiguousarray(vectors[:, : asked.dimensions])
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        tokens = sum(row.tokens for row in rows)
        self.counts["te_embed_count"] += len(rows)
        self.counts["te_tokens_total"] += tokens
        return Computed(vectors, tokens)

    @property
    def rows_in_flight(self) -> int:
        return self._rows_in_flight

    async def tokenize(self, request: Request) -> Response:
        asked = await parse(request, TokenizeRequest)
        _check_rows(asked.rows)
        specials = 2 if asked.add_special_tokens else 0
        counts = [await self._call(self._model.count, text) - 2 + specials for text in asked.rows]
        return JSONResponse(
            [
                [_token(special=specials > 0 and index in (0, count - 1)) for index in range(count)]
                for count in counts
            ]
        )

    async def info(self, _request: Request) -> Response:
        return JSONResponse(INFO)

    async def health(self, _request: Request) -> Response:
        return Response()

    def _check(self, asked: EmbedRequest) -> None:
        _check_rows(asked.rows)
        if self._rows_in_flight + len(asked.rows) > MAX_CONCURRENT_REQUESTS:
            raise Refusal(429, "Overloaded", "Model is overloaded")
        if asked.prompt_name is not None:
            raise Refusal(422, "Validation", "`prompt_name` is not known: this model defines no prompts")
        if asked.truncation_direction.lower() == "left":
            raise Refusal(422, "Validation", "`truncation_direction` left is not supported by this server")
        if not asked.normalize:
            raise Refusal(422, "Validation", "`normalize` false is not supported by this server")
        if asked.dimensions is not None and not 0 < asked.dimensions <= self._model.width:
            raise Refusal(422, "Validation", f"`dimensions` must be from 1 to {self._model.width}")

    def _prepare(self, asked: EmbedRequest) -> list[Row]:
        if asked.truncate is False:
            for given in map(self._model.count, asked.rows):
                if given > MAX_INPUT_LENGTH:
                    raise Refusal(
                        422,
                        "Validation",
                        f"`inputs` must have less than {MAX_INPUT_LENGTH} tokens. Given: {given}",
                    )
        return [self._model.row(text) for text in asked.rows]

    async def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


def _token(*, special: bool) -> dict[str, Any]:
    return {"id": None, "text": None, "special": special, "start": None, "stop": None}


def _check_rows(rows: list[str]) -> None:
    if len(rows) > MAX_CLIENT_BATCH_SIZE:
        raise Refusal(
            422,
            "Validation",
            f"batch size {len(rows)} > maximum allowed batch size {MAX_CLIENT_BATCH_SIZE}",
        )
    if not rows or not all(rows):
        raise Refusal(400, "Empty", "`inputs` cannot be empty")


async def parse(request: Request, shape: type[R]) -> R:
    """The body of a request in that shape."""
    # What is not even a request of the right shape is answered in plain text, as TEI does.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Expected request with `Content-Type: application/json`")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > PAYLOAD_LIMIT:
            raise HTTPException(413, "Failed to buffer the request body: length limit exceeded")
    try:
        return shape.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError:
        raise HTTPException(400, "Failed to parse the request body as JSON") from None
    except ValidationError as error:
        fields = sorted({str(problem["loc"][0]) if problem["loc"] else "body" for problem in error.errors()})
        raise HTTPException(422, f"The request body has the wrong shape in: {', '.join(fields)}") from None
