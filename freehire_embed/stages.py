"""The five stages as plain functions, without Dagster and without a loop.

    enqueue -> claim -> chunk -> embed -> commit

A stage never raises for what one posting, the server or the wave's time limit did: that travels with the wave to
`commit`, the one place where each claimed entry gets its outcome.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Protocol, TypeVar

from freehire_embed.chunks import TooManyChunks, estimate_tokens, passage_sha256, passages
from freehire_embed.domain import (
    Document,
    Halt,
    HaltKind,
    Outcome,
    Passage,
    RowFault,
    WaveReport,
)
from freehire_embed.store.divide import divide
from freehire_embed.store.faults import DatabaseDown, DatabaseFault
from freehire_embed.store.outbox import SUSPECT_AFTER_CLAIMS
from freehire_embed.text.language import detect_language
from freehire_embed.text.tokens import quick_bound
from freehire_embed.waves import ChunkedWave, EmbeddedDocument, EmbeddedWave

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from freehire_embed.domain import Claim, Embeddings, EnqueueReport
    from freehire_embed.lease import Lease
    from freehire_embed.profiles import Profile
    from freehire_embed.store.outbox import LoadedPosting
    from freehire_embed.waves import Wave

logger = logging.getLogger(__name__)

Part = TypeVar("Part")

_SHOWN_ERRORS = 5

# The estimate is an upper bound. Of 6,484 real passages by rule v1 204 are over the limit, and about as many are
# estimated at more than this times the limit.
_OVERESTIMATE = 1.03


class Outbox(Protocol):
    """The queue as the stages need it; `SemanticOutbox` is the one on Postgres."""

    def enqueue(self) -> EnqueueReport: ...
    def claim(self, limit: int) -> Wave | None: ...
    def load(self, job_ids: Sequence[int]) -> list[LoadedPosting]: ...
    def replace(self, lease: Lease, documents: Sequence[EmbeddedDocument]) -> dict[int, Outcome]: ...
    def clear(self, lease: Lease, claims: Sequence[Claim]) -> dict[int, Outcome]: ...
    def fail(self, lease: Lease, faults: Sequence[RowFault]) -> dict[int, bool]: ...
    def release(self, lease: Lease, entry_ids: Sequence[int]) -> set[int]: ...
    def abandon(self, lease: Lease, entry_ids: Sequence[int]) -> set[int]: ...


class Embedder(Protocol):
    """The server as the stages need it; `TeiEmbedder` is the one that speaks HTTP."""

    def embed(self, passages: Sequence[str], timeout_seconds: float | None = None) -> Embeddings: ...


def enqueue(outbox: Outbox) -> EnqueueReport:
    """Queues every posting whose vectors are missing, stale or to be removed. Idempotent."""
    return outbox.enqueue()


def claim(outbox: Outbox, batch_size: int) -> Wave | None:
    """Leases the next wave of at most `batch_size` entries, freshest first; None = nothing is claimable."""
    return outbox.claim(batch_size)


def chunk(outbox: Outbox, wave: Wave, profile: Profile) -> ChunkedWave:
    """Reads the wave's postings and cuts them into passages; keeps those whose vector is already stored."""
    poison = {
        c.entry_id: _poison(c) for c in wave.claims if c.crashed and c.claims > SUSPECT_AFTER_CLAIMS + 1
    }
    candidates = {c.job_id: c for c in wave.claims if c.entry_id not in poison}
    faults = list(poison.values())
    try:
        wave.lease.renew()
        with wave.lease.kept_alive():
            parts, rejected = divide([c.job_id for c in candidates.values() if not c.closed], outbox.load)
    except DatabaseFault as error:
        unread = tuple(c for c in candidates.values() if not c.closed)
        closed = tuple(c for c in candidates.values() if c.closed)
        return ChunkedWave(wave.lease, (), closed, tuple(faults), _database_halt(error), unread)
    faults += [
        RowFault(candidates[job_id], f"posting cannot be read: {error}", final=error.corrupted)
        for job_id, error in rejected.items()
    ]
    postings = {posting.job_id: posting for part in parts for posting in part}
    closed = tuple(c for c in candidates.values() if c.closed or _is_closed(postings.get(c.job_id)))
    documents = []
    for job_id, posting in postings.items():
        if posting.closed:
            continue
        try:
            documents.append(_document(candidates[job_id], posting, profile))
        except TooManyChunks as error:
            faults.append(RowFault(candidates[job_id], str(error), content_hash=posting.content_hash or ""))
    settled = {c.job_id for c in closed} | postings.keys() | rejected.keys()
    faults += [
        RowFault(c, "the posting does not exist any more", final=True)
        for job_id, c in candidates.items()
        if job_id not in settled
    ]
    return ChunkedWave(wave.lease, tuple(documents), closed, tuple(faults))


