"""What may be shown of a server's words: nothing that was sent to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_MESSAGE_CHARACTERS = 200
_ECHO_CHARACTERS = 10
"""Shortest run of letters and digits that counts as quoted from what was sent."""
_DENSE_ECHO_CHARACTERS = 4
"""The same outside of ASCII, where four characters may be a sentence; a server's own words are English."""


def redact(message: str, private: Sequence[str], characters: int = _MESSAGE_CHARACTERS) -> str:
    """`message` on one line, of at most so many printable `characters`, without anything quoted from `private`.

    What commands a terminal or turns the direction of writing counts as a space. Servers like to repeat their input
    in error messages. Spaces and punctuation are ignored when looking for quotations, so that an escaped or
    re-wrapped one is found as well.
    """
    printable = "".join(character if character.isprintable() else " " for character in message)
    line = " ".join(printable.split())[: 2 * characters]
    places = [place for place, character in enumerate(line) if character.isalnum()]
    letters = "".join(line[place] for place in places)
    sent = ["".join(filter(str.isalnum, text)) for text in private]
    haystack = "\0".join(sent)
    hidden: set[int] = set()
    for start in range(len(letters)):
        for size in (_DENSE_ECHO_CHARACTERS, _ECHO_CHARACTERS):
            run = letters[start : start + size]
            too_common = size == _DENSE_ECHO_CHARACTERS and any(character.isascii() for character in run)
            if len(run) == size and not too_common and run in haystack:
                hidden.update(range(places[start], places[start + size - 1] + 1))
    for short in (text for text in sent if 2 < len(text) < _ECHO_CHARACTERS):
        start = letters.find(short)
        while start >= 0:
            hidden.update(range(places[start], places[start + len(short) - 1] + 1))
            start = letters.find(short, start + 1)
    shown = []
    for place, character in enumerate(line):
        if place not in hidden:
            shown.append(character)
        elif place - 1 not in hidden:
            shown.append("…")
    return "".join(shown)[:characters]
