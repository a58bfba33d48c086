"""The drills' embedding server: it keeps postings waiting at a chosen point, until the drill goes on."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.drill.scratch import SERVED, WIDTH

if TYPE_CHECKING:
    from freehire_embed.drill.tei_faults import Fault

_ROW = "Drill engineer"
"""In every posting's passage, and not in the probe text."""


class SlowServer:
    """Answers so many requests for postings and holds the next ones; probes pass."""

    def __init__(self, *, answers: int, then: Fault | None = None) -> None:
        """`then` is what becomes of the held requests in the end; None = the right answer."""
        self.tei = FaultyTei(width=WIDTH, model_id=SERVED, keep_texts=True)
        self._go_on = threading.Event()
        self.tei.fail(tei_faults.hold(self._go_on, then), after=answers, marker=_ROW)

    @property
    def url(self) -> str:
        return self.tei.url

    @property
    def postings(self) -> int:
        """Passages of postings that were sent so far, each time counted."""
        return sum(_ROW in text for texts in self.tei.texts or () for text in texts)

    def holds(self, requests: int) -> bool:
        """Whether so many requests are in flight and stay there, which a probe does not."""
        if self.tei.requests_in_flight < requests:
            return False
        time.sleep(0.05)
        return self.tei.requests_in_flight >= requests

    def go_on(self) -> None:
        """Lets the held requests have their answer, and all later ones."""
        self._go_on.set()

    def __enter__(self) -> Self:
        self.tei.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._go_on.set()
        self.tei.__exit__()
