"""Is this the server we mean? /info says which model it claims to be, the probe shows which one it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from freehire_embed.wire.faults import ConfigFault
from freehire_embed.wire.refusal import Kind, Refusal
from freehire_embed.wire.retry import persist

if TYPE_CHECKING:
    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.tei.client import TeiClient
    from freehire_embed.tei.stats import Tally
    from freehire_embed.wire.pace import Patience

PROBE_TEXT = "A calm river runs past the old library, and 7 boats wait for the evening tide."
"""Known to be good: embedded before, between and after the rows that are in doubt. Never change it; the
vectors remembered for identities were made from it."""
SAME_MODEL_COSINE = 0.99
"""fp16 in another batch stays above 0.999; another model of the same width is near chance."""

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
    """The known-good text and the vector it must give."""

    def __init__(
        self, client: TeiClient, profile: Profile, patience: Patience, tally: Tally, timeout_seconds: float
    ) -> None:
        self._client = client
        self._profile = profile
        self._patience = patience
        self._tally = tally
        self._timeout_seconds = timeout_seconds
        self._row = orjson.dumps(profile.passage_prefix + PROBE_TEXT)
        self.turn = asyncio.Lock()
        """Held by whoever finds out about the server's health, so that only one does."""
        self.reference: Vector | None = None

    async def once(self) -> Vector | Refusal:
        """One attempt: the vector, or what came instead. Raises ConfigFault where no waiting helps."""
        self._tally.probes += 1
        shown = self._client.endpoint.shown
        answer = await self._client.embed([self._row], self._timeout_seconds)
        if isinstance(answer, Refusal):
            if answer.kind is Kind.CONFIG:
                raise ConfigFault(f"EMBED_URL {shown} cannot be used: {answer.detail}")
            if answer.kind in (Kind.ROW, Kind.SIZE, Kind.LIMIT):
                raise ConfigFault(f"EMBED_URL {shown} refuses even the probe text: {answer.detail}")
            return answer
        vector = answer.vectors[0]
        if vector is None:
            if answer.foreign:
                raise ConfigFault(
                    f"EMBED_URL {shown} does not serve {self._profile.identity}: {answer.defects[0]}"
                )
            return Refusal(Kind.UPSTREAM, "defect", f"{answer.defects[0]} for the probe text")
        if self.reference is not None and (likeness := cosine(vector, self.reference)) < SAME_MODEL_COSINE:
            raise ConfigFault(
                f"EMBED_URL {shown} serves another model than before: the cosine of the probe text's vector to the "
                f"known one is {likeness:.3f}, not {SAME_MODEL_COSINE} or more"
            )
        return vector

    async def persist(self, warmup_seconds: float | None = None) -> tuple[Vector, int]:
        """The vector, and how many attempts it took. Raises UpstreamFault or ConfigFault.

        Tries as often as the retry policy says, or, given a warm-up, until its seconds are spent.
        """
        return await persist(
            self.once,
            self._client.endpoint.verdict,
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
    shown = client.endpoint.shown

    async def once() -> Any:
        answer = await client.info(_INFO_SECONDS)
        if isinstance(answer, Refusal) and answer.kind not in (Kind.UPSTREAM, Kind.TIMEOUT, Kind.BUSY):
            raise ConfigFault(
                f"EMBED_URL {shown}: no usable /info beside it ({answer.detail}). Check the URL and EMBED_API_KEY; "
                "for a server without /info set EMBED_VERIFY_MODEL=false, then only the probe text is checked"
            )
        return answer

    answer, _ = await persist(once, client.endpoint.verdict, patience, seconds=warmup_seconds)
    return read_info(answer, profile, shown)


def read_info(answer: Any, profile: Profile, shown: str) -> ServerInfo:
    """Raises ConfigFault unless `answer` (the JSON of /info) describes a server for `profile`."""
    model_id = answer.get("model_id") if isinstance(answer, dict) else None
    if not isinstance(model_id, str):
        raise ConfigFault(
            f"EMBED_URL {shown}: /info beside it names no model_id. Is this Text Embeddings Inference? "
            "For a server without /info set EMBED_VERIFY_MODEL=false, then only the probe text is checked"
        )
    if model_id not in profile.served:
        raise ConfigFault(
            f"EMBED_URL {shown} serves {model_id[:100]!r}, but {profile.identity} wants "
            f"{' or '.join(profile.served)}. Point EMBED_URL at that model, set EMBED_MODEL to the identity of "
            "this one, or add the name to `served` in the file named by EMBED_PROFILES"
        )
    kinds = answer.get("model_type")
    if isinstance(kinds, dict):
        kind = {str(name).lower(): value for name, value in kinds.items()}
        if "embedding" not in kind:
            raise ConfigFault(f"EMBED_URL {shown} serves a {'/'.join(kind)[:40]}, not an embedding model")
        pooling = kind["embedding"].get("pooling") if isinstance(kind["embedding"], dict) else None
        if isinstance(pooling, str) and pooling.lower() != profile.pooling.lower():
            raise ConfigFault(
                f"EMBED_URL {shown} pools by {pooling[:40]!r}, but {profile.identity} wants {profile.pooling!r}: "
                f"start the server with --pooling {profile.pooling}"
            )
    return ServerInfo(
        model_id,
        max_client_batch_size=_positive(answer.get("max_client_batch_size")),
        max_concurrent_requests=_positive(answer.get("max_concurrent_requests")),
        max_input_length=_positive(answer.get("max_input_length")),
        max_batch_tokens=_positive(answer.get("max_batch_tokens")),
    )


def cosine(one: Vector, other: Vector) -> float:
    """Of two vectors of any norm; -1 where the widths differ, which no likeness can come near."""
    if one.shape != other.shape:
        return -1.0
    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
