"""Similar postings and the audit as an operator sees them in Dagster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from freehire_embed.definitions import defs
from freehire_embed_tests.catalogue import add_embedded, add_posting, count
from freehire_embed_tests.deployment import OLD

if TYPE_CHECKING:
    import psycopg

pytestmark = pytest.mark.usefixtures("deployed_here")


def materialize(asset: str, **config: Any) -> tuple[dict[str, object], dict[str, dg.AssetCheckEvaluation]]:
    """The asset's metadata and its checks by name."""
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        asset_selection=[dg.AssetKey(asset)], run_config={"ops": {asset: {"config": config}}}
    )
    metadata = result.asset_materializations_for_node(asset)[0].metadata
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    return {name: value.value for name, value in metadata.items()}, checks


def test_similar_job_computes_what_is_due_and_counts_the_lists(sql: psycopg.Connection) -> None:
    for number in range(3):
        add_embedded(sql, 0.1 * number, model=OLD, company_slug="")
    assert defs.resolve_job_def("similar_job").execute_in_process().success
    assert count(sql, "select count(*) from jobs where cardinality(similar_job_ids) = 2") == 3
    add_embedded(sql, 0.5, model=OLD, company_slug="")
    numbers, _ = materialize("similar_postings")
    assert (numbers["computed"], numbers["lists"], numbers["missing"], numbers["empty"]) == (1, 4, 0, 0)


def test_similar_job_says_that_it_waits_for_a_backfill(sql: psycopg.Connection) -> None:
    add_embedded(sql, 0.1, model=OLD)
    for _ in range(4):
        add_posting(sql)
    numbers, _ = materialize("similar_postings")
    assert "20% of the postings" in str(numbers["waiting"])
    numbers, _ = materialize("similar_postings", least_covered_percent=0.0)
    assert numbers["computed"] == 1


def test_each_kind_of_fault_is_a_check_that_says_how_to_repair_it(sql: psycopg.Connection) -> None:
    job_id = add_embedded(sql, model=OLD)
    _, checks = materialize("vector_audit")
    failed = [name for name, check in checks.items() if not check.passed]
    assert failed == ["no_stamp_without_chunks"]
    assert f"for example [{job_id}]" in (checks["no_stamp_without_chunks"].description or "")
    numbers, _ = materialize("vector_audit", repair=True)
    assert numbers["requeued"] == 1
    assert count(sql, "select count(*) from jobs where semantic_embedded_model is null") == 1


def test_a_run_whose_passages_were_cut_fails_the_check_with_the_languages(sql: psycopg.Connection) -> None:
    sql.execute(
        "insert into semantic_runs (run_id, target_model, last_wave_at, passages, over_limit) "
        "values ('r', %s, now(), 100, '{\"zh\": 30}'), ('s', %s, now(), 100, '{\"zh\": 1, \"ko\": 9}')",
        [OLD, OLD],
    )
    _, checks = materialize("vector_audit", sample=0)
    check = checks["passages_fit_the_model"]
    assert not check.passed
    assert "20.0 % of the passages" in (check.description or "")
    assert check.metadata["cut"].value == 40
    assert "| zh" in str(check.metadata["by_language"].value)
