"""One claim's worth of entries on its way through the stages: one class an edge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from freehire_embed.domain import Usage

if TYPE_CHECKING:
    from freehire_embed.domain import Claim, Document, Halt, RowFault, Vector
    from freehire_embed.lease import Lease


@dataclass(frozen=True, slots=True)
class Wave:
    """Entries just claimed."""

    lease: Lease
    claims: tuple[Claim, ...]
    alone: bool
    """A single entry whose earlier claims ended without an outcome: nothing else may be at stake beside it."""


@dataclass(frozen=True, slots=True)
class ChunkedWave:
    """The same entries, each in exactly one of the three parts."""

    lease: Lease
    documents: tuple[Document, ...]
    closed: tuple[Claim, ...]
    faults: tuple[RowFault, ...]
    halt: Halt | None = None
    """Set when the text could not be read for a reason that is no row's fault; `unread` holds the rest."""
    unread: tuple[Claim, ...] = ()

    @property
    def to_embed(self) -> list[str]:
        """The passages without a stored vector, in the order of the documents."""
        return [
            passage.text
            for document in self.documents
            for passage in document.passages
            if passage.stored_index is None
        ]


@dataclass(frozen=True, slots=True)
class EmbeddedDocument:
    """A document with a vector for each of its passages that has none stored yet, in passage order."""

    document: Document
    vectors: tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class EmbeddedWave:
    """The same entries again, ready for their outcomes."""

    lease: Lease
    documents: tuple[EmbeddedDocument, ...]
    closed: tuple[Claim, ...]
    faults: tuple[RowFault, ...]
    unfinished: tuple[Claim, ...]
    """Open postings that `halt` kept from being embedded."""
    halt: Halt | None
    usage: Usage = field(default_factory=Usage)
