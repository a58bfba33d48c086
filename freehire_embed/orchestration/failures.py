"""Faults as failed steps whose first line tells an operator what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg

from freehire_embed.domain import Halt, HaltKind, Outcome, WaveReport
from freehire_embed.settings import SettingsError
from freehire_embed.store.faults import DatabaseDown, DatabaseFault, RowRejected
from freehire_embed.tei import ServerFault, UpstreamFault

_WHAT_TO_DO = {
    HaltKind.UPSTREAM: "Bring the embedding server (EMBED_URL) back; nothing was charged, the next run goes on",
    HaltKind.UNDECIDED: "Look into the embedding server's log (EMBED_URL); nothing was charged",
    HaltKind.CONFIG: "Correct the configuration, then launch the job again",
    HaltKind.CALL_TIMEOUT: "Raise EMBED_CALL_TIMEOUT_SECONDS or lower EMBED_BATCH_SIZE; nothing was charged",
    HaltKind.DATABASE: "Bring Postgres (DATABASE_URL) back; nothing was charged, the next run goes on",
}


@contextmanager
def explained() -> Iterator[None]:
    """Turns a fault of settings, server or database into a failed step that says what to do."""
    try:
        yield
    except (SettingsError, ServerFault, DatabaseFault) as fault:
        raise dg.Failure(what_to_do(Halt(_kind(fault), str(fault))), allow_retries=False) from fault
    except RowRejected as refused:
        raise dg.Failure(
            f"Look into Postgres (DATABASE_URL), it refused a row: {refused}",
            allow_retries=False,
        ) from refused


def what_to_do(halt: Halt) -> str:
    """One line: the remedy, then what happened."""
    return f"{_WHAT_TO_DO[halt.kind]}: {halt.reason}"


def failure_of(report: WaveReport, metadata: dict[str, Any]) -> dg.Failure | None:
    """The failed step that a wave amounts to; None when all of it was done."""
    outcomes = report.outcomes
    lines = []
    if report.halt:
        lines.append(what_to_do(report.halt))
    if dead := outcomes[Outcome.DEAD_LETTERED]:
        lines.append(
            f"Look at `freehire-embed dead list`, then run requeue_dead_letters_job: {dead} dead-lettered"
        )
    if failed := outcomes[Outcome.FAILED]:
        lines.append(f"Nothing to do yet, {failed} failed and will be tried again after their lease")
    if doubt := report.usage.doubt:
        lines.append(doubt)
    if not lines and outcomes[Outcome.ABANDONED]:
        lines.append(
            f"Nothing to do, {outcomes[Outcome.ABANDONED]} abandoned and come back after their lease"
        )
    if not lines:
        return None
    return dg.Failure("\n".join((*lines, *report.errors)), metadata=metadata, allow_retries=False)


def _kind(fault: Exception) -> HaltKind:
    if isinstance(fault, UpstreamFault):
        return HaltKind.UPSTREAM
    return HaltKind.DATABASE if isinstance(fault, DatabaseDown) else HaltKind.CONFIG
