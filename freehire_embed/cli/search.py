"""`search`: a question in words, answered by the stored vectors."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import click

from freehire_embed.cli.exits import CLEAN
from freehire_embed.cli.options import (
    Age,
    Text,
    identity_followed,
    json_option,
    opened,
    option,
    read_settings,
)
from freehire_embed.cli.output import note, posting_line, print_json, say
from freehire_embed.local.defaults import with_embedder
from freehire_embed.profiles import load_profiles
from freehire_embed.run import make_embedder, resolve_profile
from freehire_embed.store.identities import check_usable, target
from freehire_embed.store.search import Filters, explain_nearest, find_nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehire_embed.domain import Vector
    from freehire_embed.profiles import Profile
    from freehire_embed.settings import Settings
    from freehire_embed.store.database import Database
    from freehire_embed.store.search import Explanation, Hit


class Since(click.ParamType[datetime]):
    """A day such as 2026-01-31, or a span back from now such as 12h or 7d."""

    name = "since"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        text = str(value).strip()
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except ValueError:
            pass
        try:
            return datetime.now(UTC) - timedelta(seconds=Age().convert(text, param, ctx))
        except (click.BadParameter, OverflowError):
            self.fail(f"{text!r} is neither a day nor a span; write 2026-01-31, 12h or 7d", param, ctx)


@click.command(short_help="Find the postings nearest to a text.")
@click.argument("text", type=Text(), nargs=-1, required=True)
@option("--limit", default=10, show_default=True, type=click.IntRange(1, 500), help="Postings to show.")
@option("--company", type=Text(), help="Only of this company, by name or slug.")
@option(
    "--language",
    type=Text(),
    help="Only in this language, by its code: en, de, zh. It is guessed from the text.",
)
@option("--since", type=Since(), help="Only posted since then: 2026-01-31, 12h or 7d.")
@option("--explain", is_flag=True, help="Tell what the index misses of the exact answer, and both times.")
@option(
    "--timeout",
    default=10.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="Seconds to wait for the query's vector.",
)
@json_option
def search(
    text: tuple[str, ...],
    limit: int,
    company: str | None,
    language: str | None,
    since: datetime | None,
    explain: bool,
    timeout: float,
    json: bool,
) -> int:
    """\b
    Example: freehire-embed search "remote Rust work on databases" --limit 5 --since 30d

    The open, public postings nearest to TEXT, one line a posting. Works while a backfill runs: what already has the
    target's vectors is found.
    """
    question = " ".join(text).strip()
    if not question:
        raise click.UsageError("TEXT is empty: say what to look for.")
    filters = Filters(company, since, language.strip().lower() if language else None)
    with opened(read_settings()) as (settings, database), with_embedder(settings) as settings:
        asked = ask(settings, database, question, timeout)
        hits = find_nearest(database, asked.profile, asked.vector, limit, filters) if asked else []
        if asked and explain:
            _explain(explain_nearest(database, asked.profile, asked.vector, limit, filters))
    if json:
        print_json([asdict(hit) for hit in hits])
    else:
        show(hits)
    return CLEAN


class Asked(NamedTuple):
    """A question's vector, and the profile that it belongs to."""

    profile: Profile
    vector: Vector


def ask(settings: Settings, database: Database, text: str, timeout_seconds: float = 10) -> Asked | None:
    """Embeds `text` under the target; None where nothing was ever embedded.

    The server has to prove first that it serves the target: a query vector of another model would find nonsense.
    Raises what `check_usable` and the embedder raise.
    """
    if target(database, load_profiles(settings.profiles_path)) is None:
        return None
    profile = resolve_profile(replace(settings, model=identity_followed(settings, database)), database)
    reference = check_usable(database, profile)
    with make_embedder(replace(settings, warmup_seconds=0), profile) as embedder:
        embedder.preflight(reference)
        return Asked(profile, embedder.embed_query(text, timeout_seconds))


def answer(settings: Settings, database: Database, text: str, limit: int) -> list[Hit]:
    """The postings nearest to `text`; [] where nothing was ever embedded. Raises like `ask`."""
    asked = ask(settings, database, text)
    return find_nearest(database, asked.profile, asked.vector, limit) if asked else []


def _explain(explanation: Explanation) -> None:
    note(
        f"index: {explanation.found} of the {explanation.wanted} nearest (recall {explanation.recall:.0%}) from "
        f"{explanation.candidates} candidates in {1000 * explanation.index_seconds:.0f} ms; "
        f"comparing every passage takes {1000 * explanation.exact_seconds:.0f} ms"
    )


def show(hits: Sequence[Hit]) -> None:
    """One line a posting and its snippet below."""
    if not hits:
        say("nothing found: is anything embedded yet? See `freehire-embed status`")
    for number, hit in enumerate(hits, 1):
        say(posting_line(number, hit.title, hit.company, hit.distance, hit.url))
        say(f"     {hit.snippet}")
