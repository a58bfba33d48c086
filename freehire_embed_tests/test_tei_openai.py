"""The OpenAI form: the same client, the same sorting of faults, the same preflight, other words."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from pydantic import SecretStr

from freehire_embed.domain import HaltKind
from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei, vector_for
from freehire_embed.profiles import Profile
from freehire_embed.settings import Settings, SettingsError
from freehire_embed.tei import ConfigFault, UpstreamFault
from freehire_embed.tei.answers import read_refusal
from freehire_embed.tei.endpoint import Endpoint
from freehire_embed.tei.openai_vectors import read_embeddings
from freehire_embed.tei.vectors import Rows
from freehire_embed.wire.refusal import Kind, Refusal
from freehire_embed_tests.tei_bench import (
    PROFILE,
    TINY,
    Asked,
    answering,
    assert_each_vector_is_of_its_text,
    client,
    passages,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def error(message: str, kind: str | None = "invalid_request_error", code: Any = None) -> bytes:
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


SHAPES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "server_errors.jsonl").read_text("utf-8").splitlines()
]
"""Errors as the servers word them, from their sources and issue threads."""


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['server']} {shape['status']}")
def test_each_servers_own_words_are_understood(shape: dict[str, Any]) -> None:
    body = orjson.dumps(shape["body"])
    refusal = read_refusal(shape["status"], {"content-type": "application/json"}, body, ())
    assert refusal.kind.name.lower() == shape["kind"]
    assert refusal.detail.isprintable()


def test_a_posting_that_is_quoted_in_an_error_is_not_taken_for_the_servers_words() -> None:
    text = "passage: We exceeded your current quota; model x does not exist, not an embedding model"
    body = error(f"cannot take {text!r}")
    assert read_refusal(400, {}, body, [text]).kind is Kind.ROW


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2.5s"}, 60.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "12.5s"}, 12.5),
        ({"x-ratelimit-remaining-tokens": "7", "x-ratelimit-reset-tokens": "12.5s"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "soon"}, None),
    ],
)
def test_how_long_to_wait_is_read_from_what_the_limits_say(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert read_refusal(429, headers, b"", ()).retry_after_seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("url", "api", "spoken", "posted", "about"),
    [
        ("https://h/v1", None, "openai", "https://h/v1/embeddings", "https://h/v1/models"),
        ("https://h/v1/", None, "openai", "https://h/v1/embeddings", "https://h/v1/models"),
        ("https://h/v1/embeddings", None, "openai", "https://h/v1/embeddings", "https://h/v1/models"),
        (
            "https://h/openai/v1",
            None,
            "openai",
            "https://h/openai/v1/embeddings",
            "https://h/openai/v1/models",
        ),
        (
            "https://h/d/x/embeddings?v=1",
            None,
            "openai",
            "https://h/d/x/embeddings?v=1",
            "https://h/d/x/models?v=1",
        ),
        ("https://h", "openai", "openai", "https://h/v1/embeddings", "https://h/v1/models"),
        ("https://h/api", "openai", "openai", "https://h/api/v1/embeddings", "https://h/api/v1/models"),
        ("https://h", None, "tei", "https://h", "https://h/info"),
        ("https://h/embed", "tei", "tei", "https://h/embed", "https://h/info"),
    ],
)
def test_the_dialect_goes_by_the_path_or_by_embed_api(
    url: str, api: Any, spoken: str, posted: str, about: str
) -> None:
    endpoint = Endpoint.of(url, None, api)
    assert (endpoint.api, endpoint.embed, endpoint.about) == (spoken, posted, about)


def test_an_embed_api_that_contradicts_the_path_or_is_unknown_is_refused() -> None:
    with pytest.raises(SettingsError, match="unset EMBED_API"):
        Endpoint.of("https://h/v1/embeddings", None, "tei")
    with pytest.raises(SettingsError, match="EMBED_API='grpc'"):
        Settings.from_environment({"EMBED_API": "grpc"})


def embedded(*rows: Any, **more: Any) -> bytes:
    data = [{"index": index, "embedding": row} for index, row in enumerate(rows)]
    return orjson.dumps({"data": data, **more})


ONE, TWO = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]


def packed(row: list[float]) -> str:
    return base64.b64encode(np.array(row, dtype="<f4").tobytes()).decode()


@pytest.mark.parametrize(
    "body",
    [
        embedded(ONE, TWO),
        embedded(packed(ONE), packed(TWO)),
        embedded(ONE, packed(TWO)),
        orjson.dumps({"data": [{"index": 1, "embedding": TWO}, {"index": 0, "embedding": ONE}]}),
        orjson.dumps({"data": [{"embedding": ONE}, {"embedding": TWO}]}),
        orjson.dumps({"data": [{"index": 0, "embedding": ONE}, {"index": 0, "embedding": TWO}]}),
    ],
)
def test_vectors_are_read_in_the_order_of_their_index_in_either_encoding(body: bytes) -> None:
    rows = read_embeddings(body, 2, 4)
    assert isinstance(rows, Rows)
    assert [list(vector) for vector in rows.vectors if vector is not None] == [ONE, TWO]


def test_tokens_are_those_of_usage() -> None:
    rows = read_embeddings(embedded(ONE, usage={"prompt_tokens": 7, "total_tokens": 7}), 1, 4)
    assert isinstance(rows, Rows)
    assert rows.tokens == 7


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (embedded(ONE), Kind.COUNT),
        (b'{"data":[{"index":0},{"index":5}]}', Kind.COUNT),
        (b'{"data":[{"index":0},{"index":null}]}', Kind.COUNT),
        (b'{"data":[1,2]}', Kind.UPSTREAM),
        (b'{"data":{}}', Kind.UPSTREAM),
        (b"[]", Kind.UPSTREAM),
        (b"<html>", Kind.UPSTREAM),
        (b'{"data":', Kind.UPSTREAM),
    ],
)
def test_an_answer_that_cannot_be_matched_to_its_rows_is_not_used(body: bytes, kind: Kind) -> None:
    refusal = read_embeddings(body, 2, 4)
    assert isinstance(refusal, Refusal)
    assert refusal.kind is kind


@pytest.mark.parametrize(
    "row", [None, "?", packed([1.0]), packed([np.nan] * 4), packed([0.0] * 4), [1, 2], {}]
)
def test_a_defective_row_leaves_its_neighbours_good(row: Any) -> None:
    rows = read_embeddings(embedded(ONE, row), 2, 4)
    assert isinstance(rows, Rows)
    assert list(rows.defects) == [1]


@pytest.mark.parametrize("fault", ["422", "424", "500", "reset", "null", "width", "count", "foreign"])
def test_faults_are_sorted_as_in_the_other_dialect(fault: str) -> None:
    texts = passages(200, p50="passage: POISON")
    with FaultyTei() as tei, client(tei.openai_url, concurrency=2) as embedder:
        embedder.preflight()
        if fault == "foreign":
            tei.fail(tei_faults.foreign(), every=3)
        else:
            tei.fail(tei_faults.named(fault), marker="POISON")
        embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert list(embeddings.faults) == ([] if fault == "foreign" else [50])
        assert_each_vector_is_of_its_text(texts, embeddings)
        assert embedder.stats.tokens > 0
        np.testing.assert_allclose(embedder.embed_query("welder"), vector_for("query: welder"), atol=1e-6)


@pytest.mark.parametrize(
    "said", ["encoding_format: base64 is not supported", "unknown field `encoding_format`"]
)
def test_base64_is_asked_for_and_not_again_where_it_is_refused(said: str) -> None:
    seen: list[bool] = []

    def answer(asked: Asked) -> tuple[int, Any]:
        if not asked.body:
            return 404, {}
        request = orjson.loads(asked.body)
        seen.append("encoding_format" in request)
        if seen[-1]:
            return 400, error(said)
        return 200, embedded(
            *(vector_for(text, TINY.width, TINY.served[0]).tolist() for text in request["input"])
        )

    with answering(answer) as url, client(url.replace("/embed", "/v1"), profile=TINY) as embedder:
        embedder.preflight()
        assert embedder.embed(passages(3)).halt is None
    assert seen == [True, False, False]


def test_the_first_served_name_and_the_profiles_dimensions_are_asked_for() -> None:
    seen: list[dict[str, Any]] = []

    def answer(asked: Asked) -> tuple[int, Any]:
        if not asked.body:
            return 200, {"data": [{"id": "other"}, {"id": "second"}]}
        seen.append(orjson.loads(asked.body))
        return 200, embedded(*(ONE for _ in seen[-1]["input"]))

    profile = Profile("x", ("first", "second"), 4, dimensions=4, passage_prefix="")
    with answering(answer) as url, client(url.replace("/embed", "/v1"), profile=profile) as embedder:
        embedder.preflight()
    assert (seen[0]["model"], seen[0]["dimensions"]) == ("first", 4)
    assert seen[0]["input"][0].startswith("A calm river")


def refusing(status: int, body: bytes) -> Callable[[Asked], tuple[int, Any]]:
    return lambda asked: (status, body) if asked.body else (404, b"")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _: (200, {"data": [{"id": "gpt-4o"}]}), "lists gpt-4o, but .* `served`"),
        (refusing(403, error("You are not allowed to generate embeddings from it")), "embedding model first"),
        (refusing(403, error("Project `p` has no access to model `m`")), "project may use"),
        (refusing(401, error("Incorrect API key provided")), "check EMBED_API_KEY"),
        (refusing(400, error("This model does not support specifying dimensions.")), "take `dimensions` out"),
        (refusing(404, error("model not found, try pulling it first")), "model's name in `served`"),
        (refusing(429, error("You exceeded your current quota", code="insufficient_quota")), "quota"),
        (lambda asked: (200, embedded([1.0] + 7 * [0.0])) if asked.body else (404, b""), "width 8 instead of 4"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_set_up_is_said_in_its_own_sentence(
    answer: Callable[[Asked], tuple[int, Any]], told: str
) -> None:
    with (
        answering(answer) as url,
        client(url.replace("/embed", "/v1"), profile=TINY, api_key=SecretStr("sk-0123456789")) as embedder,
        pytest.raises(ConfigFault, match=told),
    ):
        embedder.preflight()


def test_a_base_url_without_a_path_is_told_of_the_openai_form() -> None:
    with (
        answering(lambda _: (404, error("Invalid URL"))) as url,
        client(url.removesuffix("/embed"), profile=TINY) as embedder,
        pytest.raises(ConfigFault, match=r"\.\.\./v1, or set EMBED_API=openai"),
    ):
        embedder.preflight()


def test_a_server_that_loads_its_model_is_waited_for_and_then_given_up() -> None:
    body = b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'
    with (
        answering(lambda _: (503, body)) as url,
        client(url.replace("/embed", "/v1"), profile=TINY, warmup_seconds=3) as embedder,
        pytest.raises(UpstreamFault, match=r"3 attempts.*Loading model"),
    ):
        embedder.preflight()


def test_a_quota_that_is_used_up_in_mid_run_stops_it_and_charges_nobody() -> None:
    spent = error("You exceeded your current quota", "insufficient_quota", "insufficient_quota")

    async def refuse(exchange: tei_faults.Exchange) -> None:
        await exchange.reply(429, spent)

    with FaultyTei() as tei, client(tei.openai_url, profile=PROFILE) as embedder:
        embedder.preflight()
        tei.fail(refuse, after=1)
        embeddings = embedder.embed(passages(100))
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.CONFIG
        assert embeddings.faults == {}
        assert tei.requests == 3
