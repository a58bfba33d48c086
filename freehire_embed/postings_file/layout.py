"""Which column of a file is which field of a posting, and what is said where that cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from freehire_embed.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.posting import Fields

NEEDED = ("title", "description")
KEYS = ("source", "external_id", "id")
FIELDS = (*NEEDED, *KEYS, "url", "company", "posted_at", "is_tech", "closed_at")
MAX_ROW_BYTES = 32 * 1024 * 1024
"""A longer row is no posting (the longest of 14,876 real ones has 0.1 MB) and must not fill the memory."""
NOT_UTF8 = "not UTF-8"
_MOST_NAMES = 50
"""Names of columns remembered and shown; records made by a program may have a new one each."""
_NAME_CHARACTERS = 60


class ImportFileError(SettingsError):
    """A file that cannot be imported at all; the text names the file and what to do. Exit code 2."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A row that cannot be imported, and why; never its text."""

    number: int
    """Line of the file at which it begins, from 1; in Parquet the row, in a JSON document the record, from 1."""
    reason: str
    unit: str = "line"


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file's own names and shape do not tell."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Field -> the column to take it from; `a.b` is `b` inside of `a` where no column has that name."""
    records: str | None = None
    """The keys that lead to the list of postings inside a JSON document, joined by dots; '' = it is the list."""
    delimiter: str | None = None
    """Of CSV; None = a comma."""


class Columns:
    """Picks the fields of a posting out of a file's rows. Names match whatever their case and outer blanks."""

    def __init__(self, layout: Layout, not_taken: set[str] | None = None) -> None:
        self.layout = layout
        self._mapped = {name: _plain(column) for name, column in layout.columns.items()}
        self._fields = {self._mapped.get(name, name): name for name in FIELDS}
        self._nested = {name: column.split(".") for name, column in self._mapped.items() if "." in column}
        self._not_taken = set() if not_taken is None else not_taken

    def taken(self, names: Sequence[str]) -> list[str]:
        """Those of a file's columns that are read."""
        heads = {steps[0] for steps in self._nested.values()}
        return [name for name in names if _plain(name) in self._fields or _plain(name) in heads]

    def lacking(self, names: Sequence[str], remark: str = "") -> str:
        """What is missing among the columns of a whole file, and how to say where it is; '' = nothing.

        `remark` is said behind the names of the columns.
        """
        there = {_plain(name) for name in names}
        heads = {name: steps[0] for name, steps in self._nested.items()}
        missing = [
            name
            for name in (*NEEDED, *(name for name in self._mapped if name not in NEEDED))
            if not there & {self._mapped.get(name, name), heads.get(name)}
        ]
        return self._missing("column", missing, names, remark) if missing else ""

    def row(self, record: Mapping[str, Any]) -> Fields | str:
        """The fields of a posting in `record`, or why it is none."""
        found: dict[str, Any] = {}
        for name, value in record.items():
            plain = _plain(name)
            if (taken := self._fields.get(plain)) and (name == plain or taken not in found):
                found[taken] = value
            elif taken is None and not any(steps[0] == plain for steps in self._nested.values()):
                self.leave(name)
        for name, steps in self._nested.items():
            if name not in found and (inner := _inside(record, steps)) is not None:
                found[name] = inner[0]
        # A mapped key that is not there would be made up from something else, and the posting be another one.
        needed = (*NEEDED, *(name for name in KEYS if name in self._mapped))
        missing = [name for name in needed if name not in found]
        return self._missing("field", missing, list(record)) if missing else found

    def leave(self, name: str) -> None:
        """Remembers that a column is not taken."""
        if len(self._not_taken) < _MOST_NAMES:
            self._not_taken.add(_short(name))

    def _missing(self, what: str, missing: Sequence[str], names: Sequence[str], remark: str = "") -> str:
        wanted = " and no ".join(self._mapped.get(name, name) for name in missing)
        shown = ", ".join(_short(name) for name in names[:_MOST_NAMES]) or "none"
        hint = " ".join(f"--map {name}=..." for name in missing)
        return f"has no {what} {wanted}; its {what}s are: {shown}{remark}; say which to take: {hint}"


def _plain(name: str) -> str:
    return name.strip().lower()


def _short(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS else f"{name[:_NAME_CHARACTERS]}…"


def _inside(record: Mapping[str, Any], steps: Sequence[str]) -> tuple[Any] | None:
    """The value at the end of `steps`; None = there is no such place."""
    value: Any = record
    for step in steps:
        if not isinstance(value, Mapping):
            return None
        name = step if step in value else next((each for each in value if _plain(each) == step), None)
        if name is None:
            return None
        value = value[name]
    return (value,)
