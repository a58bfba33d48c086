"""Hands a wave from op to op in memory, and forgets it on the way.

Dagster's in-memory IO manager keeps every output until the run ends: a hundred waves of vectors. The one on files
leaves a pickle of each behind for ever. Here an output has exactly one reader, so reading it takes it away.
"""

from typing import Any

import dagster as dg

_GONE = (
    "Launch the job anew: this wave was held in memory and is gone, so a run cannot be re-executed from a step. "
    "Nothing is lost, its claims were given back and the next lane claims them again"
)


class WaveIOManager(dg.IOManager):
    """Works for in-process runs whose outputs are read once."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, ...], Any] = {}

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        self._held[tuple(context.get_identifier())] = obj

    def load_input(self, context: dg.InputContext) -> Any:
        output = context.upstream_output
        key = tuple(output.get_identifier()) if output else ()
        if key not in self._held:
            raise dg.Failure(_GONE, allow_retries=False)
        return self._held.pop(key)


@dg.io_manager
def wave_io_manager() -> WaveIOManager:
    """A fresh one for each run."""
    return WaveIOManager()
