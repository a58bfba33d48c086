"""The plain reading of the rule table in ``markup``: a tree and a walk over it.

Less than a quarter of the speed of the parser target (benchmarks/text.py). It is the fallback where lxml
refuses a source, and the oracle of the differential test.
"""

from __future__ import annotations

import html
import re
import warnings
from typing import TYPE_CHECKING, Literal, cast

from bs4 import BeautifulSoup, ParserRejectedMarkup, XMLParsedAsHTMLWarning
from bs4.element import PageElement, PreformattedString, Tag

from freehire_embed.text.markup import BLOCK, BREAK, SKIPPED, is_hidden

if TYPE_CHECKING:
    from collections.abc import Mapping


_ANY_TAG = re.compile("<[^<>]*>")


def read(source: str, parser: Literal["lxml", "html.parser"] = "lxml") -> str:
    """The text of `source` before cleaning, "\\n" for each line border.

    Of markup that `parser` rejects, the text is what stands between its tags.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
            tree = BeautifulSoup(source, parser, multi_valued_attributes=None)
    except ParserRejectedMarkup:
        return html.unescape(_ANY_TAG.sub("\n", source))
    pieces: list[str] = []
    # What is still to be visited, the next one last; a string stands for itself.
    pending: list[PageElement | str] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Tag):
            if node.name in SKIPPED or is_hidden(cast("Mapping[str, str]", node.attrs)):
                continue
            if node.name in BLOCK or node.name in BREAK:
                pieces.append("\n")
            if node.name in BLOCK:
                pending.append("\n")
            pending.extend(reversed(node.contents))
        elif not isinstance(node, PreformattedString):  # a comment, a declaration, an instruction
            pieces.append(str(node))
    return "".join(pieces)
