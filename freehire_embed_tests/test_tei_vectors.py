"""Which bodies of a 200 become vectors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as np_st

from freehire_embed.tei.vectors import Rows, read_rows
from freehire_embed.wire.refusal import Kind, Refusal

GOOD = "[0.6,0.8,0,0]"


def rows_of(body: str | bytes, count: int = 2, width: int = 4) -> Rows:
    rows = read_rows(body.encode() if isinstance(body, str) else body, count, width)
    assert isinstance(rows, Rows)
    return rows


@pytest.mark.parametrize(
    "body",
    [
        f"[{GOOD},{GOOD}]",
        f'{{"embeddings": [{GOOD},{GOOD}]}}',
        f' {{"normalized": true, "embeddings": [{GOOD},{GOOD}]}}\n',
        "[[1,0,0,0],[0,-1,0,0]]",
    ],
)
def test_both_shapes_give_vectors(body: str) -> None:
    rows = rows_of(body)
    assert rows.defects == {}
    for vector in rows.vectors:
        assert vector is not None
        assert vector.shape == (4,)
        assert vector.dtype == np.float32


@pytest.mark.parametrize(
    ("bad", "said", "foreign"),
    [
        ("[null,null,null,null]", "null", False),
        ("[0.6,null,0.8,0]", "null", False),
        ("null", "no vector", False),
        ("0.5", "no vector", False),
        ('"abcd"', "no vector", False),
        ("[NaN,0,0,1]", "null", False),
        ("[Infinity,0,0,0]", "null", False),
        ("[1e999,0,0,0]", "finite", False),
        ("[1e39,0,0,0]", "finite", False),
        ("[0,0,0,0]", "zero", False),
        ("[1e-60,0,0,0]", "zero", False),
        ("[true,false,false,false]", "not numbers", False),
        ('["0.6","0.8","0","0"]', "not numbers", False),
        ("[[1],[0],[0],[0]]", "not numbers", False),
        ("[1,0,0]", "width 3 instead of 4", True),
        ("[]", "width 0 instead of 4", True),
        ("[0.6,0.8,0.2,0]", "norm 1.02 instead of 1", True),
        ("[1000000000000000000000000000000000000000000,0,0,0]", "finite", False),
    ],
)
@pytest.mark.parametrize("shape", ["[%s,%s]", '{"embeddings":[%s,%s]}'])
def test_a_bad_row_is_named_and_its_neighbour_is_kept(bad: str, said: str, foreign: bool, shape: str) -> None:
    rows = rows_of(shape % (GOOD, bad))
    assert rows.vectors[0] is not None
    assert rows.vectors[1] is None
    assert said in rows.defects[1]
    assert rows.foreign == ({1} if foreign else set())


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("", Kind.UPSTREAM),
        ("<html>busy</html>", Kind.UPSTREAM),
        (f"[{GOOD},[0.6,0.", Kind.UPSTREAM),
        ('{"error": "loading"}', Kind.UPSTREAM),
        ('"ok"', Kind.UPSTREAM),
        ("null", Kind.UPSTREAM),
        ("[" * 100_000, Kind.UPSTREAM),
        (f"[{GOOD}]", Kind.COUNT),
        (f"[{GOOD},{GOOD},{GOOD}]", Kind.COUNT),
        ("[]", Kind.COUNT),
    ],
)
def test_a_body_that_cannot_be_matched_to_the_rows_is_refused_whole(body: str, kind: Kind) -> None:
    answer = read_rows(body.encode(), 2, 4)
    assert isinstance(answer, Refusal)
    assert answer.kind is kind


@given(np_st.arrays(np.float32, (3, 8), elements=st.floats(-1, 1, width=32)))
def test_what_is_accepted_is_exactly_what_was_sent(matrix: Any) -> None:
    norms = np.linalg.norm(matrix.astype(np.float64), axis=1)
    rows = rows_of(orjson.dumps(matrix, option=orjson.OPT_SERIALIZE_NUMPY), count=3, width=8)
    for place, vector in enumerate(rows.vectors):
        if vector is None:
            assert abs(norms[place] - 1) > 0.009
        else:
            np.testing.assert_array_equal(vector, matrix[place])
            assert abs(norms[place] - 1) < 0.011


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=3))
def test_no_json_whatever_becomes_a_wrong_vector(answer: list[Any]) -> None:
    rows = read_rows(json.dumps(answer).encode(), len(answer), 2)
    if isinstance(rows, Rows):
        for vector in rows.vectors:
            assert vector is None or abs(float(np.linalg.norm(vector)) - 1) <= 0.011
