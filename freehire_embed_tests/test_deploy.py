"""The deployment files say the same as the code and as each other, as far as a parser can tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from freehire_embed.cli import commands
from freehire_embed.settings import VARIABLES

ROOT = Path(__file__).parent.parent
COMPOSE = yaml.safe_load((ROOT / "deploy/docker/docker-compose.yml").read_text())
VALUES = yaml.safe_load((ROOT / "deploy/kubernetes/values.yaml").read_text())
DOCKERFILE = (ROOT / "deploy/docker/Dockerfile").read_text()
DEPLOY = (ROOT / "docs/deploy.md").read_text()
INSTANCES = {
    name: yaml.safe_load((ROOT / name).read_text())
    for name in ("dagster.yaml", "deploy/postgres/dagster.yaml")
}
OURS = [name for name, service in COMPOSE["services"].items() if service["image"] == "freehire-embed"]


def test_what_the_image_copies_is_there():
    for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.M):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source


@pytest.mark.parametrize("service", OURS)
def test_the_services_set_only_variables_that_are_read(service):
    known = {*VARIABLES, "DAGSTER_POSTGRES_URL"}
    assert set(COMPOSE["services"][service]["environment"]) <= known


def test_the_services_run_commands_that_exist():
    for service in OURS:
        match = re.match(r"freehire-embed (\S+)", COMPOSE["services"][service].get("command", ""))
        assert match is None or match.group(1) in commands.commands


def test_every_dependency_of_a_service_is_a_service():
    for service in COMPOSE["services"].values():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in COMPOSE["services"]
            assert how["condition"] != "service_healthy" or "healthcheck" in COMPOSE["services"][needed]


def test_what_runs_print_is_shared_by_those_who_write_show_and_prune_it():
    home = re.search(r"^ENV DAGSTER_HOME=(.+)$", DOCKERFILE, re.M)[1]
    assert {tuple(COMPOSE["services"][service]["volumes"]) for service in OURS} == {
        (f"run_logs:{home}/storage",)
    }
    assert "run_logs" in COMPOSE["volumes"]


def test_a_container_of_the_docs_joins_the_network_and_the_volume_of_the_services():
    launcher = re.search(r"^run_launcher:.*?(?=^```)", DEPLOY, re.M | re.S)[0]
    config = yaml.safe_load(launcher)["run_launcher"]["config"]
    assert config["network"] == f"{COMPOSE['name']}_default"
    (volume,) = config["container_kwargs"]["volumes"]
    assert volume == f"{COMPOSE['name']}_{COMPOSE['services']['code']['volumes'][0]}"


def test_the_lanes_are_capped_alike_everywhere():
    caps = [instance["concurrency"]["runs"]["tag_concurrency_limits"] for instance in INSTANCES.values()]
    coordinator = VALUES["dagsterDaemon"]["runCoordinator"]["config"]["queuedRunCoordinator"]
    assert caps[0] == caps[1] == coordinator["tagConcurrencyLimits"]


def test_ticks_and_logs_are_kept_alike_everywhere():
    ours = INSTANCES["dagster.yaml"]
    for kind in ("schedule", "sensor"):
        assert VALUES["retention"][kind]["purgeAfterDays"] == ours["retention"][kind]["purge_after_days"]
    assert VALUES["pythonLogs"]["managedPythonLoggers"] == ours["python_logs"]["managed_python_loggers"]


def test_nothing_retries_runs_anywhere():
    assert not any(instance["run_retries"]["enabled"] for instance in INSTANCES.values())
    assert VALUES["dagsterDaemon"]["runRetries"]["enabled"] is False


def test_both_homes_of_the_history_differ_in_storage_alone():
    plain, postgres = ({**instance} for instance in INSTANCES.values())
    plain.pop("instance_class")
    postgres.pop("storage")
    postgres.pop("instance_class", None)
    assert plain == postgres
