"""Before the first write: is it the server that the profile means, and how much may be asked of it?"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei, vector_for
from freehire_embed.profiles import BUILT_IN, DEFAULT_IDENTITY
from freehire_embed.settings import SettingsError
from freehire_embed.tei import ConfigFault, UpstreamFault
from freehire_embed.tei.about import read_info
from freehire_embed.tei.endpoint import Endpoint
from freehire_embed.tei.proof import PROBE_TEXT
from freehire_embed_tests.ports import free_port
from freehire_embed_tests.tei_bench import (
    PROFILE,
    SECRET,
    SERVER,
    TINY,
    Asked,
    Sleeps,
    answering,
    client,
    impatient,
    info,
    passages,
    sent,
)


@pytest.mark.parametrize(
    ("url", "info_url"),
    [
        ("http://h:80/embed", "http://h:80/info"),
        ("http://h:80", "http://h:80/info"),
        ("http://h:80/", "http://h:80/info"),
        ("https://h/tei/embed", "https://h/tei/info"),
        ("https://h/tei/embed/", "https://h/tei/info"),
        ("https://h/tei", "https://h/tei/info"),
        ("http://[::1]:8090/embed?zone=a", "http://[::1]:8090/info?zone=a"),
    ],
)
def test_info_lies_beside_the_url_which_is_posted_to_as_given(url: str, info_url: str) -> None:
    endpoint = Endpoint.of(url, None)
    assert (endpoint.api, endpoint.embed, endpoint.about) == ("tei", url, info_url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8090/embed",
        "ftp://host/embed",
        "http:///embed",
        "http://host:99999/embed",
        "http://host:port/embed",
        "http://[::1/embed",
        "http://tei..internal/embed",
        f"http://{'a' * 64}.internal/embed",
        "http://host/em bed",
        "http://host/embed\n",
        f"http://user:{SECRET}@host/embed",
        f"user:{SECRET}@host/embed",
        f"http://user:{SECRET}@host:port/embed",
    ],
)
def test_an_unusable_url_is_refused_by_name_and_without_quoting_it(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^EMBED_URL: ") as refusal:
        client(url)
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize("key", ["with space", "line\nbreak", "umläut"])
def test_a_key_that_fits_into_no_header_is_refused_without_quoting_it(key: str) -> None:
    with pytest.raises(SettingsError, match="EMBED_API_KEY") as refusal:
        client("http://host/embed", api_key=SecretStr(key))
    assert key not in str(refusal.value)


def test_a_token_in_the_query_is_not_shown() -> None:
    endpoint = Endpoint.of(f"https://host/embed?token={SECRET}", SecretStr(SECRET))
    assert endpoint.server.name == "EMBED_URL https://host/embed"
    assert SECRET not in repr(endpoint)


def test_preflight_gives_the_probe_vector_and_asks_once() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        vector = embedder.preflight()
        np.testing.assert_allclose(vector, vector_for(PROFILE.passage_prefix + PROBE_TEXT), atol=1e-6)
        assert (tei.info_requests, tei.requests) == (1, 1)


def test_a_root_url_works_as_well() -> None:
    with FaultyTei() as tei, client(tei.root) as embedder:
        embedder.preflight()


def test_the_key_travels_in_the_header() -> None:
    with FaultyTei(api_key=SECRET) as tei, client(tei.url, api_key=SecretStr(SECRET)) as embedder:
        embedder.preflight()
        assert embedder.embed(passages(3)).halt is None


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"model_id": "someone/else"}, "someone/else"),
        ({"pooling": "cls"}, "--pooling mean"),
        ({"width": 768}, "width 768 instead of 384"),
        ({"info": False}, "EMBED_VERIFY_MODEL"),
        ({"api_key": "another"}, "EMBED_API_KEY"),
    ],
)
def test_a_wrong_server_is_a_config_fault_that_names_the_way_out(server: Any, said: str) -> None:
    with (
        FaultyTei(**server) as tei,
        client(tei.url, api_key=SecretStr(SECRET), warmup_seconds=30) as embedder,
        pytest.raises(ConfigFault, match="EMBED_URL") as fault,
    ):
        embedder.preflight()
    assert said in str(fault.value)
    assert tei.url in str(fault.value)
    assert SECRET not in str(fault.value)
    assert tei.requests <= 1


@pytest.mark.parametrize(
    "fault",
    [
        tei_faults.status(404),
        tei_faults.status(400),
        tei_faults.status(413),
        tei_faults.redirect("http://127.0.0.1:9/embed"),
        tei_faults.scaled(3.0),
        tei_faults.status(424, error_type="Backend", message="Model is not an embedding model"),
    ],
)
def test_a_probe_that_cannot_be_embedded_is_a_config_fault_at_once(fault: tei_faults.Fault) -> None:
    with FaultyTei() as tei, client(tei.url, warmup_seconds=30) as embedder:
        tei.fail(fault)
        with pytest.raises(ConfigFault):
            embedder.preflight()
        assert tei.requests == 1


def test_without_info_the_probe_may_stand_in_when_that_is_wanted() -> None:
    with FaultyTei(info=False) as tei, client(tei.url, verify_model=False) as embedder:
        embedder.preflight()
        tei.width = 768
        with pytest.raises(ConfigFault, match="width"):
            embedder.preflight()


def test_the_remembered_probe_vector_must_come_back() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        vector = embedder.preflight()
        wobble = np.random.default_rng(7).normal(0, 0.001, vector.shape).astype(np.float32)
        embedder.preflight(reference=vector + wobble)
        with pytest.raises(ConfigFault, match=r"default prompt"):
            embedder.preflight(reference=vector_for("something else"))
        with pytest.raises(ConfigFault):
            embedder.preflight(reference=vector_for("of another width", 768))


def test_a_server_that_scales_from_zero_is_waited_for() -> None:
    sleeps = Sleeps()
    with FaultyTei() as tei, client(tei.url, warmup_seconds=30, patience=impatient(sleeps)) as embedder:
        tei.fail(tei_faults.status(503), times=4, info_too=True)
        embedder.preflight()
    assert sleeps == [1, 2, 4, 8]


def test_the_wait_for_a_server_ends_with_the_warm_up() -> None:
    sleeps = Sleeps()
    with FaultyTei() as tei, client(tei.url, warmup_seconds=12, patience=impatient(sleeps)) as embedder:
        tei.fail(tei_faults.status(503), info_too=True)
        with pytest.raises(UpstreamFault, match=r"5 attempts .* 503 Unhealthy"):
            embedder.preflight()
    assert sleeps == [1, 2, 4, 5]


def test_a_server_that_needs_most_of_the_warm_up_is_waited_for() -> None:
    sleeps = Sleeps()
    with FaultyTei() as tei, client(tei.url, warmup_seconds=30, patience=impatient(sleeps)) as embedder:
        tei.fail(tei_faults.status(503), times=5, info_too=True)
        embedder.preflight()
    assert sleeps == [1, 2, 4, 8, 15]


def test_a_server_that_asks_for_a_longer_wait_is_asked_once_more_at_the_end_of_the_warm_up() -> None:
    sleeps = Sleeps()
    with FaultyTei() as tei, client(tei.url, warmup_seconds=30, patience=impatient(sleeps)) as embedder:
        tei.fail(tei_faults.status(503, headers=[("retry-after", "50")]), times=1, info_too=True)
        embedder.preflight()
    assert sleeps == [pytest.approx(30, abs=1)]


def test_without_a_warm_up_one_refused_connection_is_enough() -> None:
    sleeps = Sleeps()
    port = free_port()
    with (
        client(f"http://127.0.0.1:{port}/embed", patience=impatient(sleeps)) as embedder,
        pytest.raises(UpstreamFault, match=f"127.0.0.1:{port}.* 1 attempt "),
    ):
        embedder.preflight()
    assert sleeps == []


@pytest.mark.parametrize("body", ["<html>welcome</html>", "[]", "{}", '{"model_id": 7}', "null"])
def test_an_info_that_is_not_of_tei_is_a_config_fault(body: str) -> None:
    with (
        answering(lambda _: (200, body.encode())) as url,
        client(url, profile=TINY) as embedder,
        pytest.raises(ConfigFault, match="Text Embeddings Inference"),
    ):
        embedder.preflight()


def test_info_kinds_are_compared_without_case() -> None:
    described = info(model_type={"Embedding": {"pooling": "Mean"}})
    assert read_info(described, TINY, SERVER).max_client_batch_size == 32


def test_a_re_ranker_is_refused() -> None:
    with pytest.raises(ConfigFault, match="reranker"):
        read_info(info(model_type={"reranker": {"id2label": {}}}), TINY, SERVER)


@pytest.mark.parametrize("limit", [None, 0, -1, True, "32", 2.5])
def test_limits_that_are_no_numbers_are_ignored(limit: Any) -> None:
    described = read_info(info(max_client_batch_size=limit, max_concurrent_requests=limit), TINY, SERVER)
    assert (described.max_client_batch_size, described.max_concurrent_requests) == (None, None)


def test_requests_respect_the_server_limit_of_rows() -> None:
    with FaultyTei(max_client_batch_size=5) as tei, client(tei.url) as embedder:
        embedder.preflight()
        assert embedder.embed(passages(23)).halt is None
        assert Counter(tei.sizes[1:]) == {5: 5, 4: 1}


@pytest.mark.parametrize(("slots", "rows", "requests"), [(512, 32, 4), (128, 32, 2), (10, 5, 1), (2, 2, 1)])
def test_at_most_half_of_the_server_slots_are_taken(slots: int, rows: int, requests: int) -> None:
    with FaultyTei(slots=slots, latency_seconds=0.001) as tei, client(tei.url, concurrency=4) as embedder:
        embedder.preflight()
        assert embedder.embed(passages(200)).halt is None
        assert max(tei.sizes) == rows
        assert tei.peak_requests <= requests


def test_a_server_that_cuts_earlier_than_the_profile_says_is_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def answer(asked: Asked) -> tuple[int, Any]:
        return 200, info(max_input_length=128) if asked.path == "/info" else [[1.0, 0.0, 0.0, 0.0]]

    with answering(answer) as url, client(url, profile=TINY) as embedder:
        embedder.preflight()
    assert "cuts texts at 128 tokens" in caplog.text
    assert {record.levelno for record in caplog.records if record.name.startswith("freehire")} == {
        logging.WARNING
    }


def test_the_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{free_port()}")
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()


def test_a_query_gets_its_own_prefix() -> None:
    with FaultyTei(keep_texts=True) as tei, client(tei.url) as embedder:
        vector = embedder.embed_query("  welder in Oulu ")
        np.testing.assert_allclose(vector, vector_for("query: welder in Oulu"), atol=1e-6)
        assert sent(tei) == [["query: welder in Oulu"]]


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (tei_faults.status(401), ConfigFault),
        (tei_faults.width(7), ConfigFault),
        (tei_faults.status(503), UpstreamFault),
        (tei_faults.values("null"), UpstreamFault),
        (tei_faults.hang, UpstreamFault),
        (tei_faults.reset, UpstreamFault),
    ],
)
def test_a_query_that_fails_raises_its_kind(fault: tei_faults.Fault, raised: type[Exception]) -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(fault)
        with pytest.raises(raised, match="EMBED_URL"):
            embedder.embed_query("welder", timeout_seconds=0.3)


def test_a_query_is_tried_again() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.reset, times=2)
        embedder.embed_query("welder")
        assert tei.requests == 3


def test_the_profile_of_another_width_finds_its_server() -> None:
    profile = BUILT_IN[DEFAULT_IDENTITY]
    with (
        FaultyTei(width=768, model_id=profile.served[0]) as tei,
        client(tei.url, profile=profile) as embedder,
    ):
        assert embedder.preflight().shape == (768,)
