"""Text of strangers on a terminal: shown, and nothing else done by it.

Titles, addresses and error messages come from anywhere. Escape sequences move the cursor and rename windows,
directional controls show a line in another order than it has, and a line end forges a line of its own.
"""

from __future__ import annotations

import re

ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls, the 8-bit ones among them: 9b begins a sequence as ESC [ does
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directional marks, embeddings, overrides and isolates
    "\u2028\u2029\u200b\ufeff"  # other line ends; blanks without width
    "\U000e0000-\U000e007f"  # tags, invisible
    "\ud800-\udfff]"  # halves of surrogate pairs, which no encoding can write
)


def printable(text: str) -> str:
    """`text` with whatever would act on a terminal, or could not be seen, written out: `\\x1b`, `\\u202e`."""
    return ACTIVE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
