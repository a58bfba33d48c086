"""The body of a 200 -> float32 vectors, or what is wrong with each. Strict: what is doubtful is refused."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import simdjson

from freehire_embed.wire.refusal import Kind, Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from freehire_embed.domain import Vector

NORM_TOLERANCE = 0.01
"""The server normalises to length 1; fp16 and its JSON are off by far less than this."""


@dataclass(frozen=True, slots=True)
class Rows:
    """One entry for each row that was sent, in its order: the vector, or None and a line in `defects`."""

    vectors: Sequence[Vector | None]
    defects: dict[int, str]
    foreign: frozenset[int]
    """The defective rows whose width or norm is that of another model, or of other server options."""
    tokens: int | None = None
    """Of the whole request, after truncation; None where the server does not tell."""
    seconds: float = 0.0
    waited_seconds: float = 0.0
    """How long the answer took, and how much of it the request stood in the server's queue."""


def read_rows(body: bytes, count: int, width: int, told_tokens: int | None = None) -> Rows | Refusal:
    """The vectors of `count` rows; shape of each (width,), float32, finite, norm 1 within 0.01.

    Takes a bare array of arrays and `{"embeddings": [...]}`.
    """
    matrix = _flawless(body, count, width)
    if matrix is not None:
        return Rows(list(matrix), {}, frozenset(), told_tokens)
    answer = load_json(body)
    if isinstance(answer, Refusal):
        return answer
    rows = answer.get("embeddings") if isinstance(answer, dict) else answer
    if not isinstance(rows, list):
        return Refusal(Kind.UPSTREAM, "broken", "200 with JSON that is no list of vectors")
    if len(rows) != count:
        return Refusal(Kind.COUNT, "count", f"200 with {len(rows)} vectors for {count} rows")
    return checked_rows(rows, width, told_tokens)


class _Kept(threading.local):
    """A parser a thread: a new one for each answer takes a third longer, and tears holes into a long run's heap."""

    def __init__(self) -> None:
        self.parser = simdjson.Parser()


_kept = _Kept()
_MOST_KEPT_BYTES = 4_000_000
"""A parser keeps four times its largest answer for ever; one of 32 rows of width 768 is 0.3 MB."""


def _flawless(body: bytes, count: int, width: int) -> Vector | None:
    """The vectors (count, width) when nothing is wrong with any; None = look closer.

    Nearly all answers end here. The numbers go from the text into one buffer: no Python object is made of each,
    which takes a third of the time.
    """
    try:
        parser = _kept.parser if len(body) <= _MOST_KEPT_BYTES else simdjson.Parser()
        answer = parser.parse(body)
        rows = answer["embeddings"] if isinstance(answer, simdjson.Object) else answer
        if not isinstance(rows, simdjson.Array) or len(rows) != count:
            return None
        if not all(isinstance(row, simdjson.Array) and len(row) == width for row in rows):
            return None
        # Takes numbers only, but those of arrays within a row as well.
        numbers = np.frombuffer(rows.as_buffer(of_type="d"), dtype=np.float64)
    except (ValueError, TypeError, KeyError, RuntimeError):
        return None
    if numbers.size != count * width or body.count(b"[") != count + 1:
        return None
    with np.errstate(over="ignore"):
        matrix = numbers.astype(np.float32).reshape(count, width)
    return matrix if _norms_are_one(matrix).all() else None


def load_json(body: bytes) -> Any:
    """What the body of a 200 says, or a Refusal when it is no JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        # NaN and Infinity are no JSON, but some servers write them; the rows around them are good.
        return json.loads(body, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        what = "an HTML page" if body.lstrip()[:1] == b"<" else "not JSON, or cut short"
        return Refusal(Kind.UPSTREAM, "broken", f"200 with a body that is {what}")


def _matrix(numbers: list[float]) -> Vector | None:
    """A matrix of one row; None when it holds an integer that no float can."""
    try:
        with np.errstate(over="ignore"):
            return np.array([numbers], dtype=np.float32)
    except OverflowError:
        return None


def _norms_are_one(matrix: Vector) -> NDArray[np.bool_]:
    # Infinities and NaN compare false, so this finds them as well.
    return np.abs(_norms(matrix) - 1) <= NORM_TOLERANCE


def _norms(matrix: Vector) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        norms: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    return norms


def checked_rows(rows: list[Any], width: int, tokens: int | None = None) -> Rows:
    """Each row, a list of numbers or an array of them, as a vector or with what is wrong with it."""
    vectors: list[Vector | None] = []
    defects: dict[int, str] = {}
    foreign: set[int] = set()
    for place, row in enumerate(rows):
        vector, defect, is_foreign = _read_row(row, width)
        vectors.append(vector)
        if vector is None:
            defects[place] = f"200 with {defect}"
            if is_foreign:
                foreign.add(place)
    return Rows(vectors, defects, frozenset(foreign), tokens)


def _read_row(row: object, width: int) -> tuple[Vector | None, str, bool]:
    if not isinstance(row, (list, np.ndarray)):
        return None, "no vector", False
    if len(row) != width:
        return None, f"width {len(row)} instead of {width}", True
    if isinstance(row, np.ndarray):
        matrix: Vector | None = row.astype(np.float32).reshape(1, width)
    elif None in row:
        return None, "null values", False
    elif not {type(value) for value in row} <= {float, int}:
        return None, "values that are not numbers", False
    else:
        matrix = _matrix(row)
    if matrix is None or not np.isfinite(matrix).all():
        return None, "a value that is not finite", False
    if not matrix.any():
        return None, "all values zero", False
    if not _norms_are_one(matrix).all():
        return None, f"norm {_norms(matrix)[0]:.3g} instead of 1", True
    return matrix[0], "", False
