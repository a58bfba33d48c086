"""The local model server: both dialects around one model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from freehire_embed.local.embed_api import Refusal, Service
from freehire_embed.local.model import InferenceError
from freehire_embed.local.openai_api import OpenAiForm

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from freehire_embed.local.model import Model


async def _answer(_request: Request, error: Exception) -> Response:
    if not isinstance(error, Refusal):
        error = Refusal(424, "Backend", str(error))
    return JSONResponse({"error": str(error), "error_type": error.error_type}, error.status)


def application(model: Model) -> Starlette:
    """The ASGI application around `model`, which it keeps to one thread of its own."""
    service = Service(model)
    openai = OpenAiForm(service)
    return Starlette(
        routes=[
            Route("/v1/embeddings", openai.embeddings, methods=["POST"]),
            Route("/v1/models", openai.models, methods=["GET"]),
            Route("/metrics", openai.metrics, methods=["GET"]),
            Route("/embed", service.embed, methods=["POST"]),
            Route("/", service.embed, methods=["POST"]),
            Route("/tokenize", service.tokenize, methods=["POST"]),
            Route("/info", service.info, methods=["GET"]),
            Route("/health", service.health, methods=["GET"]),
            Route("/", service.health, methods=["GET"]),
        ],
        exception_handlers={Refusal: _answer, InferenceError: _answer},
        lifespan=service.lifespan,
    )
