"""`dead list`, `dead show` and `dead requeue`."""

from __future__ import annotations

from dataclasses import asdict

import click

from freehire_embed.cli.exits import CLEAN, FAILED
from freehire_embed.cli.options import (
    ID,
    Age,
    Text,
    identity_followed,
    json_option,
    opened,
    option,
    read_settings,
)
from freehire_embed.cli.output import duration, print_json, say
from freehire_embed.store.dead_letters import DeadLetter, Selection, list_causes, list_dead, requeue


@click.group(short_help="List dead letters or put them back.")
def dead() -> None:
    """\b
    Example: freehire-embed dead list

    Entries that were given up: a posting's own fault, as often as EMBED_MAX_ATTEMPTS. They come back by themselves
    when the posting's content changes, and by `dead requeue`.
    """


@dead.command("list", short_help="Show dead letters, grouped by cause.")
@option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    help="Entries shown, the newest.",
)
@json_option
def list_command(limit: int, json: bool) -> int:
    """\b
    Example: freehire-embed dead list --json

    The causes, the commonest first, then the newest entries.
    """
    with opened(read_settings()) as (_, database):
        causes, letters = list_causes(database), list_dead(database, limit=limit)
    if json:
        print_json({"causes": [asdict(c) for c in causes], "entries": [asdict(x) for x in letters]})
        return CLEAN
    if not causes:
        say("no dead letters")
        return CLEAN
    for cause in causes:
        examples = ", ".join(map(str, cause.examples))
        say(f"{cause.entries} x {cause.cause}  (such as entry {examples})")
    say()
    for letter in letters:
        say(_line(letter))
    return CLEAN


@dead.command(short_help="Show one dead letter whole.")
@click.argument("entry", type=ID)
@json_option
def show(entry: int, json: bool) -> int:
    """\b
    Example: freehire-embed dead show 4711

    Everything known about a dead letter, its error uncut.
    """
    with opened(read_settings()) as (_, database):
        letters = list_dead(database, entry_id=entry)
    if not letters:
        say(f"entry {entry} is no dead letter; `freehire-embed dead list` shows those there are", err=True)
        return FAILED
    if json:
        print_json(asdict(letters[0]))
        return CLEAN
    for name, value in asdict(letters[0]).items():
        say(f"{name:<14} {value}")
    return CLEAN


@dead.command("requeue", short_help="Put dead letters back with attempts 0.")
@click.argument("entries", type=ID, nargs=-1)
@option("--posting", type=ID, help="The dead letter of this posting.")
@option("--cause", type=Text(), help="Those whose error contains this text.")
@option("--older-than", type=Age(), help="Those dead for longer than this, such as 2d.")
@option("--all", "everything", is_flag=True, help="All of them.")
def requeue_command(
    entries: tuple[int, ...],
    posting: int | None,
    cause: str | None,
    older_than: float | None,
    everything: bool,
) -> int:
    """\b
    Example: freehire-embed dead requeue --cause "must have less than" --older-than 2d

    Conditions add up. Doing it twice changes nothing more; the next run claims what came back.
    """
    given = (entries, posting is not None, cause, older_than is not None)
    if everything == any(given):
        raise click.UsageError("say which: ENTRIES, --posting, --cause, --older-than, or else --all.")
    with opened(read_settings()) as (settings, database):
        model = identity_followed(settings, database)
        requeued = requeue(database, model, Selection(entries or None, posting, cause, older_than))
    say(f"{len(requeued)} dead letters of {model} are back in the queue")
    return CLEAN


def _line(letter: DeadLetter) -> str:
    closed = "  (posting closed)" if letter.closed else ""
    error = letter.last_error if len(letter.last_error) <= 120 else f"{letter.last_error[:119]}…"
    return (
        f"entry {letter.entry_id}  posting {letter.job_id}  attempts {letter.attempts}  "
        f"dead for {duration(letter.dead_seconds)}  {error}{closed}"
    )
