"""What holds between the waves of one lane, with a clock that the test moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehire_embed.domain import Halt, HaltKind, WaveReport
from freehire_embed.drain import ENQUEUE_EVERY_SECONDS
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.orchestration.lane import Lane
from freehire_embed.run import open_run
from freehire_embed.settings import Settings
from freehire_embed_tests.catalogue import add_posting
from freehire_embed_tests.clock import Clock
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.deployment import SERVED, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg

    from freehire_embed.store.database import Database


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lane(database: Database, database_url: str, tmp_path: Path, clock: Clock) -> Iterator[Lane]:
    """Open for an hour and three waves of four."""
    with FaultyTei(width=WIDTH, model_id=SERVED) as tei:
        settings = Settings.from_environment(environment(database_url, tei.url, tmp_path))
        run = open_run(settings, database, "lane")
        yield Lane(run, window=None, max_waves=3, max_seconds=3600, clock=clock)
        run.close()


def test_a_lane_offers_as_many_slots_as_there_are_waves_up_to_its_limit(
    lane: Lane, sql: psycopg.Connection
) -> None:
    for waves, postings in ((0, 0), (1, 1), (2, 4), (3, 20)):
        for _ in range(postings):
            add_posting(sql)
        lane.enqueue()
        assert lane.slots() == waves


def test_a_lane_begins_no_wave_after_its_time(lane: Lane, sql: psycopg.Connection, clock: Clock) -> None:
    add_posting(sql)
    lane.enqueue()
    clock.now += 3601
    assert lane.next_wave() is None
    assert lane.over == "the run has lasted long enough, the next one goes on"


def test_a_long_lane_queues_anew_so_that_fresh_postings_go_first(
    lane: Lane, sql: psycopg.Connection, clock: Clock
) -> None:
    for _ in range(8):
        add_posting(sql, posted_at="2025-01-01")
    lane.enqueue()
    lane.next_wave()
    fresh = add_posting(sql, posted_at="2026-01-01")

    clock.now += ENQUEUE_EVERY_SECONDS
    wave = lane.next_wave()

    assert wave is not None
    assert wave.claims[0].job_id == fresh


@pytest.mark.parametrize(
    ("kind", "waves"),
    [(HaltKind.UPSTREAM, 1), (HaltKind.CONFIG, 1), (HaltKind.DATABASE, 1), (HaltKind.UNDECIDED, 3)],
)
def test_a_lane_ends_when_the_next_wave_would_fare_no_better(lane: Lane, kind: HaltKind, waves: int) -> None:
    for _ in range(waves):
        assert lane.over is None
        lane.settle(WaveReport(halt=Halt(kind, "the reason")))
    assert lane.over == "the reason"


def test_a_wave_that_ran_out_of_time_says_nothing_about_the_next(lane: Lane) -> None:
    for _ in range(5):
        lane.settle(WaveReport(halt=Halt(HaltKind.CALL_TIMEOUT, "too slow")))
    assert lane.over is None
