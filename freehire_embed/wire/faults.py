"""The three kinds of fault, never mixed: a row's own, the upstream's, and the configuration's.

A row fault is a value (`Embeddings.faults`), because its neighbours go on. The other two end something, so
they are exceptions for whoever asked one question (`preflight`, `embed_query`) and a `Halt` for a wave.

    ServerFault       the server refuses this very text (only one that is asked alone can raise it)
    ├── UpstreamFault the server, the network or a proxy; trying later helps
    └── ConfigFault   model, width, pooling, key, URL or shape; trying later does not help
"""

from __future__ import annotations

from freehire_embed.domain import Halt, HaltKind


class ServerFault(Exception):
    """The text names the URL, the attempts, their duration and the last answer; never row text or a key."""


class UpstreamFault(ServerFault):
    """Nobody's work is charged for it."""

    def as_halt(self) -> Halt:
        return Halt(HaltKind.UPSTREAM, str(self))


class ConfigFault(ServerFault):
    """Stops a run before it writes anything."""

    def as_halt(self) -> Halt:
        return Halt(HaltKind.CONFIG, str(self))
