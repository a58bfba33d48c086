"""`import`: files of postings into `jobs`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from freehire_embed.cli.exits import CLEAN, FAILED
from freehire_embed.cli.options import json_option, opened, option, read_settings
from freehire_embed.cli.output import Advance, note, print_json, progress, say
from freehire_embed.postings_file import FIELDS, BadLine, Layout, read_postings
from freehire_embed.store.import_postings import posting_import

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from freehire_embed.posting import Posting
    from freehire_embed.store.database import Database

_SHOWN = 20


@dataclass(slots=True)
class ImportReport:
    """What became of the lines of all files."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    closed: int = 0
    bad: int = 0
    unreadable_dates: int = 0
    not_taken: list[str] = field(default_factory=list)
    """Columns of the files that are no field of a posting."""

    @property
    def line(self) -> str:
        parts = [f"{self.added} added", f"{self.updated} updated", f"{self.unchanged} unchanged"]
        parts += [f"{self.closed} closed"] if self.closed else []
        parts += [f"{self.bad} bad lines"] if self.bad else []
        parts += [f"{self.unreadable_dates} unreadable posted_at"] if self.unreadable_dates else []
        parts += [f"columns not taken: {', '.join(self.not_taken)}"] if self.not_taken else []
        return ", ".join(parts)


class FieldMap(click.ParamType[tuple[str, str]]):
    """field=column."""

    name = "field=column"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, equals, column = (part.strip() for part in str(value).partition("="))
        if name not in FIELDS or not equals or not column:
            self.fail(f"{value!r}: write FIELD=COLUMN, where FIELD is one of {', '.join(FIELDS)}", param, ctx)
        return name, column


class Delimiter(click.ParamType[str]):
    """One character, or its name."""

    name = "character"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = {"tab": "\t", "\\t": "\t"}.get(str(value), str(value))
        if len(text) != 1 or text in '"\r\n':
            self.fail(f"{value!r} is not one character; write ';', '|' or tab", param, ctx)
        return text


@click.command("import", short_help="Add or update postings from files.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@option(
    "--map", "mapped", multiple=True, type=FieldMap(), help="Take a field from this column: title=position."
)
@option("--records", help="Keys that lead to the list of postings in a JSON document: jobs or data.jobs.")
@option(
    "--delimiter", type=Delimiter(), help="Between the columns of CSV: ';', '|' or tab; a comma without it."
)
@option(
    "--close-missing", is_flag=True, help="Close open postings of the files' sources that the files lack."
)
@json_option
def import_files(
    files: tuple[Path, ...],
    mapped: tuple[tuple[str, str], ...],
    records: str | None,
    delimiter: str | None,
    close_missing: bool,
    json: bool,
) -> int:
    """\b
    Example: freehire-embed import postings.jsonl.gz
    Example: curl https://jobs.example/feed | freehire-embed import - --records jobs --map title=position

    Adds or updates postings from JSONL, JSON, CSV (each also .gz) or Parquet files, by source and external_id; - is
    standard input. Columns: title, description; optional source, external_id, url, company, posted_at, is_tech,
    closed_at; the others are named. Bad lines are named and left out; the exit code is then 1.
    """
    layout = Layout(dict(mapped), records, delimiter)
    with opened(read_settings()) as (_, database), progress("postings", log_every_seconds=10) as advance:
        report = load(database, files, layout, close_missing=close_missing, advance=advance)
    if json:
        print_json(asdict(report))
    else:
        say(report.line)
    return FAILED if report.bad else CLEAN


def load(
    database: Database,
    files: Sequence[Path],
    layout: Layout | None = None,
    *,
    advance: Advance,
    close_missing: bool = False,
) -> ImportReport:
    """Imports `files`; bad lines are noted. Raises ImportFileError, DatabaseFault.

    With a bad line nothing is closed: the line may be the very posting that seems to be gone.
    """
    report = ImportReport()
    not_taken: set[str] = set()
    with posting_import(database) as target:
        for path in files:
            for batch in target.add(_good(path, layout, report, not_taken)):
                report.added += batch.added
                report.updated += batch.updated
                report.unchanged += batch.unchanged
                for refusal in batch.refused:
                    _complain(report, f"{path}: {refusal}")
                advance(report.added + report.updated + report.unchanged, None, f"{path}: {report.line}")
        if close_missing and report.bad:
            note("nothing is closed, since a bad line may be a posting that seems to be gone")
        elif close_missing:
            report.closed = target.close_missing()
    report.not_taken = sorted(not_taken)
    return report


def _good(path: Path, layout: Layout | None, report: ImportReport, not_taken: set[str]) -> Iterator[Posting]:
    for row in read_postings(path, layout, not_taken):
        if isinstance(row, BadLine):
            _complain(report, f"{path}, {row.unit} {row.number}: {row.reason}")
            continue
        report.unreadable_dates += row.posted_at_unreadable
        yield row


def _complain(report: ImportReport, line: str) -> None:
    report.bad += 1
    if report.bad <= _SHOWN:
        note(line)
    elif report.bad == _SHOWN + 1:
        note("more bad lines are counted, not shown")
