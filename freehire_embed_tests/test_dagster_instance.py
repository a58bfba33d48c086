"""Where Dagster keeps its history: SQLite under FREEHIRE_STATE, or Postgres."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._cli.utils import get_temporary_instance_for_cli
from psycopg.conninfo import conninfo_to_dict

from freehire_embed.orchestration.instance import PROJECT_DIR, open_instance

ON_POSTGRES = PROJECT_DIR / "deploy" / "postgres"


def settings_of(folder: Path) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load((folder / "dagster.yaml").read_text())
    return settings


def test_the_default_instance_keeps_its_files_under_freehire_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("FREEHIRE_STATE", str(tmp_path))
    with open_instance() as instance:
        assert instance.get_runs() == []
        assert not instance.telemetry_enabled
    assert (tmp_path / "dagster" / "history" / "runs.db").exists()


def test_dagster_dev_without_a_home_says_where_it_keeps_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copy(PROJECT_DIR / "dagster.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FREEHIRE_STATE", "state")
    with caplog.at_level("INFO", "dagster"), get_temporary_instance_for_cli("dagster dev"):
        assert (tmp_path / "state" / "dagster" / "history" / "runs.db").exists()
    assert caplog.messages[-1] == f"The history is kept all the same, in {tmp_path / 'state' / 'dagster'}"


def test_dagster_dev_loads_the_same_location_with_and_without_the_workspace_file() -> None:
    workspace = yaml.safe_load((PROJECT_DIR / "workspace.yaml").read_text())
    project = tomllib.loads((PROJECT_DIR / "pyproject.toml").read_text())["tool"]["dg"]["project"]
    location = workspace["load_from"][0]["python_module"]
    assert project["code_location_name"] == location["location_name"]
    assert f"{project['root_module']}.definitions" == location["module_name"]


def test_a_deleted_run_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("FREEHIRE_STATE", str(tmp_path))
    with open_instance() as instance:
        run = dg.DagsterRun("embed_job", run_id="some-run")
        instance.run_storage.add_run(run)
        instance.report_run_canceled(run)
        assert list(tmp_path.rglob(f"{run.run_id}.db"))

        instance.delete_run(run.run_id)

        assert not list(tmp_path.rglob(f"{run.run_id}*"))


def test_an_instance_on_postgres_needs_one_variable(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = conninfo_to_dict(empty_database_url)
    url = f"postgresql+psycopg2://{parts['user']}@/{parts['dbname']}?host={parts['host']}"
    monkeypatch.setenv("DAGSTER_HOME", str(ON_POSTGRES))
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    with open_instance() as instance:
        run = dg.DagsterRun("embed_job", run_id="a")
        instance.run_storage.add_run(run)
        assert [found.run_id for found in instance.get_runs()] == ["a"]


def test_both_instances_differ_only_in_where_they_keep_their_history() -> None:
    default, on_postgres = settings_of(PROJECT_DIR), settings_of(ON_POSTGRES)
    del default["instance_class"], on_postgres["storage"]
    assert default == on_postgres
