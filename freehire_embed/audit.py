"""Is what is stored what it should be? Contradictions between stamps, chunks, texts and vectors.

The tables are read slice by slice. A sample of settled postings is also cut and embedded again, by requests of one
passage each, so that the server tells which passages it cuts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from freehire_embed.chunks import TooManyChunks, passage_sha256, passages
from freehire_embed.store.audit import draw_sample, find_contradictions, read_descriptions, requeue
from freehire_embed.text import html_to_text
from freehire_embed.text.language import detect_language

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.store.audit import StoredPosting
    from freehire_embed.store.database import Database
    from freehire_embed.tei import TeiEmbedder

SAME_TEXT_COSINE = 0.98
"""Below it a vector is not of its text. The same text gives 0.999 in another batch; of 897 pairs of passages of one
posting 99 % are below 0.981, of passages of different postings below 0.92 (multilingual-e5-small)."""
SAMPLE = 50
"""Postings embedded again by default: some 100 passages."""

_AT_ONCE = 500
_EXAMPLES = 5


class Kind(StrEnum):
    """What can be wrong with a posting."""

    STAMP_WITHOUT_CHUNKS = "stamp_without_chunks"
    CHUNKS_WITHOUT_STAMP = "chunks_without_stamp"
    CHUNKS_OF_INELIGIBLE = "chunks_of_ineligible"
    GAP_IN_CHUNK_INDEX = "gap_in_chunk_index"
    WRONG_WIDTH = "wrong_width"
    WRONG_NORM = "wrong_norm"
    WRONG_TEXT = "wrong_text"
    WRONG_VECTOR = "wrong_vector"


MEANING = {
    Kind.STAMP_WITHOUT_CHUNKS: "stamped as embedded, have text and no chunks",
    Kind.CHUNKS_WITHOUT_STAMP: "have chunks and no stamp; the next run embeds them",
    Kind.CHUNKS_OF_INELIGIBLE: "closed, reposts or not tech, and still have chunks",
    Kind.GAP_IN_CHUNK_INDEX: "have chunks that are not numbered 0, 1, 2, ...",
    Kind.WRONG_WIDTH: "have vectors of another width than the identity's",
    Kind.WRONG_NORM: "have vectors that are zero or not of length 1",
    Kind.WRONG_TEXT: "of the sample, have chunks of another text than theirs",
    Kind.WRONG_VECTOR: "of the sample, have vectors that are not of their text",
}

_DISTRUSTED = {Kind.WRONG_WIDTH, Kind.WRONG_NORM, Kind.WRONG_VECTOR}


@dataclass(slots=True)
class Finding:
    """Postings with the same fault."""

    postings: int = 0
    examples: list[int] = field(default_factory=list)
    """The first few ids."""


@dataclass(slots=True)
class AuditReport:
    """What an audit found."""

    findings: dict[Kind, Finding] = field(default_factory=dict)
    sampled: int = 0
    """Postings of the sample."""
    compared: int = 0
    """Passages embedded again."""
    passages: Counter[str] = field(default_factory=Counter)
    """Of those, by language."""
    cut: Counter[str] = field(default_factory=Counter)
    """By language, those that fill the model's limit by the server's count; empty when it does not tell."""
    not_compared: str = ""
    """Why some passages of the sample were not compared."""
    requeued: int = 0
    """Faults whose posting was re-queued."""

    @property
    def clean(self) -> bool:
        return not self.findings and not self.not_compared


def audit(
    database: Database,
    profile: Profile,
    embedder: TeiEmbedder | None,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    repair: bool = False,
) -> AuditReport:
    """Looks at every posting and, with an `embedder` of one-row requests, at the vectors of a `sample`.

    `repair` makes what is wrong stale, or queues it to be cleared, so that the next run puts it right; of a vector
    that is wrong the stored hash is forgotten, or the run would keep it. `seed` varies the sample. Raises
    DatabaseFault.
    """
    report = AuditReport()
    contradictions = _contradictions(database, profile)
    while batch := list(islice(contradictions, _AT_ONCE)):
        _take(database, profile, report, batch, repair=repair)
    if embedder and sample:
        postings = draw_sample(database, profile.identity, limit=sample, seed=seed)
        wrong = list(_check_sample(postings, profile, embedder, report))
        _take(database, profile, report, wrong, repair=repair)
    return report


def _contradictions(database: Database, profile: Profile) -> Iterator[tuple[Kind, int]]:
    silent: list[int] = []
    for name, job_id in find_contradictions(database, profile.identity, profile.width):
        kind = Kind(name)
        if kind is not Kind.STAMP_WITHOUT_CHUNKS:
            yield kind, job_id
            continue
        silent.append(job_id)
        if len(silent) == _AT_ONCE:
            yield from _with_text(database, silent)
            silent = []
    yield from _with_text(database, silent)


def _with_text(database: Database, job_ids: Sequence[int]) -> Iterator[tuple[Kind, int]]:
    for job_id, description in read_descriptions(database, job_ids).items():
        if html_to_text(description):
            yield Kind.STAMP_WITHOUT_CHUNKS, job_id


def _take(
    database: Database,
    profile: Profile,
    report: AuditReport,
    found: Iterable[tuple[Kind, int]],
    *,
    repair: bool,
) -> None:
    by_kind: dict[Kind, list[int]] = {}
    for kind, job_id in found:
        by_kind.setdefault(kind, []).append(job_id)
        finding = report.findings.setdefault(kind, Finding())
        finding.postings += 1
        if len(finding.examples) < _EXAMPLES:
            finding.examples.append(job_id)
    if repair and by_kind:
        ineligible = by_kind.pop(Kind.CHUNKS_OF_INELIGIBLE, [])
        stale = [job_id for job_ids in by_kind.values() for job_id in job_ids]
        distrusted = [job_id for kind in _DISTRUSTED for job_id in by_kind.get(kind, [])]
        requeue(database, profile.identity, stale=stale, distrusted=distrusted, ineligible=ineligible)
        report.requeued += len(stale) + len(ineligible)


class _Pair(NamedTuple):
    job_id: int
    text: str
    vector: Vector


def _check_sample(
    postings: Sequence[StoredPosting], profile: Profile, embedder: TeiEmbedder, report: AuditReport
) -> Iterator[tuple[Kind, int]]:
    pairs: dict[str, list[_Pair]] = {}
    for posting in postings:
        report.sampled += 1
        matched = _match(posting, profile)
        if matched is None:
            yield Kind.WRONG_TEXT, posting.job_id
        elif matched:
            language = detect_language(html_to_text(posting.description))
            pairs.setdefault(language, []).extend(matched)
    wrong: dict[int, None] = {}
    for language, of_language in pairs.items():
        before = embedder.stats.truncated
        result = embedder.embed([pair.text for pair in of_language])
        for pair, vector in zip(of_language, result.vectors, strict=True):
            if vector is not None:
                report.compared += 1
                report.passages[language] += 1
                if not float(vector @ pair.vector) >= SAME_TEXT_COSINE:
                    wrong[pair.job_id] = None
        if cut := embedder.stats.truncated - before:
            report.cut[language] += cut
        if result.halt:
            report.not_compared = result.halt.reason
            break
        if result.faults:
            report.not_compared = next(iter(result.faults.values()))
    yield from ((Kind.WRONG_VECTOR, job_id) for job_id in wrong)


def _match(posting: StoredPosting, profile: Profile) -> list[_Pair] | None:
    """Each stored vector with the passage it should be of; None where text and chunks do not fit together.

    A posting without chunks is not looked at: the tables alone show whether that is right.
    A chunk without a hash was written by somebody who does not tell of which text: it is taken by its place.
    """
    if not posting.indexes:
        return []
    try:
        made = passages(posting.title, posting.company, posting.description, profile)
    except TooManyChunks:
        return None
    if len(made) != len(posting.indexes):
        return None
    by_hash = {passage_sha256(profile.identity, text): text for text in made}
    pairs = []
    for place, (sha256, vector) in enumerate(zip(posting.hashes, posting.vectors, strict=True)):
        text = made[place] if sha256 is None else by_hash.get(sha256)
        if text is None:
            return None
        if len(vector) == profile.width:
            pairs.append(_Pair(posting.job_id, text, vector))
    return pairs
