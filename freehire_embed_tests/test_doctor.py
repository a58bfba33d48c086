"""What `doctor` finds, each fault with its way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import psycopg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
)

from freehire_embed.doctor import Check, diagnose
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.orchestration.instance import PROJECT_DIR
from freehire_embed.settings import Settings
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.deployment import NEW, OLD, environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def deployed(database_url: str, tei: FaultyTei, tmp_path: Path) -> dict[str, str]:
    return environment(database_url, tei.url, tmp_path)


def checks(variables: dict[str, str]) -> list[Check]:
    return list(diagnose(Settings.from_environment(variables), variables))


def wrong(variables: dict[str, str]) -> dict[str, Check]:
    """The failing checks by name; each has to say what to do."""
    failing = {check.name: check for check in checks(variables) if not check.ok}
    assert all(check.fix for check in failing.values())
    return failing


def test_a_healthy_deployment_passes_every_check(deployed: dict[str, str]) -> None:
    assert wrong(deployed) == {}
    names = {check.name for check in checks(deployed)}
    assert names >= {
        "database",
        "pgvector",
        "migrations",
        "identity",
        "indexes",
        "storage",
        "privileges",
        "snapshots",
        "server",
    }


def test_looking_writes_nothing(deployed: dict[str, str], sql: psycopg.Connection) -> None:
    checks(deployed)
    assert sql.execute("select count(*) from semantic_models").fetchone() == (0,)


def test_an_empty_database_is_told_to_migrate_and_the_server_is_still_asked(
    deployed: dict[str, str], empty_database_url: str
) -> None:
    failing = wrong({**deployed, "DATABASE_URL": empty_database_url})
    assert set(failing) == {"pgvector", "migrations"}
    assert "freehire-embed migrate" in failing["migrations"].fix


def test_an_unreachable_database_is_named_without_its_password(deployed: dict[str, str]) -> None:
    failing = wrong({**deployed, "DATABASE_URL": "postgresql://someone:hunter2@127.0.0.1:9/nowhere"})
    assert "DATABASE_URL" in failing["database"].found
    assert "hunter2" not in str(failing)


def test_a_setting_that_is_not_what_it_seems_is_shown(deployed: dict[str, str]) -> None:
    shown = checks(
        {
            **deployed,
            "EMBED_LEASE_SECONDS": "1",
            "EMBED_LANES": "many",
            "EMBED_BATCH_SIZE": "100000000000000000000",
            "EMBED_VERIFY_MODEL": "perhaps",
            "EMBED_ADAPTIVE": "sometimes",
            "EMBED_BATCHSIZE": "10",
        }
    )
    of_settings = [check for check in shown if check.name == "settings"]
    floored = next(check for check in of_settings if "EMBED_LEASE_SECONDS" in check.found)
    assert floored.ok
    assert "5 is used" in floored.found
    assert any("above the ceiling; 100000 is used" in check.found for check in of_settings)
    unparseable = next(check for check in of_settings if "EMBED_LANES" in check.found)
    assert not unparseable.ok
    assert "3 is used" in unparseable.found
    for flag in ("EMBED_VERIFY_MODEL", "EMBED_ADAPTIVE"):
        assert not next(check for check in of_settings if flag in check.found).ok
    unknown = next(check for check in of_settings if "EMBED_BATCHSIZE" in check.found)
    assert "EMBED_BATCH_SIZE" in unknown.fix


@pytest.mark.parametrize(
    ("variables", "name", "word"),
    [
        ({"EMBED_MODEL": "no-such-identity"}, "settings", "no-such-identity"),
        ({"EMBED_MODEL": "intfloat/multilingual-e5-base-chunked-v1"}, "identity", "768"),
        ({"EMBED_URL": "http://127.0.0.1:9/embed"}, "server", "EMBED_URL"),
        ({"EMBED_URL": "localhost:8090"}, "server", "http://"),
        ({"EMBED_PROFILES": "/nowhere/profiles.toml"}, "settings", "EMBED_PROFILES"),
    ],
)
def test_a_wrong_setting_is_named(
    deployed: dict[str, str], variables: dict[str, str], name: str, word: str
) -> None:
    failing = wrong({**deployed, **variables})
    assert word in failing[name].found


def test_a_server_of_another_model_is_wrong(deployed: dict[str, str]) -> None:
    with FaultyTei(width=WIDTH, model_id="example/other") as other:
        failing = wrong({**deployed, "EMBED_URL": other.url})
    assert "example/other" in failing["server"].found


def test_a_superseded_identity_is_wrong_and_a_new_one_is_announced(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    sql.execute(
        "insert into semantic_models (identity, width, promoted_at) "
        "values (%s, %s, now() - interval '1 h'), (%s, %s, now())",
        [OLD, WIDTH, NEW, WIDTH],
    )
    assert "superseded" in wrong(deployed)["identity"].found
    sql.execute("delete from semantic_models where identity = %s", [OLD])
    identity = next(check for check in checks(deployed) if check.name == "identity")
    assert identity.ok
    assert f"now {NEW}" in identity.found


def test_missing_and_invalid_indexes_are_wrong(deployed: dict[str, str], sql: psycopg.Connection) -> None:
    sql.execute("drop index semantic_outbox_claim_idx")
    assert wrong(deployed)["indexes"].found == "semantic_outbox_claim_idx is missing"
    assert wrong(deployed)["indexes"].fix == "run `freehire-embed migrate`"
    sql.execute("create index semantic_outbox_claim_idx on semantic_outbox (id)")
    assert "another index than it should be" in wrong(deployed)["indexes"].found
    sql.execute("drop index semantic_outbox_claim_idx")
    sql.execute(
        "create index of_another_name on semantic_outbox (job_posted_at desc nulls last, job_id desc) "
        "where failed_at is null"
    )
    assert "indexes" not in wrong(deployed)
    sql.execute("update pg_index set indisvalid = false where indexrelid = 'of_another_name'::regclass")
    assert wrong(deployed)["indexes"].found == "of_another_name is invalid"


def test_vectors_out_of_line_are_told_and_not_wrong(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    sql.execute("alter table job_semantic_chunks alter embedding set storage external")
    assert wrong(deployed) == {}
    (storage,) = [check for check in checks(deployed) if check.name == "storage"]
    assert "out of line" in storage.found


def test_an_old_transaction_is_wrong(
    deployed: dict[str, str], sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehire_embed.doctor.schema._OLD_SNAPSHOT_SECONDS", -1)
    with sql.transaction():
        sql.execute("set transaction isolation level repeatable read")
        sql.execute("select count(*) from jobs")
        assert "slows every claim" in wrong(deployed)["snapshots"].found
    assert "snapshots" not in wrong(deployed)


def test_a_role_that_lacks_rights_is_told_which(
    deployed: dict[str, str], database_url: str, sql: psycopg.Connection
) -> None:
    name = f"reader_{sql.info.dbname}"
    sql.execute(f"create role {name} login")
    try:
        sql.execute(f"grant select on all tables in schema public to {name}")
        url = psycopg.conninfo.make_conninfo(database_url, user=name)
        failing = wrong({**deployed, "DATABASE_URL": url})
        assert "insert on semantic_outbox" in failing["privileges"].found
        assert "update (semantic_embedded_model) on jobs" in failing["privileges"].found
        assert "select on jobs" not in failing["privileges"].found
    finally:
        sql.execute(f"drop owned by {name}")
        sql.execute(f"drop role {name}")


def test_a_schedule_that_is_off_and_a_daemon_that_is_gone_are_wrong_where_dagster_is_configured(
    deployed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("freehire_embed"), "__repository__")
    switched_off = InstigatorState(
        repository.get_instigator_origin("embed_schedule"),
        InstigatorType.SCHEDULE,
        InstigatorStatus.STOPPED,
        ScheduleInstigatorData("*/5 * * * *"),
    )
    with dg.DagsterInstance.get() as instance:
        instance.add_instigator_state(switched_off)
    failing = [check.found for check in checks({**deployed, "DAGSTER_HOME": str(tmp_path)}) if not check.ok]
    assert failing == ["embed_schedule is switched off", "the daemon was never seen"]


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({"DAGSTER_HOME": "no/such/folder"}, "must be an absolute path"),
        ({"DAGSTER_POSTGRES_URL": "postgresql://u:hunter2@127.0.0.1:9/d"}, "does not name the driver"),
        ({"DAGSTER_POSTGRES_URL": "postgresql+psycopg2://u:hunter2@127.0.0.1:9/d"}, "Connection refused"),
        ({}, "DAGSTER_POSTGRES_URL"),
    ],
)
def test_a_history_that_cannot_be_opened_is_wrong_and_the_rest_is_still_looked_at(
    deployed: dict[str, str], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], found: str
) -> None:
    variables = {"DAGSTER_HOME": str(PROJECT_DIR / "deploy" / "postgres"), **variables}
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    failing = wrong({**deployed, **variables})
    assert failing.keys() == {"dagster"}
    assert found in failing["dagster"].found
    assert "hunter2" not in failing["dagster"].found


def test_without_a_dagster_instance_nothing_is_said_of_it(deployed: dict[str, str]) -> None:
    assert "dagster" not in {check.name for check in checks(deployed)}
