"""Rebuild freehire_embed/text/token_pieces.txt.gz, the vocabulary that rule v2 counts tokens with.

    python tools/token_pieces.py tokenizer.json

`tokenizer.json` is the one that the hub serves beside intfloat/multilingual-e5-small or -base (MIT licence);
only `model.vocab` is read, a list of [piece, score].
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from freehire_embed.text.tokens import PIECES_FILE


def main() -> None:
    vocabulary = json.loads(Path(sys.argv[1]).read_text("utf-8"))["model"]["vocab"]
    # Specials score 0. A single character counts one whether it is a piece or not.
    pieces = sorted(
        piece for piece, score in vocabulary if score < 0 and len(piece) > 1 and piece.isprintable()
    )
    listed = "".join(f"{piece}\n" for piece in pieces if " " not in piece)
    PIECES_FILE.write_bytes(gzip.compress(listed.encode(), mtime=0))


if __name__ == "__main__":
    main()
