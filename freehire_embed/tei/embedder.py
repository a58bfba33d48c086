"""The public face: synchronous calls, a thread-safe object, one server, one profile."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

import orjson

from freehire_embed.domain import Embeddings, Halt, HaltKind
from freehire_embed.tei.blame import Stopped, Verdicts, WaveEmbedding
from freehire_embed.tei.client import TeiClient
from freehire_embed.tei.dialects import dialect_of
from freehire_embed.tei.endpoint import Endpoint
from freehire_embed.tei.handshake import Probe, ask_about
from freehire_embed.tei.limits import Limits
from freehire_embed.tei.proof import KNOWN_ROWS, SAME_MODEL_COSINE, Proof, cosine
from freehire_embed.tei.stats import Tally
from freehire_embed.wire.background import BackgroundLoop
from freehire_embed.wire.faults import ConfigFault, ServerFault
from freehire_embed.wire.pace import Gate, Patience
from freehire_embed.wire.refusal import Kind, Refusal
from freehire_embed.wire.retry import persist

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from pydantic import SecretStr

    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.settings import Api
    from freehire_embed.tei.about import ServerInfo
    from freehire_embed.tei.stats import TeiStats

logger = logging.getLogger(__name__)

_MOST_BODY_BYTES = 1_900_000
"""TEI's payload limit is 2,000,000 by default; the rest of the body fits into the difference."""
_MOST_TOKENS = 16_384
"""TEI's max_batch_tokens by default: one batch of the device."""
_LAST_TRY_BEGINS = 0.8
"""Of the time that a question has: an attempt that begins later could not be answered within it."""
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")


