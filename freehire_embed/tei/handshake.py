"""Is this the server we mean? /info says which model it claims to be, the probe shows which one it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freehire_embed.wire.faults import ConfigFault
from freehire_embed.wire.redaction import redact
from freehire_embed.wire.refusal import Kind, Refusal
from freehire_embed.wire.retry import persist

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.tei.client import TeiClient
    from freehire_embed.tei.proof import Proof
    from freehire_embed.tei.stats import Tally
    from freehire_embed.wire.address import Server
    from freehire_embed.wire.pace import Patience

_INFO_SECONDS = 10.0
"""/info waits for no inference, so it is quick or not there."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What /info tells; None where it does not."""

    model_id: str
    max_client_batch_size: int | None = None
    max_concurrent_requests: int | None = None
    max_input_length: int | None = None
    max_batch_tokens: int | None = None


class Probe:
    """The known-good text, asked alone: whether the server is well, and which model it serves."""

    def __init__(
        self,
        client: TeiClient,
        proof: Proof,
        profile: Profile,
        patience: Patience,
        tally: Tally,
        timeout_seconds: float,
    ) -> None:
        self._client = client
        self._proof = proof
        self._profile = profile
        self._patience = patience
        self._tally = tally
        self._timeout_seconds = timeout_seconds
        self.turn = asyncio.Lock()
        """Held by whoever finds out about the server's health, so that only one does."""

    async def once(self) -> Vector | Refusal:
        """One attempt: the vector, or what came instead. Raises ConfigFault where no waiting helps."""
        self._tally.probes += 1
        server = self._client.endpoint.server
        answer = await self._proof.alone(self._timeout_seconds)
        if isinstance(answer, Refusal):
            if answer.kind is Kind.CONFIG:
                raise ConfigFault(f"{server} cannot be used: {answer.detail}")
            if answer.kind in (Kind.ROW, Kind.SIZE, Kind.LIMIT):
                raise ConfigFault(f"{server} refuses even the probe text: {answer.detail}")
            if answer.kind is Kind.FOREIGN and self._proof.reference is None:
                raise ConfigFault(f"{server} does not serve {self._profile.identity}: {answer.detail}")
        return answer

    async def persist(self, warmup_seconds: float | None = None) -> tuple[Vector, int]:
        """The vector, and how many attempts it took. Raises UpstreamFault or ConfigFault.

        Tries as often as the retry policy says, or, given a warm-up, until its seconds are spent.
        """
        return await persist(
            self.once,
            self._client.endpoint.server,
            self._patience,
            attempts=self._patience.attempts if warmup_seconds is None else None,
            seconds=warmup_seconds,
        )


async def ask_info(
    client: TeiClient, profile: Profile, patience: Patience, warmup_seconds: float
) -> ServerInfo:
    """What the server says it is, checked against the profile.

    Waits up to `warmup_seconds` for a server that is starting. Raises UpstreamFault when it does not come
    up, ConfigFault when there is no usable /info or it tells of another model.
    """
    server = client.endpoint.server

    async def once() -> Any:
        answer = await client.info(_INFO_SECONDS)
        if isinstance(answer, Refusal) and answer.kind not in (Kind.UPSTREAM, Kind.TIMEOUT, Kind.BUSY):
            raise ConfigFault(
                f"{server}: no usable /info beside it ({answer.detail}). Check the URL and EMBED_API_KEY; "
                "for a server without /info set EMBED_VERIFY_MODEL=false, then only the probe text is checked"
            )
        return answer

    answer, _ = await persist(once, server, patience, seconds=warmup_seconds)
    key = client.endpoint.api_key
    return read_info(answer, profile, server, [key] if key else [])


def read_info(answer: Any, profile: Profile, server: Server, private: Sequence[str] = ()) -> ServerInfo:
    """Raises ConfigFault unless `answer` (the JSON of /info) describes a server for `profile`.

    What it tells is shown without the `private` texts.
    """
    model_id = answer.get("model_id") if isinstance(answer, dict) else None
    if not isinstance(model_id, str):
        raise ConfigFault(
            f"{server}: /info beside it names no model_id. Is this Text Embeddings Inference? "
            "For a server without /info set EMBED_VERIFY_MODEL=false, then only the probe text is checked"
        )
    if model_id not in profile.served:
        raise ConfigFault(
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
                f"{profile.pooling!r}: "
                f"start the server with --pooling {profile.pooling}"
            )
    return ServerInfo(
        model_id,
        max_client_batch_size=_positive(answer.get("max_client_batch_size")),
        max_concurrent_requests=_positive(answer.get("max_concurrent_requests")),
        max_input_length=_positive(answer.get("max_input_length")),
        max_batch_tokens=_positive(answer.get("max_batch_tokens")),
    )


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
