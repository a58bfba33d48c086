"""How long a request stood in the server's queue: what concurrency is steered by."""

from __future__ import annotations

import math

_SPAN = 512
"""Answers after which a minimum is forgotten, at the latest twice as many: some ten waves."""


class _RecentMinimum:
    """The least of the last _SPAN to 2 * _SPAN values."""

    def __init__(self) -> None:
        self._now = self._before = math.inf
        self._count = 0

    def add(self, value: float) -> float:
        self._now = min(self._now, value)
        least = min(self._now, self._before)
        self._count += 1
        if self._count == _SPAN:
            self._before, self._now, self._count = self._now, math.inf, 0
        return least


class Waiting:
    """Tells waiting from work by the server's word, or by the client's own clock where there is none.

    Without a queue a request takes some time of its own and some for each byte of text. Both are known from the
    quickest answers: between two waves the server is idle, so that the probe and the first slice do not wait.
    """

    def __init__(self) -> None:
        self._own = _RecentMinimum()
        self._a_byte = _RecentMinimum()
        self._largest = 1

    def seconds(self, seconds: float, size: int, told_seconds: float | None) -> float:
        """How much of the `seconds` that an answer for `size` bytes of text took was waiting.

        `told_seconds` is the server's x-queue-time.
        """
        if told_seconds is not None:
            return min(told_seconds, seconds)
        own = self._own.add(seconds)
        if size > 2 * self._largest:
            self._a_byte = _RecentMinimum()
        self._largest = max(self._largest, size)
        # Next to the time of its own, what a short text takes is too little to learn from.
        if 2 * size < self._largest or seconds <= own:
            return 0.0
        a_byte = self._a_byte.add((seconds - own) / size)
        return max(seconds - own - a_byte * size, 0.0)
