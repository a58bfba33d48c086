"""Standard output and error that stop no work: a full disk, a closed pipe or a narrow encoding loses lines only."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Sturdy(io.FileIO):
    """A descriptor for which every write succeeds; the first that did not is kept in `fault`."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.fault: OSError | None = None

    def write(self, data: bytes | memoryview) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError as error:
            self.fault = self.fault or error
            return memoryview(data).nbytes


@contextmanager
def sturdy_streams() -> Iterator[Callable[[], str]]:
    """In the block nothing that is written to sys.stdout and sys.stderr raises.

    Characters that their encoding lacks are written out. The function it gives says why standard output did not
    take all of it; '' = it did.
    """
    out, err = sys.stdout, sys.stderr
    raw = _over(out)

    def lost() -> str:
        if sys.stdout is not None:
            sys.stdout.flush()
        return (raw.fault.strerror or str(raw.fault)) if raw and raw.fault else ""

    try:
        sys.stdout = _text(out, raw)
        sys.stderr = _text(err, _over(err))
        yield lost
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        sys.stdout, sys.stderr = out, err


def _over(stream: TextIO | None) -> _Sturdy | None:
    """None where the stream is closed, or is no file."""
    try:
        return _Sturdy(stream.fileno()) if stream is not None else None
    except OSError:
        return None


def _text(stream: TextIO, raw: _Sturdy | None) -> TextIO:
    if raw is None:
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(cast("io.RawIOBase", raw)),
        stream.encoding,
        "backslashreplace",
        line_buffering=True,
        newline="\n",
    )
