"""The client finds how many requests keep the server busy, and leaves room for those who ask questions."""

from __future__ import annotations

import asyncio
import threading
import time
from statistics import median

import orjson
import pytest

from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.wire.pace import Gate, Ticket
from freehire_embed.wire.waiting import Waiting
from freehire_embed_tests.tei_bench import client, passages

SERVICE = 0.040
"""Seconds that the pretended device needs for a request."""


def steer(gate: Gate, devices: int, answers: int = 200, others: int = 0, service: float = 0.1) -> int:
    """Tells `gate` of so many answers of a server with `devices` and a queue; gives the concurrency it ends at."""
    for _ in range(answers):
        in_flight = gate.allowed
        waited = service * max(in_flight + others - devices, 0) / devices
        gate.answered(Ticket(gate.times_lowered, in_flight), service + waited, waited)
    return gate.allowed


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_the_concurrency_is_found_that_keeps_every_device_busy_and_little_waiting(devices: int) -> None:
    found = steer(Gate(32, adaptive=True), devices)
    assert devices <= found <= 2 * devices


def test_a_quick_server_gets_a_queue_that_is_short_in_time() -> None:
    found = steer(Gate(32, adaptive=True), devices=1, service=0.005)
    assert 4 <= found <= 6


def test_it_never_passes_what_is_configured() -> None:
    assert steer(Gate(3, adaptive=True), devices=50) == 3


def test_a_long_queue_of_others_brings_it_down_to_one_and_its_end_back_up() -> None:
    gate = Gate(8, adaptive=True)
    steer(gate, devices=4)
    assert steer(gate, devices=4, others=60) == 1
    assert steer(gate, devices=4) >= 4


def test_it_halves_once_for_requests_that_were_in_flight_together() -> None:
    gate = Gate(8, adaptive=False)
    ticket = Ticket(gate.times_lowered, 8)
    for _ in range(8):
        gate.lower(ticket)
    assert gate.allowed == 4


def test_switched_off_it_stays_where_it_is_put() -> None:
    assert steer(Gate(14, adaptive=False), devices=1) == 14


def test_the_server_s_own_word_is_taken_for_the_wait() -> None:
    assert Waiting().seconds(0.4, 1000, 0.1) == 0.1
    assert Waiting().seconds(0.4, 1000, 9.0) == 0.4


def test_without_it_the_wait_is_what_the_quickest_answers_did_not_need() -> None:
    waiting = Waiting()
    waiting.seconds(0.010, 100, None)
    assert waiting.seconds(0.110, 10_000, None) == pytest.approx(0.0)
    assert waiting.seconds(0.210, 10_000, None) == pytest.approx(0.1)
    assert waiting.seconds(0.210, 20_000, None) == pytest.approx(0.0)


def test_a_short_text_that_waited_says_nothing_about_the_time_of_long_ones() -> None:
    waiting = Waiting()
    waiting.seconds(0.010, 100, None)
    waiting.seconds(0.110, 10_000, None)
    assert waiting.seconds(0.010, 200, None) == 0.0
    assert waiting.seconds(0.110, 10_000, None) == pytest.approx(0.0)


def test_a_server_that_became_slower_for_good_is_not_taken_for_a_queue_for_ever() -> None:
    waiting = Waiting()
    waiting.seconds(0.01, 80, None)
    for _ in range(10):
        waiting.seconds(0.1, 1000, None)
    waits = [waiting.seconds(0.3, 1000, None) for _ in range(1100)]
    assert waits[0] == pytest.approx(0.2)
    assert waits[-1] == pytest.approx(0.0)


def ask_beside_bulk(tei: FaultyTei, *, adaptive: bool) -> tuple[float, int]:
    """Median seconds of a query while a bulk run allowed 14 requests is at work, and how many it had in flight."""
    latencies: list[float] = []
    with (
        client(tei.url, concurrency=14, adaptive=adaptive) as bulk,
        client(tei.url) as asking,
    ):
        bulk.preflight()
        wave = threading.Thread(target=bulk.embed, args=(passages(32 * 30),))
        wave.start()
        while tei.requests < 10:
            tei.arrived.clear()
            tei.arrived.wait(10)
        while wave.is_alive() and len(latencies) < 3:
            started = time.monotonic()
            asking.embed_query("who builds bridges?")
            latencies.append(time.monotonic() - started)
        wave.join(30)
        return median(latencies), bulk.stats.in_flight_peak


@pytest.mark.parametrize("timings", [True, False])
def test_queries_stay_quick_beside_bulk_on_one_serial_device(timings: bool) -> None:
    with FaultyTei(latency_seconds=SERVICE, slots=1024, timings=timings) as tei:
        steered, in_flight = ask_beside_bulk(tei, adaptive=True)
    with FaultyTei(latency_seconds=SERVICE, slots=1024, timings=timings) as tei:
        pushed, pushed_in_flight = ask_beside_bulk(tei, adaptive=False)
    assert in_flight <= 4
    assert pushed_in_flight == 14
    assert steered < pushed / 2


def test_a_slice_holds_no_more_tokens_than_a_batch_of_the_device() -> None:
    texts = [f"passage: {number} {'word ' * 200}" for number in range(60)]
    with FaultyTei(max_batch_tokens=2048) as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.sizes.clear()
        assert embedder.embed(texts).halt is None
        # About 250 estimated tokens each, and the known row.
        assert set(tei.sizes[:-1]) == {8 + 1}


def test_how_many_were_in_flight_is_told() -> None:
    with FaultyTei(latency_seconds=0.002) as tei, client(tei.url, concurrency=4) as embedder:
        assert embedder.stats.in_flight_peak == 0
        embedder.embed(passages(300))
        stats = embedder.stats
        assert 1 <= stats.in_flight_mean <= stats.in_flight_peak <= 4
        assert 1 <= stats.concurrency <= 4


def test_a_call_tells_when_its_last_request_is_on_its_way_and_the_next_may_come() -> None:
    last, answer = threading.Event(), threading.Event()

    async def wait_for_the_test(exchange: tei_faults.Exchange) -> None:
        await asyncio.to_thread(answer.wait, 20)
        await exchange.reply(200, orjson.dumps(exchange.vectors(), option=orjson.OPT_SERIALIZE_NUMPY))

    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(wait_for_the_test, after=2)
        wave = threading.Thread(target=embedder.embed, args=(passages(90), None, last.set))
        wave.start()
        assert last.wait(20)
        assert wave.is_alive()
        answer.set()
        wave.join(20)


@pytest.mark.parametrize("fault", [tei_faults.status(503), tei_faults.hang])
def test_a_server_that_answers_nothing_is_left_to_one_call(fault: tei_faults.Fault) -> None:
    last = threading.Event()
    with FaultyTei() as tei, client(tei.url, attempt_timeout_seconds=0.05) as embedder:
        tei.fail(fault)
        assert embedder.embed(passages(20), on_last=last.set).halt
    assert not last.is_set()
