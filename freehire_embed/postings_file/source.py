"""A file or standard input, opened as what it is: JSON, CSV or Parquet, compressed or not."""

from __future__ import annotations

import gzip
import io
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from freehire_embed.postings_file.layout import ImportFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES, DOCUMENT, CSV, PARQUET = "JSON lines", "JSON", "CSV", "Parquet"
STANDARD_INPUT = Path("-")
_KINDS = {".jsonl": LINES, ".ndjson": LINES, ".json": DOCUMENT, ".csv": CSV, ".parquet": PARQUET}
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Source:
    """An open file of postings."""

    path: Path
    stem: str
    """The source of postings that name none."""
    kind: str
    file: io.BufferedReader[Any]
    """Plain bytes, without a byte order mark; of Parquet the file as it is."""


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """The file at `path`, or standard input. Raises ImportFileError, OSError."""
    with ExitStack() as stack:
        if path == STANDARD_INPUT:
            # Not closed: it is not ours.
            raw: io.BufferedReader[Any] = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
            compressed = raw.peek(2).startswith(_GZIP)
            stem, kind = "import", ""
        else:
            stem, kind, compressed = _named(path)
            raw = stack.enter_context(path.open("rb"))
        if compressed:
            unpacked = stack.enter_context(gzip.GzipFile(fileobj=raw))
            raw = io.BufferedReader(cast("Any", unpacked))
        kind = kind or _begun(raw)
        if kind != PARQUET and raw.peek(3).startswith(_BOM):
            raw.read(3)
        yield Source(path, stem, kind, raw)


def _named(path: Path) -> tuple[str, str, bool]:
    name = path.name.lower()
    compressed = name.endswith(".gz")
    plain = name.removesuffix(".gz")
    for suffix, kind in _KINDS.items():
        if plain.endswith(suffix) and not (compressed and kind == PARQUET):
            return path.name[: len(plain) - len(suffix)] or "import", kind, compressed
    raise ImportFileError(
        f"{path}: the name says no known format; it must end with one of .jsonl, .ndjson, .json, .csv "
        "(each also with .gz) or .parquet"
    )


def _begun(file: io.BufferedReader[Any]) -> str:
    """The kind of standard input, by what it begins with."""
    begin = file.peek(512).removeprefix(_BOM).lstrip()
    if begin.startswith(b"PAR1"):
        raise ImportFileError("-: Parquet cannot be read from standard input: save it to a file first")
    return DOCUMENT if begin.startswith((b"{", b"[")) else CSV
