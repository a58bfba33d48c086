"""`freehire-embed run` that halts at one point: says so on stdout, and goes on when it gets a line on stdin.

    python -m freehire_embed_tests.paused_worker POINT TIMES

It halts there the TIMES-th time it comes by. The points: after a stage, `commit` before its first statement, and
`storing`, inside the commit transaction with everything written. With POINT `kills`, the passage that holds the
word KILLER kills the process, as a crash in a library would.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from freehire_embed import stages
from freehire_embed.cli import main
from freehire_embed.store.commit import WaveCommit
from freehire_embed.tei import TeiEmbedder

POINTS = ("enqueue", "claim", "chunk", "embed", "commit", "storing", "committed")


def halt_at(point: str, times: int) -> None:
    left = times

    def halt() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            sys.stdout.write(f"{point}\n")
            sys.stdout.flush()
            sys.stdin.readline()

    owner, name, before = {
        "enqueue": (stages, "enqueue", False),
        "claim": (stages, "claim", False),
        "chunk": (stages, "chunk", False),
        "embed": (stages, "embed", False),
        "commit": (stages, "commit", True),
        "storing": (WaveCommit, "_store", False),
        "committed": (stages, "commit", False),
    }[point]
    work = getattr(owner, name)

    def halting(*args: Any, **options: Any) -> Any:
        if before:
            halt()
        result = work(*args, **options)
        if not before:
            halt()
        return result

    setattr(owner, name, halting)


def die_of(word: str) -> None:
    embed = TeiEmbedder.embed

    def deadly(self: TeiEmbedder, passages: Any, *arguments: Any, **options: Any) -> Any:
        if any(word in text for text in passages):
            os.kill(os.getpid(), signal.SIGKILL)
        return embed(self, passages, *arguments, **options)

    TeiEmbedder.embed = deadly  # type: ignore[method-assign]


if __name__ == "__main__":
    if sys.argv[1] == "kills":
        die_of("KILLER")
    else:
        halt_at(sys.argv[1], int(sys.argv[2]))
    main(["run", "--json"])
