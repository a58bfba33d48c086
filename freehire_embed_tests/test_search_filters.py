"""What a search can be narrowed to, and what it tells about the index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click
import pytest

from freehire_embed.cli.search import Since
from freehire_embed.profiles import Profile
from freehire_embed.store.search import Filters, explain_nearest, find_nearest
from freehire_embed_tests.catalogue import MODEL, add_embedded, at

if TYPE_CHECKING:
    from typing import Any

    import psycopg

    from freehire_embed.store.database import Database

PROFILE = Profile(MODEL, ("example/tiny",), 8)
GERMAN = (
    "<p>Wir suchen für unser Team in Köln eine Person, die mit uns die Brücken der Stadt plant und baut.</p>"
)
ENGLISH = "<p>We are looking for a person who plans the bridges of the city with us and builds them.</p>"


def found(database: Database, limit: int = 10, **filters: Any) -> list[int]:
    return [hit.job_id for hit in find_nearest(database, PROFILE, at(0), limit, Filters(**filters))]


def test_a_company_is_known_by_its_name_or_slug_in_any_case(
    database: Database, sql: psycopg.Connection
) -> None:
    wanted = add_embedded(sql, 1.0, company="Acme Bridges", company_slug="acme-bridges")
    add_embedded(sql, 0.1)
    assert found(database, company="acme bridges") == [wanted]
    assert found(database, company="ACME-Bridges") == [wanted]


def test_a_company_is_found_behind_any_number_of_nearer_passages_of_others(
    database: Database, sql: psycopg.Connection
) -> None:
    for number in range(30):
        add_embedded(sql, *(0.001 * (number + step) for step in range(40)))
    wanted = add_embedded(sql, 2.0, company="Acme")
    assert found(database, company="Acme") == [wanted]


def test_since_takes_the_day_of_posting_or_the_day_it_was_first_seen(
    database: Database, sql: psycopg.Connection
) -> None:
    now = datetime.now(UTC)
    posted = add_embedded(sql, 0.1, posted_at=now - timedelta(days=1), created_at=now - timedelta(days=9))
    seen = add_embedded(sql, 0.2, created_at=now - timedelta(days=1))
    add_embedded(sql, 0.1, posted_at=now - timedelta(days=9))
    assert found(database, since=now - timedelta(days=2)) == [posted, seen]


def test_a_language_is_guessed_from_the_text(database: Database, sql: psycopg.Connection) -> None:
    german = [add_embedded(sql, 0.1 * number, description=GERMAN) for number in range(1, 4)]
    add_embedded(sql, 0.05, description=ENGLISH)
    assert found(database, language="de") == german
    assert found(database, limit=2, language="de") == german[:2]


def test_the_index_is_compared_with_the_exact_answer(database: Database, sql: psycopg.Connection) -> None:
    for number in range(20):
        add_embedded(sql, 0.1 * number)
    explanation = explain_nearest(database, PROFILE, at(0), 5)
    assert (explanation.wanted, explanation.found, explanation.recall) == (5, 5, 1.0)
    assert explanation.candidates == 100


def test_an_empty_catalogue_misses_nothing(database: Database) -> None:
    assert explain_nearest(database, PROFILE, at(0), 5).recall == 1.0


def test_what_a_backfill_has_not_reached_yet_is_not_found(
    database: Database, sql: psycopg.Connection
) -> None:
    done = add_embedded(sql, 1.0)
    add_embedded(sql, 0.1, model="the-model-before")
    assert found(database) == [done]


def test_since_is_a_day_or_a_span() -> None:
    assert Since().convert("2026-01-31T00:00:00+00:00", None, None) == datetime(2026, 1, 31, tzinfo=UTC)
    week = datetime.now(UTC) - Since().convert("7d", None, None)
    assert abs(week - timedelta(days=7)) < timedelta(minutes=5)
    with pytest.raises(click.BadParameter, match="2026-01-31, 12h or 7d"):
        Since().convert("yesterday", None, None)
