"""Is this the server we mean? Its own word tells which model it claims, the probe shows which one it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from freehire_embed.tei.about import read_info, read_models
from freehire_embed.wire.faults import ConfigFault
from freehire_embed.wire.refusal import Kind, Refusal
from freehire_embed.wire.retry import persist

if TYPE_CHECKING:
    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.tei.about import ServerInfo
    from freehire_embed.tei.client import TeiClient
    from freehire_embed.tei.proof import Proof
    from freehire_embed.tei.stats import Tally
    from freehire_embed.wire.pace import Patience

_INFO_SECONDS = 10.0
"""/info waits for no inference, so it is quick or not there."""


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


async def ask_about(
    client: TeiClient, profile: Profile, patience: Patience, warmup_seconds: float
) -> ServerInfo:
    """What the server says it is, checked against the profile.

    Waits up to `warmup_seconds` for a server that is starting. Raises UpstreamFault when it does not come up,
    ConfigFault when it tells of another model, or when TEI has no usable /info. In the OpenAI form the list of
    models may be missing or closed to the key: then the probe alone decides.
    """
    endpoint = client.endpoint

    async def once() -> Any:
        answer = await client.about(_INFO_SECONDS)
        if not isinstance(answer, Refusal) or answer.kind in _PASSING:
            return answer
        if endpoint.api == "openai" and answer.cause in _NO_LIST:
            return None
        raise ConfigFault(
            f"{endpoint.server} cannot be used: {answer.detail}"
            if answer.cause in ("certificate", "tls")
            else f"{endpoint.server}: no usable {endpoint.about_name} beside it ({answer.detail}). Check the URL "
            f"and EMBED_API_KEY. {_WAYS_OUT[endpoint.api]}"
        )

    answer, _ = await persist(once, endpoint.server, patience, seconds=warmup_seconds)
    read = read_info if endpoint.api == "tei" else read_models
    return read(answer, profile, endpoint.server, [endpoint.api_key] if endpoint.api_key else [])


_PASSING = (Kind.UPSTREAM, Kind.TIMEOUT, Kind.BUSY)
_NO_LIST = ("403", "404", "405", "501")
_WAYS_OUT = {
    "tei": "Of a server with the OpenAI form give the path, .../v1, or set EMBED_API=openai; for another without "
    "/info set EMBED_VERIFY_MODEL=false, then only the probe text is checked",
    "openai": "To go by the probe text alone set EMBED_VERIFY_MODEL=false",
}
