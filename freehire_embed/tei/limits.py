"""What one request may hold: rows, bytes and tokens."""

from __future__ import annotations

import logging
from dataclasses import dataclass

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Limits:
    """What one request may hold. Only ever lowered, and then for the rest of the run."""

    rows: int
    bytes: int
    tokens: int
    """Estimated; what is above one batch of the device only makes others wait longer."""

    def lower_rows(self, rows: int, why: str) -> None:
        if rows < self.rows:
            logger.info("rows per request lowered from %d to %d: %s", self.rows, rows, why)
            self.rows = rows

    def lower_bytes(self, size: int, why: str) -> None:
        if size < self.bytes:
            logger.info("bytes per request lowered from %d to %d: %s", self.bytes, size, why)
            self.bytes = size
