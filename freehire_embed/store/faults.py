"""What Postgres may answer, sorted by who is to blame and what helps.

DatabaseFault           nobody's row; the run stops, its entries are released
  DatabaseDown          unreachable, restarting, out of resources; a later run may succeed (exit code 1)
  DatabaseMisfit        wrong address, login, schema or privileges; somebody has to act (exit code 2)
RowRejected             one of the rows in hand is at fault; split to find it
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from psycopg import errors

if TYPE_CHECKING:
    from collections.abc import Iterator


class DatabaseFault(Exception):
    """Postgres cannot do the work, whatever the row."""


class DatabaseDown(DatabaseFault):
    """Unreachable or overloaded; nothing is wrong with the set-up."""


class DatabaseMisfit(DatabaseFault):
    """Wrong address, login, schema or privileges; the text says what to do."""


class RowRejected(Exception):
    """A statement failed because of one of its rows. `corrupted` = the stored row itself is unreadable."""

    def __init__(self, reason: str, *, corrupted: bool) -> None:
        super().__init__(reason)
        self.corrupted = corrupted


# Trying again is right, since the statement was fine: serialization, deadlock, lock time-out, shutdown,
# cancelled by an administrator or a standby conflict.
_RETRYABLE_STATES = frozenset({"40001", "40P01", "55P03", "57P01", "57P02", "57P03", "57P05", "25P03"})
_RETRYABLE_CLASSES = frozenset({"08"})
# Data, integrity, program limits (a row too big), raised by a trigger, corruption.
_ROW_CLASSES = frozenset({"22", "23", "54", "P0", "XX"})
_CORRUPTION = frozenset({"XX001", "XX002"})
# Out of disk, memory or connections; read-only; statement time-out.
_DOWN_CLASSES = frozenset({"53", "25", "57", "58"})


def is_retryable(error: psycopg.Error) -> bool:
    """A lost connection, a deadlock and their like: the same transaction may succeed when sent again."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state in _RETRYABLE_STATES or state[:2] in _RETRYABLE_CLASSES


def is_outrun(error: psycopg.Error) -> bool:
    """Another writer inserted the same key, or deleted the posting, meanwhile: sent again, the transaction sees it.

    When it goes on, it was a row's own fault after all.
    """
    return isinstance(error, errors.UniqueViolation | errors.ForeignKeyViolation)


@contextmanager
def blaming_no_posting() -> Iterator[None]:
    """For the queue's own statements: a row that is refused there is the table's trouble, not a posting's."""
    try:
        yield
    except RowRejected as error:
        raise DatabaseMisfit(f"the queue cannot be worked: {error}") from error


def translate(error: psycopg.Error) -> Exception:
    """The fault that `error` amounts to once retrying is over."""
    state = error.sqlstate
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn):
        return DatabaseMisfit(f"{_first_line(error)}: run `freehire-embed migrate`")
    if isinstance(error, errors.InsufficientPrivilege):
        return DatabaseMisfit(f"{_first_line(error)}: grant the rights in sql/least_privilege.sql")
    if state is None and not is_retryable(error):
        # the driver's own verdict: nothing was sent
        if isinstance(error, psycopg.DataError):
            return RowRejected(_first_line(error), corrupted=False)
        return DatabaseMisfit(f"the statement cannot be sent: {_first_line(error)}")
    if state is None or is_retryable(error) or state[:2] in _DOWN_CLASSES:
        return DatabaseDown(f"Postgres (DATABASE_URL) does not answer: {_first_line(error)}")
    if state[:2] in _ROW_CLASSES:
        return RowRejected(f"{_first_line(error)} (SQLSTATE {state})", corrupted=state in _CORRUPTION)
    return DatabaseMisfit(f"{_first_line(error)} (SQLSTATE {state})")


def _first_line(error: psycopg.Error) -> str:
    """The primary message; details may quote a row and are left out."""
    primary = error.diag.message_primary
    return primary if primary else next(iter(str(error).strip().splitlines()), type(error).__name__)
