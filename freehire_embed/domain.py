"""The nouns that travel through the pipeline and the one ending of every claim.

Data goes one way: ``Claim`` (an outbox entry we hold) -> ``Wave`` (one claim's worth of entries) ->
``ChunkedWave`` (texts cut into passages) -> ``EmbeddedWave`` (passages with vectors) -> ``WaveReport``
(how each entry ended). Nothing here knows SQL, HTTP or Dagster.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


class Outcome(StrEnum):
    """The endings of a claimed entry; each claimed entry gets exactly one."""

    INDEXED = "indexed"
    REMOVED = "removed"
    FAILED = "failed"
    DEAD_LETTERED = "dead_lettered"
    RELEASED = "released"
    ABANDONED = "abandoned"
    LOST = "lost"


class HaltKind(StrEnum):
    """Why a wave could not be finished, when no posting is to blame."""

    UPSTREAM = "upstream"
    """The server, the network or a proxy. The run stops claiming; entries are released."""
    UNDECIDED = "undecided"
    """The server answers its probe, yet these texts could not be embedded and no single one could be blamed.
    Entries are released; those past EMBED_UPSTREAM_GRACE_DAYS are dead-lettered."""
    CONFIG = "config"
    """Wrong model, width, key, URL or shape. The run stops with exit code 2; entries are released."""
    CALL_TIMEOUT = "call_timeout"
    """The wave outran EMBED_CALL_TIMEOUT_SECONDS. Entries stay claimed until the lease ends."""
    DATABASE = "database"
    """Postgres refused the work for a reason that is no row's fault. Entries are released."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Ends a run early: the kind decides outcome and exit code, the reason is for the operator."""

    kind: HaltKind
    reason: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One outbox entry held by this run.

    The fence is the claim stamp; a wave shares one, and its ``Lease`` keeps the current value.
    """

    entry_id: int
    job_id: int
    attempts: int
    claims: int
    """How often it was claimed since its last outcome, this claim included."""
    crashed: bool
    """The previous claim ended with its worker: neither an outcome nor an abandonment."""
    past_grace: bool
    """The entry is older than EMBED_UPSTREAM_GRACE_DAYS."""
    closed: bool
    """The posting is closed, a repost or not tech: its vectors are to be removed."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One input of the embedder, or a stored vector that can be kept."""

    text: str
    sha256: bytes
    """sha256 of identity + NUL + text: the key under which an unchanged passage is kept."""
    stored_index: int | None = None
    """chunk_index of the row that already holds this passage's vector; None = to be embedded."""
    over_limit: bool = False
    """The server probably cuts it: more tokens than the model takes, by estimate. False for a kept one."""


@dataclass(frozen=True, slots=True)
class Document:
    """An open posting of a wave, with the hash that was read together with its text."""

    claim: Claim
    content_hash: str | None
    passages: tuple[Passage, ...]
    stored_count: int
    """Rows that job_semantic_chunks held for the posting when it was read."""


@dataclass(frozen=True, slots=True)
class RowFault:
    """A posting's own fault; ``final`` ones are dead-lettered without further attempts."""

    claim: Claim
    reason: str
    final: bool = False
    content_hash: str | None = None
    """The hash read with the text ('' = the posting has none); None = the text was never read."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the embedding server did for a wave."""

    answers: int = 0
    """Requests that brought vectors of the right model."""
    foreign: int = 0
    """Answers that were of another model, and not used."""

    @property
    def doubt(self) -> str | None:
        """What an operator has to look after; None = every answer was of the right model."""
        if not self.foreign:
            return None
        return (
            f"{self.foreign} of {self.answers + self.foreign} answers were of another model; none was used, all "
            "were asked for again. See that all servers behind EMBED_URL serve the same one"
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)))


@dataclass(frozen=True, slots=True)
class WaveReport:
    """How the entries of a wave (or, added up, of a run) ended."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    no_text: int = 0
    reused: int = 0
    """Passages whose stored vector was kept."""
    embedded: int = 0
    """Passages stored with a vector that this run had from the server."""
    over_limit: Counter[str] = field(default_factory=Counter)
    """Of those, by language, the ones that are longer than the model takes, so that the server cut them."""
    errors: tuple[str, ...] = ()
    """First few row faults, each with its job id; never posting text."""
    usage: Usage = field(default_factory=Usage)
    halt: Halt | None = None

    def __add__(self, other: WaveReport) -> WaveReport:
        return WaveReport(
            outcomes=self.outcomes + other.outcomes,
            no_text=self.no_text + other.no_text,
            reused=self.reused + other.reused,
            embedded=self.embedded + other.embedded,
            over_limit=self.over_limit + other.over_limit,
            usage=self.usage + other.usage,
            errors=(*self.errors, *other.errors)[:10],
            halt=_graver(self.halt, other.halt),
        )

    @property
    def claimed(self) -> int:
        return sum(self.outcomes.values())


def _graver(first: Halt | None, second: Halt | None) -> Halt | None:
    """Somebody has to act on a config halt, whatever else went wrong; else the first one is the cause."""
    if second and second.kind is HaltKind.CONFIG and not (first and first.kind is HaltKind.CONFIG):
        return second
    return first or second


@dataclass(frozen=True, slots=True)
class EnqueueReport:
    """What one enqueue put into the queue, by reason, and what it cleaned up."""

    missing: int = 0
    content: int = 0
    model: int = 0
    clear: int = 0
    revived: int = 0
    """Dead letters that came back: their content changed, or the posting must now be cleared."""
    retired: int = 0
    """Entries of other models that were dropped."""
    reaped: int = 0
    """Dead letters of postings that need nothing any more."""

    def __add__(self, other: EnqueueReport) -> EnqueueReport:
        return EnqueueReport(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(EnqueueReport)))

    @property
    def enqueued(self) -> int:
        return self.missing + self.content + self.model + self.clear


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of one wave's passages, in input order.

    A passage is either in ``vectors`` (not None), or in ``faults`` (its own fault, with the evidence), or
    unfinished, and then ``halt`` says why.
    """

    vectors: Sequence[Vector | None]
    faults: Mapping[int, str] = field(default_factory=dict)
    halt: Halt | None = None
    usage: Usage = field(default_factory=Usage)
