"""How many tokens a text is for the model, without its tokenizer.

Longest match over the vocabulary that the e5 models share (XLM-RoBERTa's, MIT licence; tools/token_pieces.py
lists it). The model cuts a word into the pieces of the best total score instead; over 35,146 stretches of real
postings of 300 to 490 tokens that made at most 1.6 % more than longest match, which the margin covers. Chunk
borders, and so the hashes of passages, hang on this number, so it must be the same everywhere, whether a
tokenizer is at hand or not. For a model with another vocabulary the number promises nothing.
"""

from __future__ import annotations

import functools
import gzip
import string
import unicodedata
from pathlib import Path

BOUNDARY = "▁"
"""What stands for the blank before a word in the vocabulary."""

SPECIAL_TOKENS = 2
"""Begin and end, which the model puts around every input."""

MARGIN_PERCENT = 2
"""What is added to the pieces that longest match finds."""

PIECES_FILE = Path(__file__).with_name("token_pieces.txt.gz")
"""One piece a line; single characters, which always count one, are left out."""

_BLOCK = 64  # code points

_LETTERS = string.ascii_letters.encode()
_HIGH_BYTES = bytes(range(0x80, 0x100))


def estimate_tokens(text: str) -> int:
    """Tokens of `text` as one input of the model, specials included; hardly ever fewer than it really has."""
    return SPECIAL_TOKENS - (-count_pieces(text) * (100 + MARGIN_PERCENT) // 100)


def quick_bound(text: str) -> float:
    """Hardly ever fewer than `text` has, by kinds of bytes: a twentieth of the time of ``estimate_tokens``.

    For sorting out the many texts that are far from a limit, not for cutting. Of 6,484 real passages 82 % stay
    below 1.03 times 512 by it, none of them wrongly.
    """
    encoded = text.encode()
    signs_and_high = encoded.translate(None, _LETTERS)
    signs = signs_and_high.translate(None, _HIGH_BYTES)
    blanks = signs.count(b" ") + signs.count(b"\n")
    letters = len(encoded) - len(signs_and_high)
    high = len(signs_and_high) - len(signs)
    return 1.15 * (0.15 * letters + 0.44 * blanks + 1.08 * (len(signs) - blanks) + 0.23 * high)


def pieces_within(tokens: int) -> int:
    """How many pieces an input of `tokens`, specials included, may have by ``estimate_tokens``."""
    return (tokens - SPECIAL_TOKENS) * 100 // (100 + MARGIN_PERCENT)


def count_pieces(text: str) -> int:
    """Pieces of `text`, which add up over what blanks part, for no piece reaches over a blank."""
    return sum(
        [_word_pieces(word) if len(word) <= _BLOCK else _long_word_pieces(word) for word in text.split()]
    )


def _long_word_pieces(word: str) -> int:
    """Counted by blocks, so that counting its prefixes one after the other stays cheap."""
    rest = range(_BLOCK, len(word), _BLOCK)
    return _word_pieces(word[:_BLOCK]) + sum([_word_pieces(word[at : at + _BLOCK], "") for at in rest])


@functools.lru_cache(maxsize=200_000)
def _word_pieces(word: str, boundary: str = BOUNDARY) -> int:
    pieces, longest = _vocabulary()
    if not word.isascii():
        # Character by character, not the word: some tokenizers compose accents and some do not, to more pieces.
        word = "".join([unicodedata.normalize("NFKC", character) for character in word])
    text = boundary + word.replace(" ", BOUNDARY)
    count = start = 0
    while start < len(text):
        length = longest.get(text[start : start + 2], 1)
        while length > 1 and text[start : start + length] not in pieces:
            length -= 1
        start += length
        count += 1
    return count


@functools.cache
def _vocabulary() -> tuple[frozenset[str], dict[str, int]]:
    """The pieces, and the length of the longest one that begins with these two characters."""
    pieces = frozenset(gzip.decompress(PIECES_FILE.read_bytes()).decode().split("\n"))
    return pieces, {piece[:2]: len(piece) for piece in sorted(pieces, key=len)}