def embed(embedder: Embedder, chunked: ChunkedWave, timeout_seconds: float | None = None) -> EmbeddedWave:
    """Embeds the passages that have no stored vector.

    The lease is renewed meanwhile. After `timeout_seconds` (EMBED_CALL_TIMEOUT_SECONDS; None = no limit) the rest
    of the wave is left unfinished.
    """
    texts = chunked.to_embed
    halt = chunked.halt
    with chunked.lease.kept_alive():
        result = embedder.embed(texts, timeout_seconds) if texts else None
    if result is None:
        return EmbeddedWave(
            chunked.lease,
            tuple(EmbeddedDocument(document, ()) for document in chunked.documents),
            chunked.closed,
            chunked.faults,
            chunked.unread,
            halt,
        )
    done: list[EmbeddedDocument] = []
    faults = list(chunked.faults)
    unfinished = list(chunked.unread)
    position = 0
    for document in chunked.documents:
        span = range(position, position + sum(p.stored_index is None for p in document.passages))
        position = span.stop
        reason = next((result.faults[i] for i in span if i in result.faults), None)
        vectors = tuple(v for v in result.vectors[span.start : span.stop] if v is not None)
        if reason is not None:
            faults.append(RowFault(document.claim, reason, content_hash=document.content_hash or ""))
        elif len(vectors) == len(span):
            done.append(EmbeddedDocument(document, vectors))
        else:
            unfinished.append(document.claim)
    return EmbeddedWave(
        chunked.lease,
        tuple(done),
        chunked.closed,
        tuple(faults),
        tuple(unfinished),
        result.halt or halt,
        result.usage,
    )


def commit(outbox: Outbox, wave: EmbeddedWave) -> WaveReport:
    """Writes what is finished and gives every entry of the wave its one outcome.

    The closed part is cleared first, whatever becomes of the open part. A row that Postgres refuses is found by
    halves and charged; its neighbours are committed. Never raises for a fault: `WaveReport.halt` says why the run
    has to stop.
    """
    settlement = _Settlement(outbox, wave)
    settlement.renew()
    with wave.lease.kept_alive():
        settlement.clear()
        settlement.replace()
        settlement.fail()
        settlement.leave_unfinished()
    return settlement.report()


