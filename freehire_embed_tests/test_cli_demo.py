"""`demo` as a process: everything once, and next to nothing the second time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.orchestration.instance import open_instance

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def state() -> Iterator[Path]:
    # Not pytest's folder: the embedded server has its user, who may not pass through there.
    folder = Path(tempfile.mkdtemp(prefix="freehire-demo-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_the_demo_embeds_the_bundled_postings_once_and_answers_two_searches(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = ("DATABASE_", "EMBED_", "FREEHIRE_", "DAGSTER_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    with FaultyTei() as tei:  # in place of the local model, whose 60 postings take half a minute
        variables |= {"FREEHIRE_STATE": str(state), "EMBED_URL": tei.url}

        def demo() -> str:
            finished = subprocess.run(
                [sys.executable, "-m", "freehire_embed", "demo"],
                env=variables,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert finished.returncode == 0, finished.stdout + finished.stderr
            return finished.stdout

        first = demo()
        rows_at_first = sum(tei.sizes)
        second = demo()
        # the second time: the probe of the run, and for each search a probe and the question beside its known row
        assert sum(tei.sizes) - rows_at_first == 1 + 2 * 3
    assert "succeeded" in first
    assert "(100.0%)" in first
    assert first.count("search: ") == 2
    assert "  1. " in first
    assert "make ui" in first
    assert "0 added, 0 updated" in second
    assert "the schema is up to date" in second
    monkeypatch.setenv("FREEHIRE_STATE", str(state))
    with open_instance() as instance:
        listed = dg.RunsFilter(tags={".dagster/repository": "__repository__@freehire_embed"})
        assert len(instance.get_runs(listed)) == 2
