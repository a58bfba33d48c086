"""Postings chosen and queries made from them by fixed rules, so that every run measures the same thing.

A query is made from one line of a posting: of the lines that qualify, the one whose words are rarest among all
postings given. A word is a run of letters or digits; where the script writes no blanks, two characters that stand
side by side.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from freehire_embed.text import html_to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

SHORTEST_TEXT = 1200
"""Code points: below it no rule cuts anything, and there is nothing to compare."""
_LANGUAGES = {"wuu": "zh", "yue": "zh", "arz": "ar"}
_LINE = range(40, 400)
_QUERY_CHARACTERS = 200
_UNBLANKED = r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_WORD = re.compile(rf"(?=({_UNBLANKED}{{2}}))|((?:(?!{_UNBLANKED})[^\W_])+)")
_CLAUSE = re.compile(r"[,;:.!?()、，。；：！？]\s*")


@dataclass(frozen=True, slots=True)
class Posting:
    id: str
    language: str
    title: str
    company: str | None
    description: str
    text: str


class Query(NamedTuple):
    kind: str
    posting: int
    """Position among the chosen postings: the one right answer."""
    text: str


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL(.gz) file; languages that ISO 639-1 counts as one are made one."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [json.loads(line) for line in content.splitlines()]
    return [{**row, "lang": _LANGUAGES.get(row["lang"], row["lang"])} for row in rows]


def choose(path: Path, a_language: int) -> list[Posting]:
    """Up to `a_language` postings of each language of a JSONL(.gz) file with `lang`, in the order of a hash of id.

    Of postings with the same text one is taken, for each would be the right answer to the other's query.
    """
    rows = read_rows(path)
    rows.sort(key=lambda row: hashlib.sha256(row["id"].encode()).digest())
    taken: Counter[str] = Counter()
    seen: set[str] = set()
    chosen = []
    for row in rows:
        language = row["lang"]
        if taken[language] >= a_language:
            continue
        text = html_to_text(row["description"])
        if len(text) < SHORTEST_TEXT or text in seen:
            continue
        seen.add(text)
        taken[language] += 1
        chosen.append(Posting(row["id"], language, row["title"], row["company"], row["description"], text))
    return chosen


def make_queries(postings: Sequence[Posting]) -> list[Query]:
    """For each posting one of each kind, where it has a line that will do.

    `tail`: a line of the last third of the text, as it is. `paraphrase`: a line of the first two thirds, its
    clauses in reverse order and every fourth word left out. Both are cut at 200 code points.
    """
    rarity = _Rarity(posting.text for posting in postings)
    queries = []
    for number, posting in enumerate(postings):
        border = len(posting.text) * 2 // 3
        lines = list(_lines(posting.text))
        for kind, candidates in (
            ("tail", [line for start, line in lines if start >= border]),
            ("paraphrase", [line for start, line in lines if start + len(line) < border]),
        ):
            if candidates:
                line = max(candidates, key=rarity.of)
                text = line if kind == "tail" else _reworded(line)
                queries.append(Query(kind, number, text[:_QUERY_CHARACTERS]))
    return queries


class _Rarity:
    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = 0
        self._texts_with: Counter[str] = Counter()
        for text in texts:
            self._texts += 1
            self._texts_with.update(set(_words(text)))

    def of(self, line: str) -> float:
        """Mean inverse document frequency of the line's words."""
        words = _words(line)
        return sum(math.log(self._texts / self._texts_with[word]) for word in words) / max(len(words), 1)


def _words(text: str) -> list[str]:
    return [match[1] or match[2] for match in _WORD.finditer(text.lower())]


def _lines(text: str) -> Iterable[tuple[int, str]]:
    """Lines of a fit length with their offsets; one that is too long counts as its sentences."""
    for match in re.finditer(r"[^\n。]+?(?:[.!?]\s|。|\n|\Z)", text):
        line = match[0].strip()
        if len(line) in _LINE:
            yield match.start(), line


def _reworded(line: str) -> str:
    clauses = [clause for clause in _CLAUSE.split(line) if clause]
    words = " ".join(reversed(clauses)).split()
    if len(words) > len(clauses):
        words = [word for number, word in enumerate(words) if number % 4 != 3]
    return " ".join(words)
