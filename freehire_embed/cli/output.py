"""Where lines go: results to stdout, everything else to stderr; a bar for a terminal, plain lines for a log."""

from __future__ import annotations

import json
import logging
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from freehire_embed.chunks import NAME_CHARACTERS
from freehire_embed.printable import ACTIVE, printable
from freehire_embed.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

terminal = Console(stderr=True)


class _Formatter(logging.Formatter):
    """A message may quote what a posting or a server says."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = printable(record.message)
        return super().formatMessage(record)


def configure_logging() -> None:
    """Our own messages from INFO, those of libraries from WARNING."""
    handler: logging.Handler
    if terminal.is_terminal:
        handler = RichHandler(console=terminal, show_time=False, show_path=False)
        handler.setFormatter(_Formatter("%(message)s"))
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("freehire_embed").setLevel(logging.INFO)


def say(line: str = "", *, bold: bool = False, err: bool = False) -> None:
    """One line of a result on stdout, whatever is in it: nothing else reaches a terminal."""
    click.secho(printable(line), bold=bold, err=err)  # noqa: TID251 - the one place


def print_json(value: Any) -> None:
    """One line, so that a script can take the last one; the same value whatever the encoding of stdout."""
    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    line = json.dumps(value, ensure_ascii=not is_unicode, default=str)
    click.echo(ACTIVE.sub(lambda found: json.dumps(found[0])[1:-1], line))  # noqa: TID251 - the one place


def note(line: str) -> None:
    """One line about the work, apart from its result."""
    terminal.print(printable(line), markup=False, highlight=False, soft_wrap=True)


class Advance(Protocol):
    def __call__(self, done: int, total: int | None, line: str) -> None:
        """`done` of `total` (None = not known); `line` says the same for a log."""


@contextmanager
def progress(unit: str, log_every_seconds: float = 0) -> Iterator[Advance]:
    """A bar while the block runs on a terminal; in a log, a line when it advances, but not more often than that."""
    if not terminal.is_terminal:
        last = time.monotonic()

        def log(done: int, total: int | None, line: str) -> None:  # noqa: ARG001
            nonlocal last
            if time.monotonic() - last >= log_every_seconds:
                last = time.monotonic()
                note(line)

        yield log
        return
    columns = (TextColumn(unit), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # A wave may take minutes, and the time left is told from the last ones.
    with Progress(*columns, console=terminal, speed_estimate_period=1800) as bar:
        task = bar.add_task(unit, total=None)

        def advance(done: int, total: int | None, line: str) -> None:  # noqa: ARG001
            bar.update(task, completed=done, total=total)

        yield advance


def posting_line(number: int, title: str, company: str, distance: float, url: str) -> str:
    """A found posting on one line; titles arrive with the entities and tags of their source."""
    name = one_line(title, NAME_CHARACTERS)
    at = f" at {one_line(company, NAME_CHARACTERS)}" if company else ""
    return f"{number:3}. {name}{at}  (distance {distance:.3f})  {url}".rstrip()


def duration(seconds: float) -> str:
    """`seconds` for people: 45 s, 12 min, 3.5 h, 2.1 days."""
    for size, unit in ((86400, "days"), (3600, "h")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
