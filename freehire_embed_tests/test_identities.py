"""The string decides: a new identity becomes the target, a superseded one cannot undo it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from freehire_embed import run
from freehire_embed.profiles import DEFAULT_IDENTITY, Profile
from freehire_embed.settings import Settings, SettingsError
from freehire_embed.store import identities
from freehire_embed.store.faults import DatabaseMisfit, RowRejected
from freehire_embed_tests.catalogue import add_posting, count, outbox, vector

A = Profile("model-a", ("a",), 8)
B = Profile("model-b", ("b",), 8)
KNOWN = {"model-a", "model-b"}


def test_the_first_use_promotes_and_the_second_changes_nothing(database):
    assert identities.target(database, KNOWN) is None
    assert identities.promote_proven(database, A, vector(1))
    assert not identities.promote_proven(database, A, vector(2))
    assert identities.target(database, KNOWN) == "model-a"
    assert np.allclose(identities.check_usable(database, A), vector(1))


def test_a_superseded_identity_is_refused_until_it_is_promoted_on_purpose(database):
    identities.promote_proven(database, A, vector(1))
    identities.promote_proven(database, B, vector(2))
    with pytest.raises(
        SettingsError, match=r"model-a is superseded; target is model-b .*models promote model-a"
    ):
        identities.check_usable(database, A)
    identities.promote_known(database, "model-a")
    assert identities.target(database, KNOWN) == "model-a"
    assert np.allclose(identities.check_usable(database, A), vector(1)), "its probe is remembered"
    with pytest.raises(SettingsError):
        identities.check_usable(database, B)


def test_going_back_to_what_never_was_is_refused_with_what_there_is(database):
    identities.promote_proven(database, A, vector(1))
    with pytest.raises(SettingsError, match="known are: model-a"):
        identities.promote_known(database, "model-x")


def test_what_a_database_was_embedded_with_before_counts_as_its_target_and_then_as_superseded(sql, database):
    for _ in range(2):
        add_posting(sql, semantic_embedded_model="model-a")
    add_posting(sql, semantic_embedded_model="model-older")
    assert identities.target(database, KNOWN) == "model-a"
    identities.promote_proven(database, B, vector(2))
    assert identities.target(database, KNOWN) == "model-b"
    for forgotten in (A, Profile("model-older", ("o",), 8)):
        with pytest.raises(SettingsError, match="superseded"):
            identities.check_usable(database, forgotten)


def test_a_stamp_that_nobody_knows_is_passed_over_for_one_that_is_known(sql, database):
    for _ in range(2):
        add_posting(sql, semantic_embedded_model="of-another-planet")
    assert identities.target(database, KNOWN) is None
    add_posting(sql, semantic_embedded_model="model-a")
    assert identities.target(database, KNOWN) == "model-a"


def test_under_a_stamp_that_nobody_knows_the_default_is_taken_and_it_is_said_once(sql, database, caplog):
    add_posting(sql, semantic_embedded_model="of-another-planet")
    run._say_unknown.cache_clear()
    settings = Settings.from_environment({"DATABASE_URL": "postgresql:///any"})
    assert [run.resolve_profile(settings, database).identity for _ in range(2)] == [DEFAULT_IDENTITY] * 2
    said = [message for message in caplog.messages if "of-another-planet" in message]
    assert len(said) == 1
    assert DEFAULT_IDENTITY in said[0]


def test_a_run_that_is_superseded_while_it_works_retires_nothing(sql, database):
    add_posting(sql)
    identities.promote_proven(database, A, vector(1))
    old = outbox(database, "old", model="model-a")
    old.enqueue()
    identities.promote_proven(database, B, vector(2))
    outbox(database, "new", model="model-b").enqueue()
    with pytest.raises(DatabaseMisfit, match="model-a was superseded while this run worked"):
        old.enqueue()
    assert old.claim(10) is None
    assert count(sql, "select count(*) from semantic_outbox where target_model = 'model-b'") == 1


def test_another_width_than_the_tables_is_refused(database):
    with pytest.raises(DatabaseMisfit, match="8 wide and wide makes 16"):
        identities.check_usable(database, Profile("wide", ("w",), 16))


def test_a_promotion_is_whole_or_not_at_all(sql, database):
    job = add_posting(sql)
    sql.execute("update jobs set semantic_embedded_model = 'model-old' where id = %s", [job])
    sql.execute("alter table semantic_models add check (identity <> 'model-old')")
    with pytest.raises(RowRejected):
        identities.promote_proven(database, A, vector(1))
    assert identities.list_identities(database) == []


def test_of_many_that_bring_the_same_identity_one_promotes_it(database):
    with ThreadPoolExecutor(6) as pool:
        promoted = list(pool.map(lambda _: identities.promote_proven(database, A, vector(1)), range(6)))
    assert sorted(promoted) == [False] * 5 + [True]
