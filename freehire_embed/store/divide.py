"""Finds the rows that make a statement fail, so that their neighbours go through."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

from freehire_embed.store.faults import DatabaseMisfit, RowRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")

# So many single rows refused before anything was accepted raise the question whether it is the table's fault.
_DOUBTFUL_ROWS = 8
# Bad rows come in clusters (a damaged page holds dozens): so much is tried elsewhere before the table is blamed.
_DOUBTFUL_TRIES = 24


def divide(
    items: Sequence[Item], work: Callable[[Sequence[Item]], Result]
) -> tuple[list[Result], dict[Item, RowRejected]]:
    """Runs `work` on all items, in halves where it raises RowRejected; returns results and the rejected.

    A rejection counts against an item only when the item is alone in it. Raises DatabaseMisfit when eight or more
    items are rejected and nothing is accepted: then it is the table's fault.
    """
    results: list[Result] = []
    rejected: dict[Item, RowRejected] = {}
    parts = deque([items] if items else [])
    tries = 0
    while parts:
        doubtful = not results and len(rejected) >= _DOUBTFUL_ROWS
        tries += doubtful
        if tries > _DOUBTFUL_TRIES:
            break
        # The smallest part is last, and its bad row is soon found; the largest is first.
        part = parts.popleft() if doubtful else parts.pop()
        try:
            results.append(work(part))
        except RowRejected as error:
            if len(part) == 1:
                rejected[part[0]] = error
            else:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
    if not results and len(rejected) >= _DOUBTFUL_ROWS:
        first = next(iter(rejected.values()))
        raise DatabaseMisfit(f"Postgres refuses every row: {first}") from first
    return results, rejected