class _Settlement:
    """The bookkeeping of one commit: collects outcomes by entry while the parts of a wave are written."""

    def __init__(self, outbox: Outbox, wave: EmbeddedWave) -> None:
        self._outbox = outbox
        self._wave = wave
        self._outcomes: dict[int, Outcome] = {}
        self._faults = list(wave.faults)
        self._unfinished = list(wave.unfinished)
        self._halt = wave.halt

    def renew(self) -> None:
        try:
            self._wave.lease.renew()
        except DatabaseFault as error:
            self._halt = self._halt or _database_halt(error)

    def clear(self) -> None:
        self._write(self._wave.closed, lambda claims: self._outbox.clear(self._wave.lease, claims), _itself)

    def replace(self) -> None:
        self._write(
            self._wave.documents,
            lambda documents: self._outbox.replace(self._wave.lease, documents),
            lambda embedded: embedded.document.claim,
        )

    def _write(
        self,
        parts: Sequence[Part],
        work: Callable[[Sequence[Part]], dict[int, Outcome]],
        claim_of: Callable[[Part], Claim],
    ) -> None:
        by_entry = {claim_of(part).entry_id: part for part in parts}

        def write(entry_ids: Sequence[int]) -> None:
            self._outcomes |= work([by_entry[entry_id] for entry_id in entry_ids])

        try:
            _, rejected = divide(list(by_entry), write)
        except DatabaseFault as error:
            self._halt = self._halt or _database_halt(error)
            self._unfinished += [claim_of(p) for p in parts if claim_of(p).entry_id not in self._outcomes]
            return
        corrupted = [entry_id for entry_id, rejection in rejected.items() if rejection.corrupted]
        if len(corrupted) > 1:
            # All of them could be read a moment ago: what is damaged is where they are to be written.
            reason = f"Postgres cannot write {len(corrupted)} postings: {rejected[corrupted[0]]}"
            self._halt = self._halt or Halt(HaltKind.CONFIG, reason)
            for entry_id in corrupted:
                del rejected[entry_id]
                self._unfinished.append(claim_of(by_entry[entry_id]))
        for entry_id, rejection in rejected.items():
            part = by_entry[entry_id]
            content_hash = part.document.content_hash or "" if isinstance(part, EmbeddedDocument) else None
            reason = f"Postgres refuses the row: {rejection}"
            self._faults.append(RowFault(claim_of(part), reason, rejection.corrupted, content_hash))

    def fail(self) -> None:
        if not self._faults:
            return
        try:
            dead = self._outbox.fail(self._wave.lease, self._faults)
        except DatabaseFault as error:
            self._unbookable(error, [fault.claim for fault in self._faults])
            return
        for fault in self._faults:
            entry_id = fault.claim.entry_id
            if entry_id not in dead:
                self._outcomes[entry_id] = Outcome.LOST
            else:
                self._outcomes[entry_id] = Outcome.DEAD_LETTERED if dead[entry_id] else Outcome.FAILED

    def leave_unfinished(self) -> None:
        """Abandons what ran out of time, buries what nobody could embed past its grace, releases the rest."""
        if not self._unfinished:
            return
        halt = self._halt or Halt(HaltKind.UNDECIDED, "not embedded, and nothing says why")
        self._halt = halt
        entry_ids = [claim.entry_id for claim in self._unfinished]
        overdue = [c for c in self._unfinished if c.past_grace] if halt.kind is HaltKind.UNDECIDED else []
        try:
            if overdue:
                faults = [RowFault(c, f"past its grace: {halt.reason}", final=True) for c in overdue]
                dead = self._outbox.fail(self._wave.lease, faults)
                self._outcomes |= dict.fromkeys(dead, Outcome.DEAD_LETTERED)
                entry_ids = [entry_id for entry_id in entry_ids if entry_id not in dead]
            if halt.kind is HaltKind.CALL_TIMEOUT:
                ours, outcome = self._outbox.abandon(self._wave.lease, entry_ids), Outcome.ABANDONED
            else:
                ours, outcome = self._outbox.release(self._wave.lease, entry_ids), Outcome.RELEASED
        except DatabaseFault as error:
            self._unbookable(error, self._unfinished)
            return
        for entry_id in entry_ids:
            self._outcomes[entry_id] = outcome if entry_id in ours else Outcome.LOST

    def _unbookable(self, error: DatabaseFault, claims: Iterable[Claim]) -> None:
        """Bookkeeping that fails is not fatal: the entries stay leased and come back by themselves."""
        logger.warning("outcomes could not be written: %s", error)
        self._halt = self._halt or _database_halt(error)
        for claim in claims:
            self._outcomes.setdefault(claim.entry_id, Outcome.ABANDONED)

    def report(self) -> WaveReport:
        indexed = [
            e.document
            for e in self._wave.documents
            if self._outcomes.get(e.document.claim.entry_id) is Outcome.INDEXED
        ]
        passages_of = [passage for document in indexed for passage in document.passages]
        return WaveReport(
            outcomes=Counter(self._outcomes.values()),
            no_text=sum(not document.passages for document in indexed),
            reused=sum(passage.stored_index is not None for passage in passages_of),
            embedded=sum(passage.stored_index is None for passage in passages_of),
            over_limit=Counter(detect_language(p.text) for p in passages_of if p.over_limit),
            usage=self._wave.usage,
            errors=tuple(f"posting {f.claim.job_id}: {f.reason}" for f in self._faults[:_SHOWN_ERRORS]),
            halt=self._halt,
        )


def _document(claim: Claim, posting: LoadedPosting, profile: Profile) -> Document:
    kept: defaultdict[bytes, list[int]] = defaultdict(list)  # equal passages of a posting have equal hashes
    for index, stored_sha256 in sorted(posting.stored.items(), reverse=True):
        if stored_sha256 is not None:
            kept[stored_sha256].append(index)
    made = []
    for text in passages(posting.title, posting.company, posting.description, profile):
        sha256 = passage_sha256(profile.identity, text)
        stored = kept[sha256].pop() if kept[sha256] else None
        made.append(Passage(text, sha256, stored, stored is None and is_cut(text, profile)))
    return Document(claim, posting.content_hash, tuple(made), len(posting.stored))


def is_cut(text: str, profile: Profile) -> bool:
    """Whether the server probably cuts `text`; never true of a passage by rule v2, which obeys the estimate."""
    if len(text) <= profile.token_limit:  # no token is shorter than a code point
        return False
    most = _OVERESTIMATE * profile.token_limit
    return quick_bound(text) > most and estimate_tokens(text) > most


def _poison(claim: Claim) -> RowFault:
    return RowFault(
        claim,
        f"claimed {claim.claims - 1} times without an outcome, the last time alone: it seems to kill its worker",
        final=True,
    )


def _is_closed(posting: LoadedPosting | None) -> bool:
    return posting is not None and posting.closed


def _itself(claim: Claim) -> Claim:
    return claim


def _database_halt(error: DatabaseFault) -> Halt:
    return Halt(HaltKind.DATABASE if isinstance(error, DatabaseDown) else HaltKind.CONFIG, str(error))
