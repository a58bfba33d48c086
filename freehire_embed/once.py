"""Sends a passage to the server once a run, however many postings and waves have it.

4 % of the inputs of a catalogue repeat: the same posting under several ids, and boilerplate that fills a chunk.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from freehire_embed.domain import Embeddings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.domain import Vector
    from freehire_embed.stages import Embedder

_REMEMBERED = 8192
"""Vectors kept, the latest used: 25 MB at width 768."""


class EmbedOnce:
    """An embedder that remembers the latest vectors of another one; any thread may call it."""

    def __init__(self, embedder: Embedder, remembered: int = _REMEMBERED) -> None:
        self._embedder = embedder
        self._most = remembered
        self._places: OrderedDict[bytes, int] = OrderedDict()
        # One block: thousands of vectors that come and go one by one would tear holes into the heap of a long run.
        self._vectors: Vector | None = None
        self._unused = iter(range(remembered))
        self._lock = threading.Lock()

    def embed(self, passages: Sequence[str], timeout_seconds: float | None = None) -> Embeddings:
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in passages]
        vectors = self._recall(keys)
        places = [place for place, vector in enumerate(vectors) if vector is None]
        if not places:
            return Embeddings(vectors)
        result = self._embedder.embed([passages[place] for place in places], timeout_seconds)
        for place, vector in zip(places, result.vectors, strict=True):
            vectors[place] = vector
        self._remember({keys[place]: v for place in places if (v := vectors[place]) is not None})
        faults = {places[index]: reason for index, reason in result.faults.items()}
        return Embeddings(vectors, faults, result.halt, result.usage)

    def _recall(self, keys: Sequence[bytes]) -> list[Vector | None]:
        with self._lock:
            return [self._vector(key) for key in keys]

    def _vector(self, key: bytes) -> Vector | None:
        place = self._places.get(key)
        if place is None or self._vectors is None:
            return None
        self._places.move_to_end(key)
        # A copy: the place may be another's before this wave is committed.
        vector: Vector = self._vectors[place].copy()
        return vector

    def _remember(self, vectors: dict[bytes, Vector]) -> None:
        with self._lock:
            for key, vector in vectors.items():
                if self._vectors is None:
                    self._vectors = np.empty((self._most, len(vector)), dtype=np.float32)
                if key in self._places:
                    self._places.move_to_end(key)
                    continue
                # An interrupt may end this at any step: then a place is lost, and never belongs to two texts.
                place = next(self._unused, None)
                if place is None:
                    place = self._places.popitem(last=False)[1]
                self._vectors[place] = vector
                self._places[key] = place
