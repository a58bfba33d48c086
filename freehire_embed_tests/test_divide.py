"""Bad rows are found by halves: all of them, only them, and with a bounded number of statements."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehire_embed.store.divide import divide
from freehire_embed.store.faults import DatabaseMisfit, RowRejected


def table(bad):
    """Takes parts without a bad item, and keeps what it was asked."""
    asked = []

    def work(part):
        asked.append(list(part))
        if bad.intersection(part):
            raise RowRejected("bad", corrupted=False)
        return list(part)

    return work, asked


@given(st.integers(1, 200), st.sets(st.integers(0, 199), max_size=7))
def test_a_few_bad_rows_are_found_and_all_others_taken_once(size, bad):
    work, asked = table(bad)
    results, rejected = divide(range(size), work)
    assert sorted(item for part in results for item in part) == sorted(set(range(size)) - bad)
    assert set(rejected) == bad & set(range(size))
    assert len(asked) <= 1 + 2 * len(rejected) * math.ceil(math.log2(size) or 1)


@given(st.integers(0, 61))
def test_a_cluster_of_bad_rows_is_not_taken_for_a_bad_table(start):
    bad = set(range(start, start + 41))
    work, _ = table(bad)
    results, rejected = divide(range(102), work)
    assert sum(map(len, results)) == 61
    assert set(rejected) == bad


@pytest.mark.parametrize("size", [8, 9, 100, 500])
def test_a_table_that_takes_nothing_is_told_after_a_few_statements(size):
    work, asked = table(set(range(size)))
    with pytest.raises(DatabaseMisfit, match="refuses every row: bad"):
        divide(range(size), work)
    assert len(asked) <= 60


def test_nothing_is_asked_about_nothing():
    work, asked = table(set())
    assert divide([], work) == ([], {})
    assert asked == []
