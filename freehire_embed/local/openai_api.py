"""The same model in the OpenAI form, as TEI has it beside its own: /v1/embeddings, /v1/models, and /metrics.

The ``model`` of a request is not checked. A text longer than the model takes is cut.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Literal

import orjson
from pydantic import BaseModel, StrictInt, StrictStr
from starlette.responses import JSONResponse, PlainTextResponse, Response

from freehire_embed.local.embed_api import EmbedRequest, Refusal, parse
from freehire_embed.local.model import InferenceError
from freehire_embed.profiles import E5_SMALL

if TYPE_CHECKING:
    from starlette.requests import Request

    from freehire_embed.local.embed_api import Service


class EmbeddingsRequest(BaseModel):
    """The body of /v1/embeddings; what it has besides is ignored."""

    input: StrictStr | list[StrictStr]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: StrictInt | None = None


class OpenAiForm:
    """The routes, on top of the service that has the model."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def embeddings(self, request: Request) -> Response:
        asked = await parse(request, EmbeddingsRequest)
        try:
            done = await self._service.compute(
                request, EmbedRequest(inputs=asked.input, dimensions=asked.dimensions)
            )
        except (Refusal, InferenceError) as error:
            status, kind = (
                (error.status, error.error_type) if isinstance(error, Refusal) else (424, "Backend")
            )
            return JSONResponse({"message": str(error), "code": status, "type": kind}, status)
        if done is None:
            return Response(status_code=499)
        encoded = asked.encoding_format == "base64"
        data = [
            {
                "object": "embedding",
                "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode() if encoded else vector,
                "index": index,
            }
            for index, vector in enumerate(done.vectors)
        ]
        usage = {"prompt_tokens": done.tokens, "total_tokens": done.tokens}
        body = {"object": "list", "data": data, "model": E5_SMALL, "usage": usage}
        return Response(orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")

    async def models(self, _request: Request) -> Response:
        entry = {"id": E5_SMALL, "object": "model", "created": 0, "owned_by": "local"}
        return JSONResponse({"object": "list", "data": [entry]})

    async def metrics(self, _request: Request) -> Response:
        """Prometheus text, under TEI's names where it has them."""
        counts = self._service.counts
        return PlainTextResponse(
            "# TYPE te_queue_size gauge\n"
            f"te_queue_size {self._service.rows_in_flight}\n"
            "# TYPE te_embed_count counter\n"
            f"te_embed_count {counts['te_embed_count']}\n"
            "# TYPE te_tokens_total counter\n"
            f"te_tokens_total {counts['te_tokens_total']}\n"
        )
