"""The UI in a real browser: a model backfill from the launchpad, and the coverage plot before and after it."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed_tests.catalogue import add_posting
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.dagster_server import dagster_dev
from freehire_embed_tests.deployment import NEW, OLD, SERVED, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg
    from playwright.sync_api import Page

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no browser test without playwright: it comes with the extra `dev`"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
_PATIENCE_MILLISECONDS = 90_000

# A canvas holds pixels only, so this asks the component around it what it was given to draw.
_PLOTTED = """canvas => {
    let node = canvas[Object.keys(canvas).find(key => key.startsWith("__reactFiber"))];
    while (!node.memoizedProps?.data?.datasets) node = node.return;
    return node.memoizedProps.data.datasets[0].data.map(point => point.y);
}"""


@dataclass(frozen=True)
class Plot:
    """A chart as the page shows it."""

    values: list[float]
    picture: str


class Desk:
    """What an operator does and sees in the UI at `url`."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url

    def backfill(self, month: str, model: str) -> None:
        """Types month and model into the launchpad, launches, and waits to see the run succeed."""
        self._page.goto(f"{self._url}/locations/freehire_embed/jobs/backfill_job/playground")
        self._page.get_by_placeholder("Partition").click()
        self._page.keyboard.type(month)
        self._page.keyboard.press("Enter")
        self._page.locator(".CodeMirror").first.click()
        self._page.keyboard.press("Control+A")
        self._page.keyboard.insert_text(f"ops:\n  enqueue:\n    config:\n      model: {model}\n")
        self._page.get_by_text("Launch Run", exact=True).click()
        self._see_success()

    def measure_coverage(self) -> Plot:
        """Materializes `semantic_coverage` with its button; then the plot of the covered share."""
        asset = f"{self._url}/assets/semantic_coverage"
        self._page.goto(asset)
        self._page.get_by_role("button", name="Materialize").first.click()
        self._page.get_by_text("View", exact=True).click()
        self._see_success()
        self._page.goto(asset)
        self._page.get_by_text("Plots", exact=True).click()
        chart = self._page.locator("xpath=//*[text()='covered_percent']/following::canvas[1]")
        return Plot(chart.evaluate(_PLOTTED), chart.evaluate("canvas => canvas.toDataURL()"))

    def _see_success(self) -> None:
        self._page.wait_for_url(re.compile("/runs/"))
        self._page.get_by_text(re.compile("^RUN_(SUCCESS|FAILURE)$")).wait_for()
        assert self._page.get_by_text("RUN_SUCCESS", exact=True).is_visible(), self._page.inner_text("body")


@pytest.fixture
def page() -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("no browser test without chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1500, "height": 1200})
        opened.set_default_timeout(_PATIENCE_MILLISECONDS)
        yield opened
        browser.close()


def test_an_operator_backfills_a_month_under_a_new_model_and_sees_the_coverage_change(
    database_url: str, sql: psycopg.Connection, page: Page, tmp_path: Path
) -> None:
    covered = {"content_hash": "h", "semantic_embedded_model": OLD, "semantic_embedded_hash": "h"}
    for day in ("2026-03-15", "2026-03-16", "2026-03-17", "2026-04-15"):
        add_posting(sql, posted_at=day, **covered)
    sql.execute("insert into semantic_models values (%s, %s, now())", [OLD, WIDTH])
    with FaultyTei(width=WIDTH, model_id=SERVED) as tei:
        # EMBED_MODEL names the old model, so that the live runs leave April alone
        variables = environment(database_url, tei.url, tmp_path)
        with dagster_dev(variables, tmp_path) as server:
            desk = Desk(page, server.url)
            before = desk.measure_coverage()
            desk.backfill("2026-03-01", NEW)
            after = desk.measure_coverage()

    # the automation may have added points of its own in between
    assert (before.values[-1], after.values[-1]) == (100, 75)
    assert after.picture != before.picture
