"""Every answer proves itself: a row whose vector is known rides in each request.

Nothing in an answer names the model or the rows. Behind a balancer, or in a rolling update, one replica may serve
another model of the same width; a proxy may mix rows up. A probe of its own would ask another replica.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import orjson

from freehire_embed.tei.vectors import Rows
from freehire_embed.wire.refusal import Kind, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.tei.client import TeiClient

PROBE_TEXT = "A calm river runs past the old library, and 7 boats wait for the evening tide."
"""Known to be good: embedded before, between and among the rows. Never change it; the vectors remembered for
identities were made from it."""
SAME_MODEL_COSINE = 0.99
"""fp16 in another batch stays above 0.999; another model of the same width is near chance."""
KNOWN_ROWS = 1


class Proof:
    """The known row and the vector it must give."""

    def __init__(self, client: TeiClient, profile: Profile) -> None:
        self._client = client
        self.row = orjson.dumps(profile.passage_prefix + PROBE_TEXT)
        self.reference: Vector | None = None
        """Of the preflight; without one the first answer's counts."""
        self.tokens: int | None = None
        """Of the row alone, when the server told."""

    async def embed(self, rows: Sequence[bytes], timeout_seconds: float) -> Rows | Refusal:
        """One attempt of `rows` with the known one among them; the answer is without it.

        An answer of another model is Kind.FOREIGN and of no use; one with its rows mixed up is Kind.CONFIG.
        """
        place = _seat(len(rows))
        sent = [*rows[:place], self.row, *rows[place:]]
        answer = await self._client.embed(sent, timeout_seconds)
        if isinstance(answer, Refusal):
            return answer
        doubt = self._doubt(answer, place, sent)
        return self._noted(doubt) if doubt else _without(answer, place)

    async def alone(self, timeout_seconds: float) -> Vector | Refusal:
        """The known row's own vector; one attempt."""
        answer = await self._client.embed([self.row], timeout_seconds)
        if isinstance(answer, Refusal):
            return answer
        doubt = self._doubt(answer, 0, [self.row])
        vector = answer.vectors[0]
        if doubt is None and vector is not None:
            self.tokens = answer.tokens
            return vector
        return self._noted(doubt) if doubt else Refusal(Kind.UPSTREAM, "defect", answer.defects[0])

    def _noted(self, doubt: Refusal) -> Refusal:
        self._client.count(doubt)
        if doubt.kind is Kind.FOREIGN:
            # A balancer gives a connection to one server: over the kept ones the same would answer again.
            self._client.renew()
        return doubt

    def _doubt(self, answer: Rows, place: int, sent: Sequence[bytes]) -> Refusal | None:
        vector = answer.vectors[place]
        if vector is None:
            if place in answer.foreign:
                return Refusal(
                    Kind.FOREIGN, "foreign", f"{answer.defects[place]}: another model or other options"
                )
            bad = len(answer.defects)
            return Refusal(
                Kind.MANY_DEFECTS,
                "defect",
                f"{answer.defects[place]} for the probe text, and for {bad} of {len(sent)} rows in all",
            )
        if self.reference is None:
            self.reference = vector
        likeness = cosine(vector, self.reference)
        if likeness >= SAME_MODEL_COSINE:
            return None
        if any(
            other is not None and row != self.row and cosine(other, self.reference) >= SAME_MODEL_COSINE
            for row, other in zip(sent, answer.vectors, strict=True)
        ):
            return Refusal(
                Kind.CONFIG,
                "order",
                "the vectors do not stand in the order of the texts: the probe text's is another one's. Something "
                "between here and the model mixes up the rows",
            )
        return Refusal(
            Kind.FOREIGN,
            "foreign",
            f"the probe text's vector is of another model (cosine {likeness:.3f}, not {SAME_MODEL_COSINE} or more)",
        )


def cosine(one: Vector, other: Vector) -> float:
    """Of two vectors of any norm; -1 where the widths differ, which no likeness can come near."""
    if one.shape != other.shape:
        return -1.0
    return float(np.dot(one, other)) / math.sqrt(float(np.dot(one, one)) * float(np.dot(other, other)))


def _seat(count: int) -> int:
    """A place among `count` rows; never the middle, which a reversed answer would leave where it is."""
    if not count:
        return 0
    place = random.randrange(count if count % 2 == 0 else count + 1)  # noqa: S311 - varies, keeps no secret
    return place + (count % 2 == 0 and 2 * place >= count)


def _without(answer: Rows, place: int) -> Rows:
    vectors = [*answer.vectors[:place], *answer.vectors[place + 1 :]]
    defects = {index - (index > place): defect for index, defect in answer.defects.items()}
    return replace(answer, vectors=vectors, defects=defects)