class TeiEmbedder:
    """Embeds passages and queries with one Text Embeddings Inference server.

    Any thread may call it, several at once; `concurrency` bounds the requests of all of them together.
    Vectors are float32 of shape (profile.width,) and norm 1. Close it, or use it as a context manager.
    Raises SettingsError for a URL or key that cannot be used.
    """

    def __init__(
        self,
        *,
        url: str,
        api: Api | None = None,
        api_key: SecretStr | None,
        profile: Profile,
        concurrency: int = 1,
        adaptive: bool = True,
        attempt_timeout_seconds: float = 60,
        warmup_seconds: float = 30,
        verify_model: bool = True,
        rows_per_request: int = 31,
        patience: Patience | None = None,
    ) -> None:
        """`adaptive` finds the concurrency, `concurrency` at most, that keeps the server busy and no queue at it.

        `rows_per_request` counts passages, beside which a known row rides; `patience` is the retry policy.
        """
        self._profile = profile
        self._warmup_seconds = warmup_seconds
        self._verify_model = verify_model
        self._attempt_timeout_seconds = attempt_timeout_seconds
        self._patience = patience or Patience()
        self._tally = Tally()
        endpoint = Endpoint.of(url, api_key, api)
        self._client = TeiClient(
            endpoint,
            dialect_of(endpoint.api, profile),
            token_limit=profile.token_limit,
            tally=self._tally,
        )
        self._proof = Proof(self._client, profile)
        self._probe = Probe(
            self._client, self._proof, profile, self._patience, self._tally, attempt_timeout_seconds
        )
        self._gate = Gate(concurrency, adaptive=adaptive)
        self._limits = Limits(rows=rows_per_request, bytes=_MOST_BODY_BYTES, tokens=_MOST_TOKENS)
        self._verdicts = Verdicts()
        self._background = BackgroundLoop()

    def preflight(self, reference: Vector | None = None) -> Vector:
        """Proves that the server is the one the profile means; gives the probe text's vector.

        `reference` is that vector as remembered from earlier runs. Waits up to `warmup_seconds` for a
        server that is starting. Raises UpstreamFault or ConfigFault.
        """
        return self._background.run(self._preflight(reference))

    def embed(
        self,
        passages: Sequence[str],
        timeout_seconds: float | None = None,
        on_last: Callable[[], None] | None = None,
    ) -> Embeddings:
        """The vectors of `passages`, in their order. Server faults are in the result, never raised.

        Identical passages are sent once. When `timeout_seconds` (None or 0 = unbounded) runs out, what is
        finished is kept. A config fault voids everything: no vector of a server in doubt leaves here.
        `on_last` is called once, from another thread, when the last request is on its way and the server has
        answered others: a next call then finds it busy.
        """
        places: dict[str, int] = {}
        wanted = [places.setdefault(_sendable(text), len(places)) for text in passages]
        blank = {place for text, place in places.items() if not text.strip()}
        rows = [orjson.dumps(text) for text in places]
        sent = [place for place in range(len(rows)) if place not in blank]
        wave = self._wave([rows[place] for place in sent], on_last)
        if sent:
            self._background.run(self._finish(wave, timeout_seconds or None))
        halt = wave.halt
        if halt and halt.kind is HaltKind.CONFIG:
            return Embeddings([None] * len(wanted), halt=halt, usage=wave.usage)
        doubts = wave.doubts(self._verdicts)
        vectors = dict(zip(sent, wave.vectors, strict=True))
        faults = {} if doubts else {sent[row]: blame.reason for row, blame in wave.blamed.items()}
        faults |= dict.fromkeys(blank, "an empty passage")
        return Embeddings(
            vectors=[vectors.get(place) for place in wanted],
            faults={index: faults[place] for index, place in enumerate(wanted) if place in faults},
            halt=halt or doubts,
            usage=wave.usage,
        )

    def embed_query(self, text: str, timeout_seconds: float = 10) -> Vector:
        """The vector of a question; the profile's query prefix is added here.

        Raises UpstreamFault or ConfigFault, or a plain ServerFault when the server refuses this text.
        """
        query = _sendable(f"{self._profile.query_prefix}{text.strip()}")
        return self._background.run(self._query(orjson.dumps(query), timeout_seconds))

    @property
    def stats(self) -> TeiStats:
        return self._tally.snapshot(concurrency=self._gate.allowed)

    def close(self) -> None:
        """Cancels what still runs and closes the connections; may be called again."""
        self._background.close(self._client.close)

    def __enter__(self) -> TeiEmbedder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _preflight(self, reference: Vector | None) -> Vector:
        server = self._client.endpoint.server
        try:
            self._respect(await ask_about(self._client, self._profile, self._patience, self._warmup_seconds))
        except ConfigFault:
            if self._verify_model:
                raise
            logger.info("EMBED_VERIFY_MODEL=false: %s is checked by its probe vector alone", server)
        self._proof.reference = None
        vector, _ = await self._probe.persist(self._warmup_seconds)
        if reference is not None and (likeness := cosine(vector, reference)) < SAME_MODEL_COSINE:
            raise ConfigFault(
                f"{server} does not give the vectors of {self._profile.identity} as embedded so far: "
                f"the cosine of the probe text's vector to the remembered one is {likeness:.3f}, not "
                f"{SAME_MODEL_COSINE} or more. Check the server's model, revision, pooling and default prompt"
            )
        self._proof.reference = vector
        return vector

    def _respect(self, info: ServerInfo) -> None:
        """At most half of the server's slots, one a row: the rest is for those who ask questions."""
        if info.max_client_batch_size:
            rows = info.max_client_batch_size - KNOWN_ROWS
            if rows < 1:
                raise ConfigFault(
                    f"{self._client.endpoint.server} takes one row a request, so that no answer can prove itself: "
                    "start the server with --max-client-batch-size of 2 or more"
                )
            self._limits.lower_rows(rows, "/info: max_client_batch_size")
        if info.max_batch_tokens:
            self._limits.tokens = min(self._limits.tokens, info.max_batch_tokens)
        if info.max_concurrent_requests:
            ours = max(info.max_concurrent_requests // 2, 1 + KNOWN_ROWS)
            self._limits.lower_rows(ours - KNOWN_ROWS, "half of /info: max_concurrent_requests")
            most = max(ours // (self._limits.rows + KNOWN_ROWS), 1)
            if most < self._gate.most:
                logger.info(
                    "concurrency lowered from %d to %d: half of the server's slots", self._gate.most, most
                )
                self._gate.cap(most)
        if info.max_input_length:
            self._client.token_limit = info.max_input_length
            if info.max_input_length < self._profile.token_limit:
                logger.warning(
                    "the server cuts texts at %d tokens, %s counts on %d",
                    info.max_input_length,
                    self._profile.identity,
                    self._profile.token_limit,
                )

    def _wave(self, rows: Sequence[bytes], on_last: Callable[[], None] | None) -> WaveEmbedding:
        return WaveEmbedding(
            rows,
            client=self._client,
            proof=self._proof,
            probe=self._probe,
            gate=self._gate,
            limits=self._limits,
            patience=self._patience,
            tally=self._tally,
            attempt_timeout_seconds=self._attempt_timeout_seconds,
            on_last=on_last,
        )

    async def _finish(self, wave: WaveEmbedding, timeout_seconds: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_seconds), asyncio.TaskGroup() as tasks:
                for _ in range(self._gate.most):
                    tasks.create_task(wave.work())
        except* Stopped:
            pass
        except* TimeoutError:
            wave.halt = wave.halt or Halt(
                HaltKind.CALL_TIMEOUT,
                f"the wave took longer than EMBED_CALL_TIMEOUT_SECONDS={timeout_seconds:g}",
            )

    async def _query(self, row: bytes, timeout_seconds: float) -> Vector:
        server = self._client.endpoint.server
        clock = asyncio.get_running_loop().time
        end = clock() + timeout_seconds

        async def once() -> Vector | Refusal:
            answer = await self._proof.embed([row], end - clock())
            if not isinstance(answer, Refusal):
                vector = answer.vectors[0]
                return Refusal(Kind.UPSTREAM, "defect", answer.defects[0]) if vector is None else vector
            if answer.kind is Kind.CONFIG:
                raise ConfigFault(f"{server} cannot be used: {answer.detail}")
            if answer.kind in (Kind.ROW, Kind.SIZE, Kind.LIMIT):
                raise ServerFault(f"{server} refuses this query: {answer.detail}")
            return answer

        vector, _ = await persist(
            once,
            server,
            self._patience,
            attempts=self._patience.attempts,
            seconds=_LAST_TRY_BEGINS * timeout_seconds,
        )
        return vector


def _sendable(text: str) -> str:
    """Without NUL and surrogates, which no server takes; nearly all texts are without them."""
    return text if text.isascii() and "\0" not in text else _UNSENDABLE.sub("\ufffd", text)
