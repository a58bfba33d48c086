"""The claim that a wave holds: which entries, fenced by which stamp, and how it is kept alive.

A claim stamps its entries with one ``claimed_at``. That stamp is the fence: every finishing write carries it and
touches only rows that still have it. A renewal moves the stamp; whoever was stopped past its lease finds
another one in the table and changes nothing.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

logger = logging.getLogger(__name__)


class Renewals(Protocol):
    def renew(self, entry_ids: Collection[int], stamp: datetime) -> tuple[datetime | None, set[int]]:
        """Moves the stamp of the entries that still have it; returns the new stamp and whose it is."""


class Lease:
    """Entries held under one stamp. Thread-safe: a heartbeat renews while a stage works."""

    def __init__(
        self, renewals: Renewals, entry_ids: Iterable[int], stamp: datetime, lease_seconds: float
    ) -> None:
        self._renewals = renewals
        self._held = set(entry_ids)
        self._stamp = stamp
        self._interval = lease_seconds / 3
        self._lock = threading.RLock()

    @property
    def held(self) -> frozenset[int]:
        with self._lock:
            return frozenset(self._held)

    @contextmanager
    def fence(self) -> Iterator[datetime]:
        """The current stamp, which no renewal moves until the block ends."""
        with self._lock:
            yield self._stamp

    def settle(self, entry_ids: Iterable[int]) -> None:
        """Forgets entries that have had their outcome."""
        with self._lock:
            self._held.difference_update(entry_ids)

    def renew(self) -> None:
        """Moves the lease's end; entries that somebody else took meanwhile are no longer held."""
        with self._lock:
            if not self._held:
                return
            stamp, held = self._renewals.renew(self._held, self._stamp)
            self._held &= held
            if stamp is not None:
                self._stamp = stamp

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Renews every third of the lease from a thread until the block ends, by whatever exception."""
        over = threading.Event()
        heartbeat = threading.Thread(target=self._beat, args=(over,), name="lease", daemon=True)
        heartbeat.start()
        try:
            yield
        finally:
            over.set()

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(self._interval):
            try:
                self.renew()
            except Exception as error:  # noqa: BLE001 - a missed beat is retried; the fence decides in the end
                logger.warning("lease not renewed: %s", error)
