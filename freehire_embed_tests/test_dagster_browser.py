"""The UI in a real browser: a model backfill from the launchpad, and the coverage plot after it."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import psycopg
import pytest

from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed_tests.catalogue import add_posting, stamp
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.dagster_server import dagster_dev, wait_until
from freehire_embed_tests.deployment import NEW, OLD, SERVED, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no browser test without playwright: pip install playwright"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_PATIENCE = 60_000


@pytest.fixture
def page() -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("no browser test without chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1500, "height": 1200})
        opened.set_default_timeout(_PATIENCE)
        yield opened
        browser.close()


def test_an_operator_backfills_a_month_under_a_new_model_and_sees_the_coverage_change(
    database_url: str, sql: psycopg.Connection, page: Page, tmp_path: Path
) -> None:
    hashed = {"content_hash": "h", "semantic_embedded_model": OLD, "semantic_embedded_hash": "h"}
    march = [add_posting(sql, posted_at="2026-03-15", **hashed) for _ in range(3)]
    add_posting(sql, posted_at="2026-04-15", **hashed)
    sql.execute("insert into semantic_models values (%s, %s, now())", [OLD, WIDTH])
    with FaultyTei(width=WIDTH, model_id=SERVED) as tei:
        variables = environment(database_url, tei.url, tmp_path)
        # a deployment that names no model follows the target
        del variables["EMBED_MODEL"]
        with dagster_dev(variables, tmp_path) as desk:
            page.goto(f"{desk.url}/locations/freehire_embed/jobs/backfill_job/playground")
            page.get_by_placeholder("Partition").click()
            page.keyboard.type("2026-03-01")
            page.keyboard.press("Enter")
            page.locator(".CodeMirror").first.click()
            page.keyboard.press("Control+A")
            page.keyboard.insert_text(f"ops:\n  enqueue:\n    config:\n      model: {NEW}\n")
            page.get_by_text("Launch Run", exact=True).click()
            page.wait_for_url(re.compile("/runs/"))
            page.get_by_text("RUN_SUCCESS").wait_for()

            page.goto(f"{desk.url}/assets/semantic_coverage")
            before = len(desk.runs("__ASSET_JOB"))
            page.get_by_text("Materialize", exact=True).first.click()
            wait_until(lambda: len(desk.runs("__ASSET_JOB")) > before, "a new point of the plot")
            wait_until(lambda: set(desk.runs("__ASSET_JOB").values()) == {"SUCCESS"}, "its success")
            page.reload()
            page.get_by_text(NEW, exact=True).wait_for()
            page.get_by_text("Plots", exact=True).first.click()
            page.get_by_text("covered_percent", exact=True).wait_for()

    assert {stamp(sql, job)[0] for job in march} == {NEW}
