"""What the markup of a posting means: the rule table of its elements, and repairs before a parser sees it.

The two readings, the parser target in ``plain`` and the tree walk in ``reference``, follow this table.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


BLOCK = _names(
    "address article aside blockquote body caption center col colgroup dd details dialog dir div dl dt fieldset"
    " figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup html legend li listing main menu"
    " nav ol optgroup option p plaintext pre search section summary table tbody td tfoot th thead tr ul xmp"
)
"""Elements that stand on lines of their own: a line ends before and after each."""

BREAK = _names("br hr")
"""Elements that only end a line."""

SKIPPED = _names(
    "applet audio canvas datalist embed head iframe math noembed noframes noscript object script select style"
    " svg template textarea title video"
)
"""Elements that are dropped with all they hold."""

_INLINE = _names(
    "a abbr acronym area b base basefont bdi bdo big blink button cite code data del dfn em font frame i image"
    " img input ins kbd label link map mark marquee meta meter nobr output param picture progress q rb rp rt"
    " rtc ruby s samp slot small source span strike strong sub sup time track tt u var wbr"
)

_KNOWN = "|".join(sorted(BLOCK | BREAK | SKIPPED | _INLINE, key=len, reverse=True))
_TAG = re.compile(rf"<(?:/?(?:{_KNOWN})(?:[\s/][^<>]*)?>|!--|!doctype\b|!\[|\?xml\b)", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)


def is_hidden(attributes: Mapping[str, str]) -> bool:
    """Whether an element with these attributes is never shown."""
    return "hidden" in attributes or (
        "style" in attributes and bool(_HIDDEN_STYLE.search(attributes["style"]))
    )


def has_tags(source: str) -> bool:
    """Whether `source` is HTML. Without a tag that HTML knows, `List<String>` and `<app name>` are text."""
    return "<" in source and bool(_TAG.search(source))


_ESCAPED = r"&(?:amp;)*(?:lt|#0*60|#x0*3c);"
_ESCAPED_TAG = re.compile(rf"{_ESCAPED}/?(?:{_KNOWN})(?=[\s/>&])", re.IGNORECASE)
_ESCAPED_STRUCTURE = re.compile(
    rf"{_ESCAPED}(?:/(?:{_KNOWN})|(?:br|p|li|ul|ol|h[1-6]))(?=[\s/>&])", re.IGNORECASE
)
_ESCAPED_END = re.compile(r"&(?:amp;)*(?:gt|#0*62|#x0*3e);\s*\Z", re.IGNORECASE)
_EXTRA_ROUNDS = 3  # the most that was seen on real boards


def undo_extra_escaping(source: str) -> str:
    """`source` with its markup unescaped when it arrived as text; never where it has real tags.

    A sample tag in a text (`knows &lt;div&gt;`) is content, so the markup has to open the text or give it
    structure. A feed's own footer of real tags after an escaped text does not count as part of it.
    """
    if "&" not in source or not _ESCAPED_TAG.search(source):
        return source
    first_tag = _TAG.search(source)
    escaped, footer = (
        (source[: first_tag.start()], source[first_tag.start() :]) if first_tag else (source, "")
    )
    if footer and not (_ESCAPED_END.search(escaped) and not _ESCAPED_TAG.search(footer)):
        return source
    for _ in range(_EXTRA_ROUNDS):
        opened = _ESCAPED_TAG.match(escaped.lstrip())
        if not opened and (footer or not _ESCAPED_STRUCTURE.search(escaped)):
            break
        escaped = html.unescape(escaped)
        if _TAG.search(escaped):
            break
    return escaped + footer


_REFERENCE = re.compile(r"&#(?:([0-9]+)|[xX]([0-9a-fA-F]+));?")


def repair_references(source: str) -> str:
    """`source` without references to no character, for which a parser would leave U+FFFD.

    A reference to half a surrogate pair becomes that half.
    """
    # A source without "&" is passed over at once: one character is looked for far faster than two.
    return _REFERENCE.sub(_usable_reference, source) if "&" in source and "&#" in source else source


def _usable_reference(reference: re.Match[str]) -> str:
    decimal, hexadecimal = reference.groups()
    digits = (decimal or hexadecimal).lstrip("0")
    if not digits or len(digits) > 7:
        return ""
    code = int(digits, 10 if decimal else 16)
    if 0xD800 <= code <= 0xDFFF:
        return chr(code)
    return reference.group() if code <= 0x10FFFF else ""


# The parser ignores an end tag that closes nothing (`</br>`, a stray `</p>`), and would glue what it parts.
_LINE_ENDING_TAG = re.compile(rf"</(?=(?:{'|'.join(sorted(BLOCK | BREAK))})[\s>])", re.IGNORECASE)
_PLAIN_TAG_OR_COMMENT = r"/?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]*|/)?>|!--"
_ODD_SIGN = re.compile(rf"<(?!{_PLAIN_TAG_OR_COMMENT})")
# `<` is a sign before what cannot be a tag: `<3`, `</3`, `<https://…>`, `<me@example.com>`, and `a<b` of no
# known element that runs into the next tag or the end.
_SIGN = re.compile(
    r"<(?=[^A-Za-z/!?]|\Z|/[^A-Za-z\s>]|[a-z]+://|mailto:|[^\s<>@\"'=]+@[^\s<>\"'=]+>"
    rf"|(?!/?(?:{_KNOWN})(?:[\s/>]|\Z))/?[A-Za-z][^<>]*(?:<|\Z))",
    re.IGNORECASE,
)


def repair_markup(source: str) -> str:
    """`source` with what a parser would drop or glue put so that it reads it as it was meant."""
    if "<![CDATA[" in source:
        source = source.replace("<![CDATA[", "").replace("]]>", "")
    source = _LINE_ENDING_TAG.sub("\n</", source)
    return _SIGN.sub("&lt;", source) if _ODD_SIGN.search(source) else source
