"""What a server says it is: TEI's /info, or the list of models of the OpenAI form, checked against the profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freehire_embed.wire.faults import ConfigFault
from freehire_embed.wire.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.profiles import Profile
    from freehire_embed.wire.address import Server

_SHOWN_MODELS = 8


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What the server tells; None where it does not."""

    model_id: str | None = None
    max_client_batch_size: int | None = None
    max_concurrent_requests: int | None = None
    max_input_length: int | None = None
    max_batch_tokens: int | None = None


class OtherModel(ConfigFault):
    """By its own word the server serves another model than the profile's."""


def read_info(answer: Any, profile: Profile, server: Server, private: Sequence[str] = ()) -> ServerInfo:
    """Raises ConfigFault unless `answer` (the JSON of /info) describes a server for `profile`.

    What it tells is shown without the `private` texts.
    """
    model_id = answer.get("model_id") if isinstance(answer, dict) else None
    if not isinstance(model_id, str):
        raise ConfigFault(
            f"{server}: /info beside it names no model_id. Is this Text Embeddings Inference? "
            "Of a server with the OpenAI form give the path, .../v1, or set EMBED_API=openai. "
            "For a server without /info set EMBED_VERIFY_MODEL=false, then only the probe text is checked"
        )
    if model_id not in profile.served:
        raise OtherModel(
            f"{server} serves {redact(model_id, private)!r}, but {profile.identity} wants "
            f"{' or '.join(profile.served)}. Point EMBED_URL at that model, set EMBED_MODEL to the identity of "
            "this one, or add the name to `served` in the file named by EMBED_PROFILES"
        )
    kinds = answer.get("model_type")
    if isinstance(kinds, dict):
        kind = {str(name).lower(): value for name, value in kinds.items()}
        if "embedding" not in kind:
            raise ConfigFault(f"{server} serves a {redact('/'.join(kind), private)}, not an embedding model")
        pooling = kind["embedding"].get("pooling") if isinstance(kind["embedding"], dict) else None
        if isinstance(pooling, str) and pooling.lower() != profile.pooling.lower():
            raise ConfigFault(
                f"{server} pools by {redact(pooling, private)!r}, but {profile.identity} wants "
                f"{profile.pooling!r}: start the server with --pooling {profile.pooling}"
            )
    return ServerInfo(
        model_id,
        max_client_batch_size=_positive(answer.get("max_client_batch_size")),
        max_concurrent_requests=_positive(answer.get("max_concurrent_requests")),
        max_input_length=_positive(answer.get("max_input_length")),
        max_batch_tokens=_positive(answer.get("max_batch_tokens")),
    )


def read_models(answer: Any, profile: Profile, server: Server, private: Sequence[str] = ()) -> ServerInfo:
    """The same of the JSON of /v1/models; one that is no list of models says nothing, and the probe decides."""
    data = answer.get("data") if isinstance(answer, dict) else None
    models = {
        entry["id"]: entry
        for entry in (data if isinstance(data, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    }
    if not models:
        return ServerInfo()
    # Ollama lists a name with its tag and takes it without.
    wanted = profile.served[0]
    known = next((models[name] for name in (wanted, f"{wanted}:latest") if name in models), None)
    if known is None and not models.keys().isdisjoint(profile.served):
        known = models[next(name for name in profile.served if name in models)]
    if known is None:
        listed = ", ".join(sorted(models)[:_SHOWN_MODELS]) + (", ..." if len(models) > _SHOWN_MODELS else "")
        raise OtherModel(
            f"{server} lists {redact(listed, private)}, but {profile.identity} asks for {wanted}. Put the "
            "server's own name for the model first in `served` (EMBED_PROFILES), or set EMBED_VERIFY_MODEL=false: "
            "then only the probe text is checked"
        )
    return ServerInfo(known["id"], max_input_length=_positive(known.get("max_model_len")))


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
