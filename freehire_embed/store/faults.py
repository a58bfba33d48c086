"""What Postgres may answer, sorted by who is to blame and what helps.

DatabaseFault           nobody's row; the run stops, its entries are released
  DatabaseDown          unreachable, restarting, out of resources; a later run may succeed (exit code 1)
    StatementTimeout    cancelled by a statement_timeout; less at once may go through
  DatabaseMisfit        wrong address, login, schema or privileges; somebody has to act (exit code 2)
    RightsMissing       the role may not do this
RowRejected             one of the rows in hand is at fault; split to find it
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import psycopg
from psycopg import errors

if TYPE_CHECKING:
    from collections.abc import Iterator


class DatabaseFault(Exception):
    """Postgres cannot do the work, whatever the row."""


class DatabaseDown(DatabaseFault):
    """Unreachable or overloaded; nothing is wrong with the set-up."""


class StatementTimeout(DatabaseDown):
    """A statement_timeout that somebody set ended it."""


class DatabaseMisfit(DatabaseFault):
    """Wrong address, login, schema or privileges; the text says what to do."""


class RightsMissing(DatabaseMisfit):
    """The role may not do this. `refused` = what, in the words of Postgres, and whose the tables are."""

    def __init__(self, refused: str) -> None:
        super().__init__(f"{refused}: let the owner run sql/least_privilege.sql and make this role a member")
        self.refused = refused


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


class _Cause(NamedTuple):
    fault: type[DatabaseFault]
    sentence: str
    """What is the matter and what helps; {error} = the words of Postgres, {because} = what it told when asked."""


_MIGRATE = "{error}: run `freehire-embed migrate`"
_INVISIBLE = "{error}: if it is pgvector's, this role needs USAGE on the schema where pgvector was installed"
_SILENT = "Postgres (DATABASE_URL) does not answer: {error}"
_BUSY = "other writers are in the way again and again: {error}; a later run may go through"
# By SQLSTATE, else by its class.
_CAUSES: dict[str, _Cause] = {
    "08": _Cause(DatabaseDown, _SILENT),
    "25006": _Cause(
        DatabaseDown,
        "the database is read-only ({because}): {error}; let DATABASE_URL name the primary, or undo the setting",
    ),
    "25": _Cause(DatabaseDown, "the server ended the transaction: {error}"),
    "25P04": _Cause(DatabaseDown, "the server's transaction_timeout is too short: {error}"),
    "40": _Cause(DatabaseDown, _BUSY),
    "42501": _Cause(RightsMissing, "{error} ({because})"),
    "42P01": _Cause(DatabaseMisfit, _MIGRATE),
    "42703": _Cause(DatabaseMisfit, _MIGRATE),
    "42704": _Cause(DatabaseMisfit, _INVISIBLE),
    "42883": _Cause(DatabaseMisfit, _INVISIBLE),
    "53100": _Cause(
        DatabaseDown, "the server's disk is full: {error}; make room there, nothing is lost meanwhile"
    ),
    "53200": _Cause(DatabaseDown, "the server is out of memory: {error}"),
    "53300": _Cause(
        DatabaseDown, "the server has no connection left: {error}; raise max_connections or use a pooler"
    ),
    "53400": _Cause(DatabaseDown, "a limit set at the server is reached: {error}"),
    "53": _Cause(DatabaseDown, "the server is short of something: {error}"),
    "55P03": _Cause(
        DatabaseDown, "a lock was not free: {because}; end that session or wait for it ({error})"
    ),
    "57014": _Cause(DatabaseDown, "{error}: {because}"),
    "57": _Cause(DatabaseDown, _SILENT),
    "58": _Cause(DatabaseDown, "the server cannot use its files: {error}; see its log"),
}


def is_retryable(error: psycopg.Error) -> bool:
    """A lost connection, a deadlock and their like: the same transaction may succeed when sent again."""
    state = error.sqlstate
    if _is_pooled_by_statement(error):
        return False
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state in _RETRYABLE_STATES or state[:2] in _RETRYABLE_CLASSES


def is_outrun(error: psycopg.Error) -> bool:
    """Another session changed what this one works on: sent again, the transaction sees it as it is now.

    It inserted the same key, deleted the posting, altered a table (a plan kept by the server does not fit any more,
    an object is gone between two steps). When it goes on, it was a fault after all.
    """
    altered = error.sqlstate in ("0A000", "XX000")
    return altered or isinstance(error, errors.UniqueViolation | errors.ForeignKeyViolation)


@contextmanager
def blaming_no_posting() -> Iterator[None]:
    """For the queue's own statements: a row that is refused there is the table's trouble, not a posting's."""
    try:
        yield
    except RowRejected as error:
        raise DatabaseMisfit(f"the queue cannot be worked: {error}") from error


@contextmanager
def for_the_owner(command: str) -> Iterator[None]:
    """For what the worker's rights are not meant for: `command` names it."""
    try:
        yield
    except RightsMissing as error:
        raise DatabaseMisfit(
            f"{error.refused}: {command} is for the owner of the tables: let DATABASE_URL log in as that role"
        ) from error


def translate(error: psycopg.Error, because: str = "") -> Exception:
    """The fault that `error` amounts to once retrying is over; `because`: see `circumstances`."""
    state = error.sqlstate
    said = _first_line(error)
    if _is_pooled_by_statement(error):
        return DatabaseMisfit(
            f"the pooler at DATABASE_URL knows no transactions ({said}): set its pool_mode to transaction"
        )
    if state is None:
        if is_retryable(error):
            return DatabaseDown(_SILENT.format(error=said))
        # the driver's own verdict: nothing was sent
        if isinstance(error, psycopg.DataError):
            return RowRejected(said, corrupted=False)
        return DatabaseMisfit(f"the statement cannot be sent: {said}")
    cause = _CAUSES.get(state) or _CAUSES.get(state[:2])
    if cause is not None:
        timed_out = state == "57014" and because.startswith("statement_timeout")
        fault = StatementTimeout if timed_out else cause.fault
        return fault(cause.sentence.format(error=said, because=because or "the server does not say why"))
    if state[:2] in _ROW_CLASSES:
        return RowRejected(f"{said} (SQLSTATE {state})", corrupted=state in _CORRUPTION)
    return DatabaseMisfit(f"{said} (SQLSTATE {state})")


def _is_pooled_by_statement(error: psycopg.Error) -> bool:
    """PgBouncer has one SQLSTATE for all that it refuses."""
    return "statement pooling" in str(error)


def _first_line(error: psycopg.Error) -> str:
    """The primary message; details may quote a row and are left out."""
    primary = error.diag.message_primary
    return primary if primary else next(iter(str(error).strip().splitlines()), type(error).__name__)
