"""UTF-8 that somebody read as Latin-1 or Windows-1252, put right where there is proof of it."""

from __future__ import annotations

import re
import unicodedata

_FOLLOWING = sorted(
    {chr(byte) for byte in range(0x80, 0xC0)} | set(bytes(range(0x80, 0xC0)).decode("cp1252", "ignore"))
)
_FOLLOW = "[" + re.escape("".join(_FOLLOWING)) + "]"
_SEQUENCE = re.compile(f"[\xc2-\xdf]{_FOLLOW}|[\xe0-\xef]{_FOLLOW}{{2}}|[\xf0-\xf4]{_FOLLOW}{{3}}")
_C1 = tuple(map(chr, range(0x80, 0xA0)))
# What no honest text holds: a lead byte before a C1 control (U+0085 apart), `Ã` before a sign other than a
# closing quote, an ordinal or a no-break space, and the start of a curly quote.
_EVIDENCE = re.compile("[\xc2-\xf4][\x80-\x84\x86-\x9f]|Ã[\xa1-\xa9\xab-\xaf\xb1-\xb9\xbc-\xbf]|â€")


def repair_mojibake(text: str) -> str:
    """`text` with each damaged UTF-8 sequence as the character it was; unchanged without evidence."""
    if text.isascii() or not ("Ã" in text or "â€" in text or any(control in text for control in _C1)):
        return text
    return _SEQUENCE.sub(_as_character, text) if _EVIDENCE.search(text) else text


def _as_character(sequence: re.Match[str]) -> str:
    signs = sequence.group()
    encoded = b"".join(sign.encode("latin-1" if sign <= "\xff" else "cp1252") for sign in signs)
    try:
        character = encoded.decode()
    except UnicodeDecodeError:
        return signs
    return signs if unicodedata.category(character) == "Cn" else character
