"""The body of a 200 in the OpenAI form -> float32 vectors in the order of the rows, or what is wrong with each."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np

from freehire_embed.tei.vectors import Rows, checked_rows, load_json
from freehire_embed.wire.refusal import Kind, Refusal


def read_embeddings(body: bytes, count: int, width: int, told_tokens: int | None = None) -> Rows | Refusal:
    """The vectors of `count` rows, ordered by their `index`: lists of numbers, or base64 of little-endian f32.

    Tokens are those of `usage`, else `told_tokens` of a header.
    """
    answer = load_json(body)
    if isinstance(answer, Refusal):
        return answer
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
        return Refusal(Kind.UPSTREAM, "broken", "200 with JSON that has no list of embeddings as `data`")
    if len(data) != count:
        return Refusal(Kind.COUNT, "count", f"200 with {len(data)} vectors for {count} rows")
    places = [entry.get("index") for entry in data]
    if places != list(range(count)):
        if set(places) == {None} or (count > 1 and set(places) == {0}):
            pass  # some do not number them; the known row shows whether they are in order
        elif {*places} != {*range(count)}:
            return Refusal(Kind.COUNT, "count", f"200 whose indexes are not those of {count} rows")
        else:
            data.sort(key=lambda entry: entry["index"])
    return checked_rows(
        [_numbers(entry.get("embedding")) for entry in data], width, _used(answer.get("usage")) or told_tokens
    )


def _numbers(embedding: object) -> Any:
    if not isinstance(embedding, str):
        return embedding
    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    except (binascii.Error, ValueError):
        return None


def _used(usage: object) -> int | None:
    if not isinstance(usage, dict):
        return None
    for key in ("total_tokens", "prompt_tokens"):
        tokens = usage.get(key)
        if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 < tokens < 10**9:
            return tokens
    return None
