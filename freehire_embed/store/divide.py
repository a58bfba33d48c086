"""Finds the rows that make a statement fail, so that their neighbours go through."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from freehire_embed.store.faults import DatabaseMisfit, RowRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")

# So many single rows refused before the first one is accepted: the table is at fault, not the rows.
_NOT_THE_ROWS = 8


def divide(
    items: Sequence[Item], work: Callable[[Sequence[Item]], Result]
) -> tuple[list[Result], dict[Item, RowRejected]]:
    """Runs `work` on all items, in halves where it raises RowRejected; returns results and the rejected.

    A rejection counts against an item only when the item is alone in it. Raises DatabaseMisfit when nothing but
    rejections come back.
    """
    results: list[Result] = []
    rejected: dict[Item, RowRejected] = {}
    stack = [items] if items else []
    while stack:
        part = stack.pop()
        try:
            results.append(work(part))
        except RowRejected as error:
            if len(part) == 1:
                rejected[part[0]] = error
                if not results and len(rejected) >= _NOT_THE_ROWS:
                    raise DatabaseMisfit(f"Postgres refuses every row: {error}") from error
            else:
                middle = len(part) // 2
                stack += [part[middle:], part[:middle]]
    return results, rejected
