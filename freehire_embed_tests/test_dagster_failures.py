"""Whatever Postgres or the server does, a step fails in a line that says what to do."""

from __future__ import annotations

import dagster as dg
import pytest

from freehire_embed.orchestration.failures import explained
from freehire_embed.store.faults import DatabaseDown, DatabaseMisfit, RowRejected


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (DatabaseDown("gone"), "Bring Postgres .* back.*: gone"),
        (DatabaseMisfit("no such table"), "Correct the configuration.*: no such table"),
        (
            RowRejected("interval out of range", corrupted=False),
            "Look into Postgres .*: interval out of range",
        ),
    ],
)
def test_a_fault_becomes_a_failure_that_says_what_to_do(fault: Exception, says: str) -> None:
    with pytest.raises(dg.Failure, match=says) as failure, explained():
        raise fault
    assert failure.value.allow_retries is False
