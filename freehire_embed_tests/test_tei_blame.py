"""Who is blamed, who is delivered, and how many requests it takes; over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from freehire_embed.domain import Embeddings, HaltKind
from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed_tests.tei_bench import (
    PROFILE,
    TINY,
    Asked,
    Sleeps,
    answering,
    assert_each_vector_is_of_its_text,
    client,
    impatient,
    passages,
    sent,
)

QUICK = 0.25
SLICES = 13
"""Requests that 400 good passages take, 31 and the known row in each."""


def delivered(embeddings: Embeddings) -> int:
    return sum(vector is not None for vector in embeddings.vectors)


def assert_all_delivered(texts: list[str], embeddings: Embeddings) -> None:
    assert embeddings.halt is None
    assert embeddings.faults == {}
    assert delivered(embeddings) == len(texts)
    assert_each_vector_is_of_its_text(texts, embeddings)


@pytest.mark.parametrize("object_shape", [False, True])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_vectors_come_back_in_input_order(concurrency: int, object_shape: bool) -> None:
    texts = passages(400)
    with (
        FaultyTei(object_shape=object_shape) as tei,
        client(tei.url, concurrency=concurrency) as embedder,
    ):
        assert_all_delivered(texts, embedder.embed(texts))
        assert tei.requests == SLICES
        assert tei.peak_requests <= concurrency


def test_no_passages_need_no_request() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        assert embedder.embed([]) == Embeddings([])
        assert tei.requests == 0


def test_identical_passages_are_sent_once() -> None:
    texts = [*passages(5), *passages(5), *passages(3)]
    with FaultyTei(keep_texts=True) as tei, client(tei.url) as embedder:
        assert_all_delivered(texts, embedder.embed(texts))
        assert sorted(sent(tei)[0]) == sorted(passages(5))


def test_what_json_cannot_carry_is_replaced_and_what_is_empty_is_not_sent() -> None:
    with FaultyTei(keep_texts=True) as tei, client(tei.url) as embedder:
        embeddings = embedder.embed(["a\ud800b\0c", " \n", "fine"])
        assert embeddings.halt is None
        assert embeddings.faults == {1: "an empty passage"}
        assert sent(tei) == [["a\ufffdb\ufffdc", "fine"]]


@pytest.mark.parametrize(
    ("fault", "extra"),
    [
        ("400", 11),
        ("422", 11),
        ("413", 11),
        ("424", 12),
        ("500", 14),
        ("502", 14),
        ("503", 14),
        ("504", 14),
        ("reset", 14),
        ("truncated", 14),
        ("cut-json", 14),
        ("html", 14),
        ("count", 14),
        ("null", 2),
        ("nan", 2),
        ("zero", 2),
        ("width", 2),
    ],
)
def test_one_poisoned_passage_of_400_is_found_and_399_are_delivered(fault: str, extra: int) -> None:
    place = 123
    texts = passages(400, p123="passage: POISON of some length, like the others around it")
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.named(fault), marker="POISON")
        embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert list(embeddings.faults) == [place]
        assert "alone" in embeddings.faults[place]
        assert "POISON" not in embeddings.faults[place]
        assert delivered(embeddings) == 399
        assert_each_vector_is_of_its_text(texts, embeddings)
        assert tei.requests - SLICES <= extra
        assert embedder.stats.row_faults == 1


@pytest.mark.parametrize("length", [1, 2000])
@pytest.mark.parametrize("place", [0, 399])
def test_a_poisoned_passage_is_found_wherever_it_stands(place: int, length: int) -> None:
    texts = passages(400, **{f"p{place}": "POISON " * length})
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.reset, marker="POISON")
        embeddings = embedder.embed(texts)
        assert list(embeddings.faults) == [place]
        assert delivered(embeddings) == 399
        assert tei.requests - SLICES <= 14


@pytest.mark.parametrize("fault", ["hang", "drip-body", "drip-headers"])
def test_a_passage_that_stalls_the_server_is_found_within_bounded_attempts(fault: str) -> None:
    texts = passages(64, p40="passage: POISON")
    with FaultyTei() as tei, client(tei.url, attempt_timeout_seconds=QUICK) as embedder:
        tei.fail(tei_faults.named(fault), marker="POISON")
        embeddings = embedder.embed(texts)
        assert list(embeddings.faults) == [40]
        assert delivered(embeddings) == 63
        assert tei.requests <= 2 + 14


@pytest.mark.parametrize("fault", ["422", "424", "500", "null"])
def test_several_poisoned_passages_are_all_found(fault: str) -> None:
    bad = [3, 4, 77, 200, 399]
    texts = passages(400, **{f"p{place}": f"passage: POISON {place}" for place in bad})
    with FaultyTei() as tei, client(tei.url, concurrency=3) as embedder:
        tei.fail(tei_faults.named(fault), marker="POISON")
        embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert sorted(embeddings.faults) == bad
        assert delivered(embeddings) == 395


def test_a_passage_that_crashes_the_server_takes_no_neighbour_with_it() -> None:
    texts = passages(200, p50="passage: POISON")
    with FaultyTei(latency_seconds=0.001) as tei, client(tei.url, concurrency=4) as embedder:
        tei.fail(tei_faults.crash, marker="POISON")
        embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert list(embeddings.faults) == [50]
        assert delivered(embeddings) == 199
        assert_each_vector_is_of_its_text(texts, embeddings)


def test_a_passage_in_doubt_is_sent_with_nothing_else_in_flight() -> None:
    texts = passages(200, p50="passage: POISON")
    company: list[int] = []

    async def fail(exchange: tei_faults.Exchange) -> None:
        if len(exchange.texts) == 2:
            company.append(tei.requests_in_flight - 1)
        await tei_faults.status(424)(exchange)

    with FaultyTei(latency_seconds=0.005) as tei, client(tei.url, concurrency=4) as embedder:
        tei.fail(fail, marker="POISON")
        assert list(embedder.embed(texts).faults) == [50]
    assert company == [0, 0]


def test_a_poisoned_posting_alone_in_a_wave_is_blamed_only_beside_a_good_probe() -> None:
    with FaultyTei(keep_texts=True) as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.status(500), marker="POISON")
        assert list(embedder.embed(["POISON"]).faults) == [0]
        assert sent(tei) == [["POISON"], ["POISON"], []]


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(
    "fault",
    ["500", "502", "503", "504", "424", "reset", "truncated", "html", "cut-json", "null", "zero", "count"],
)
def test_an_outage_charges_nobody_and_costs_few_requests(fault: str, concurrency: int) -> None:
    with FaultyTei() as tei, client(tei.url, concurrency=concurrency) as embedder:
        embedder.preflight()
        tei.fail(tei_faults.named(fault), after=2)
        embeddings = embedder.embed(passages(400))
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.UPSTREAM
        assert tei.url in embeddings.halt.reason
        assert embeddings.faults == {}
        assert delivered(embeddings) == 62
        assert tei.requests <= 1 + 2 + 8 * concurrency + 5


def test_an_outage_of_a_server_that_is_gone_ends_after_the_policy_of_pauses() -> None:
    sleeps = Sleeps()
    with FaultyTei() as tei:
        url = tei.url
    with client(url, patience=impatient(sleeps)) as embedder:
        embeddings = embedder.embed(passages(100))
        assert embeddings.halt is not None
        assert "5 attempts" in embeddings.halt.reason
        assert "cannot connect" in embeddings.halt.reason
    assert sleeps == [1, 1, 2, 4, 8]


def test_a_silent_server_ends_the_wave_after_bounded_time_outs() -> None:
    with FaultyTei() as tei, client(tei.url, attempt_timeout_seconds=0.1) as embedder:
        tei.fail(tei_faults.hang)
        embeddings = embedder.embed(passages(100))
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.UPSTREAM
        assert tei.requests == 2 + 5


@pytest.mark.parametrize("fault", ["500", "503", "reset", "html", "cut-json", "count", "null"])
def test_a_short_outage_is_lived_through(fault: str) -> None:
    texts = passages(100)
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.named(fault), times=5, after=1)
        assert_all_delivered(texts, embedder.embed(texts))
        assert tei.requests <= 4 + 5 + 1


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize(
    "fault",
    [
        tei_faults.status(401),
        tei_faults.status(403),
        tei_faults.status(404),
        tei_faults.status(405),
        tei_faults.status(415),
        tei_faults.redirect("http://127.0.0.1:9/"),
    ],
)
def test_a_config_fault_stops_at_once_and_voids_the_wave(fault: tei_faults.Fault, concurrency: int) -> None:
    with FaultyTei() as tei, client(tei.url, concurrency=concurrency) as embedder:
        embedder.preflight()
        tei.fail(fault, after=3)
        embeddings = embedder.embed(passages(400))
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.CONFIG
        assert embeddings.faults == {}
        assert delivered(embeddings) == 0
        assert tei.requests <= 1 + 3 + concurrency


def test_a_foreign_model_met_while_looking_for_a_bad_row_stops_the_run() -> None:
    texts = passages(64, p9="passage: POISON")
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.swap_model("someone/else", after=1)
        tei.fail(tei_faults.status(500), marker="POISON")
        embeddings = embedder.embed(texts)
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.CONFIG
        assert (delivered(embeddings), embeddings.faults) == (0, {})


def test_a_server_that_refuses_every_text_is_misconfigured_and_nobody_is_charged() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.status(400))
        embeddings = embedder.embed(passages(100))
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.CONFIG
        assert tei.requests <= 8


def test_memory_that_holds_fewer_rows_lowers_the_rows_of_the_run() -> None:
    texts = passages(400)
    with FaultyTei(out_of_memory_above=9) as tei, client(tei.url) as embedder:
        assert_all_delivered(texts, embedder.embed(texts))
        lowered = tei.requests
        assert_all_delivered(texts, embedder.embed(texts))
        assert max(tei.sizes[lowered:]) <= 9
        assert tei.requests - lowered == 400 / 8


def test_a_server_too_slow_for_whole_slices_gets_smaller_ones() -> None:
    texts = passages(64)
    with FaultyTei(rows_per_second=100) as tei, client(tei.url, attempt_timeout_seconds=0.3) as embedder:
        embeddings = embedder.embed(texts)
        assert embeddings.faults == {}
        assert embeddings.halt is None
        assert max(tei.sizes[-4:]) < 32


def test_a_batch_limit_that_info_did_not_tell_is_learned_from_the_error() -> None:
    texts = passages(100)
    with FaultyTei(max_client_batch_size=7) as tei, client(tei.url) as embedder:
        assert_all_delivered(texts, embedder.embed(texts))
        assert tei.sizes[0] == 32
        assert max(tei.sizes[1:]) == 7
        assert tei.requests <= 21


def test_a_payload_limit_is_respected_by_splitting_in_bytes() -> None:
    texts = [*passages(60), "passage: " + "long " * 700]
    with FaultyTei(payload_limit=5_000) as tei, client(tei.url) as embedder:
        assert_all_delivered(texts, embedder.embed(texts))
        assert tei.requests < 20


def test_a_body_stays_under_two_megabytes() -> None:
    texts = [f"passage {number} " + "\u4e00" * 60_000 for number in range(24)]
    with FaultyTei(keep_texts=False) as tei, client(tei.url) as embedder:
        assert_all_delivered(texts, embedder.embed(texts))
        assert tei.sizes == [11, 11, 5]


def test_a_passage_over_the_payload_limit_alone_is_its_own_fault() -> None:
    texts = [*passages(40), "passage: " + "x" * 9_000]
    with FaultyTei(payload_limit=8_000) as tei, client(tei.url) as embedder:
        embeddings = embedder.embed(texts)
        assert list(embeddings.faults) == [40]
        assert delivered(embeddings) == 40


def test_a_busy_server_is_waited_for_as_long_as_it_asks() -> None:
    texts = passages(100)
    sleeps = Sleeps()
    busy = tei_faults.status(429, headers=[("retry-after", "17")])
    with FaultyTei() as tei, client(tei.url, patience=impatient(sleeps)) as embedder:
        tei.fail(busy, times=9)
        assert_all_delivered(texts, embedder.embed(texts))
        assert sleeps == [17.0] * 9
        stats = embedder.stats
        assert (stats.retry_after_waits, stats.retry_after_seconds) == (9, 153.0)
        assert stats.retries["429"] == 9


@pytest.mark.parametrize("asked", ["3600", "0", "-5", "never"])
def test_a_server_that_stays_busy_ends_the_wave_by_time_and_charges_nobody(asked: str) -> None:
    busy = tei_faults.status(429, headers=[("retry-after", asked)])
    with FaultyTei() as tei, client(tei.url, concurrency=4) as embedder:
        tei.fail(busy)
        embeddings = embedder.embed(passages(200))
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.UPSTREAM
        assert embeddings.faults == {}
        assert tei.requests <= 4 * 40


def test_more_requests_than_slots_lower_the_concurrency() -> None:
    texts = passages(400)
    with (
        FaultyTei(slots=70, latency_seconds=0.002) as tei,
        client(tei.url, concurrency=8, adaptive=False) as embedder,
    ):
        assert_all_delivered(texts, embedder.embed(texts))
        assert embedder.stats.retries["429"] > 0


def test_a_request_with_more_rows_than_slots_is_cut_although_nothing_says_so() -> None:
    texts = passages(100)
    with FaultyTei(slots=10) as tei, client(tei.url) as embedder:
        assert_all_delivered(texts, embedder.embed(texts))


def test_mostly_null_vectors_are_the_servers_trouble() -> None:
    texts = [f"passage: {'BAD' if number % 3 else 'good'} {number}" for number in range(96)]
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.values("null"), marker="BAD")
        embeddings = embedder.embed(texts)
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.UNDECIDED
        assert embeddings.faults == {}
        assert tei.requests <= 4


def test_small_waves_add_up_to_the_servers_trouble() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.values("null"), marker="BAD")
        answers = [embedder.embed([f"passage: BAD {number}"]) for number in range(12)]
    assert sum(len(answer.faults) for answer in answers) == 7
    assert all(answer.halt and answer.halt.kind is HaltKind.UNDECIDED for answer in answers[7:])


def test_mostly_failing_inference_is_the_servers_trouble() -> None:
    texts = [f"passage: {'BAD' if number % 3 else 'good'} {number}" for number in range(12)]
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.status(424), marker="BAD")
        embeddings = embedder.embed(texts)
        assert embeddings.halt is not None
        assert "8 of 12" in embeddings.halt.reason
        assert embeddings.faults == {}


def test_texts_that_the_server_itself_refuses_are_charged_however_many_they_are() -> None:
    texts = [f"passage: {'LONG' if number % 3 else 'good'} {number}" for number in range(12)]
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.status(422), marker="LONG")
        embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert (len(embeddings.faults), delivered(embeddings)) == (8, 4)


def test_a_wave_that_fails_again_and_again_spends_a_bounded_number_of_requests() -> None:
    texts = [f"passage: {number}" for number in range(200)]
    seen = [0]

    def flapping(asked: Asked) -> tuple[int, Any]:
        seen[0] += 1
        if len(asked.inputs) == 1 and seen[0] % 2:
            return 200, [[1.0, 0.0, 0.0, 0.0]]
        return 500, {}

    with answering(flapping) as url, client(url, profile=TINY) as embedder:
        embeddings = embedder.embed(texts)
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.UNDECIDED
        assert embeddings.faults == {} or len(embeddings.faults) < 100
        assert seen[0] < 3 * (64 + 200)


@pytest.mark.parametrize("error_type", ["VALIDATION", "validation"])
def test_error_types_are_compared_without_case(error_type: str) -> None:
    texts = passages(40, p7="passage: POISON")
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.status(413, error_type=error_type, message="too long"), marker="POISON")
        assert list(embedder.embed(texts).faults) == [7]


def test_a_reused_connection_that_the_server_closed_is_no_ones_fault() -> None:
    texts = passages(64)
    with FaultyTei() as tei, client(tei.url) as embedder:
        assert_all_delivered(texts, embedder.embed(texts))
        tei.drop_connections()
        assert_all_delivered(texts, embedder.embed(texts))


def test_the_numbers_of_a_run_are_told() -> None:
    texts = passages(100, p5="passage: POISON")
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.fail(tei_faults.status(422), marker="POISON")
        embedder.embed(texts)
        stats = embedder.stats
        assert stats.requests == tei.requests
        assert stats.rows == sum(tei.sizes)
        assert stats.probes == 2
        assert stats.row_faults == 1
        assert stats.splits >= 2
        assert stats.retries == {"422": stats.splits + 1}
        assert stats.tokens > 0
        assert 0 < stats.latency_p50_seconds <= stats.latency_p95_seconds < 5


def test_a_row_that_fills_the_limit_alone_counts_as_truncated() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        embedder.embed(["passage: " + "word " * 900])
        embedder.embed(["passage: short"])
        assert embedder.stats.truncated == 1


@pytest.mark.parametrize("options", [{"rows_per_request": 4}, {"rows_per_request": 1}])
def test_rows_per_request_can_be_lowered(options: dict[str, Any]) -> None:
    with FaultyTei() as tei, client(tei.url, profile=PROFILE, **options) as embedder:
        assert embedder.embed(passages(9)).halt is None
        assert max(tei.sizes) == options["rows_per_request"] + 1
