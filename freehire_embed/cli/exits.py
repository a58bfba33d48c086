"""What the exit codes mean, and the one place that knows which error gives which."""

from __future__ import annotations

from freehire_embed.postings_file import ImportFileError
from freehire_embed.settings import SettingsError
from freehire_embed.store.faults import DatabaseFault, DatabaseMisfit, RowRejected
from freehire_embed.tei import ConfigFault, ServerFault

CLEAN = 0
FAILED = 1
"""Something was not done, or is merely down; trying again later may be enough."""
MISUSED = 2
"""Usage or configuration stopped it: what was done stays, no more is done before somebody acts."""

# Misuse first: a ConfigFault is a ServerFault, too.
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (SettingsError, MISUSED),
    (ConfigFault, MISUSED),
    (DatabaseMisfit, MISUSED),
    (ImportFileError, MISUSED),
    (ServerFault, FAILED),
    (DatabaseFault, FAILED),
    (RowRejected, FAILED),
)
EXPECTED = tuple(kind for kind, _ in _CODES)
"""Errors whose text is written for operators. Any other is a defect of ours and keeps its traceback."""


def exit_code(error: Exception) -> int:
    """The exit code of an error out of EXPECTED."""
    return next(code for kind, code in _CODES if isinstance(error, kind))
