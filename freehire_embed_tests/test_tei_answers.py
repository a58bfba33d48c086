"""What answers without vectors mean, and what of them may be shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehire_embed.tei import ConfigFault
from freehire_embed.tei.about import read_info
from freehire_embed.tei.answers import read_refusal
from freehire_embed.wire.address import Server
from freehire_embed.wire.redaction import redact
from freehire_embed.wire.refusal import Kind
from freehire_embed_tests.tei_bench import TINY, info

TOO_LONG = "`inputs` must have less than 512 tokens. Given: 700"
BATCH = "batch size 40 > maximum allowed batch size 32"


def tei_error(message: str, error_type: str) -> str:
    return f'{{"error": "{message}", "error_type": "{error_type}"}}'


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (413, tei_error(TOO_LONG, "Validation"), Kind.ROW),
        (422, tei_error(TOO_LONG, "Validation"), Kind.ROW),
        (422, tei_error("cannot tokenize", "Tokenizer"), Kind.ROW),
        (413, tei_error("`inputs` cannot be empty", "Validation"), Kind.ROW),
        (400, tei_error("`inputs` cannot be empty", "Empty"), Kind.ROW),
        (400, "Failed to parse the request body as JSON", Kind.ROW),
        (422, "Failed to deserialize", Kind.ROW),
        (413, tei_error(BATCH, "Validation"), Kind.LIMIT),
        (422, tei_error(BATCH, "Validation"), Kind.LIMIT),
        (413, "length limit exceeded", Kind.SIZE),
        (413, "<html>Request Entity Too Large</html>", Kind.SIZE),
        (424, tei_error("CUDA out of memory", "Backend"), Kind.BACKEND),
        (424, tei_error("Model is not an embedding model", "Backend"), Kind.CONFIG),
        (429, tei_error("Model is overloaded", "Overloaded"), Kind.BUSY),
        (429, "", Kind.BUSY),
        (503, tei_error("busy", "overloaded"), Kind.BUSY),
        (503, tei_error("unhealthy", "Unhealthy"), Kind.UPSTREAM),
        (500, "", Kind.UPSTREAM),
        (502, "<html>Bad Gateway</html>", Kind.UPSTREAM),
        (504, "", Kind.UPSTREAM),
        (408, "", Kind.UPSTREAM),
        (204, "", Kind.UPSTREAM),
        (401, "", Kind.CONFIG),
        (403, tei_error("no", "Validation"), Kind.CONFIG),
        (404, "", Kind.CONFIG),
        (405, "", Kind.CONFIG),
        (415, "", Kind.CONFIG),
        (410, "", Kind.CONFIG),
        (301, "", Kind.CONFIG),
        (307, "", Kind.CONFIG),
    ],
)
def test_the_body_decides_before_the_status(status: int, body: str, kind: Kind) -> None:
    assert read_refusal(status, {}, body.encode(), ()).kind is kind


def test_the_batch_limit_is_read_from_the_message() -> None:
    assert read_refusal(422, {}, tei_error(BATCH, "Validation").encode(), ()).limit == 32


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "86400"}, 60.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, 60.0),
        ({"retry-after": "soon"}, None),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:20 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            20.0,
        ),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:20 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2499 07:28:20 GMT"}, 60.0),
    ],
)
def test_retry_after_is_read_in_both_forms_and_capped(headers: dict[str, str], seconds: float | None) -> None:
    assert read_refusal(429, headers, b"", ()).retry_after_seconds == seconds


def test_a_message_that_quotes_what_was_sent_is_shown_without_it() -> None:
    text = "passage: Senior Welder at Acme.\nYou will join our team of welders in Oulu."
    message = "invalid row `Senior Welder at Acme.\\nYou will join`: not accepted"
    shown = redact(message, [text])
    assert "Welder" not in shown
    assert "Acme" not in shown
    assert shown.startswith("invalid row")
    assert shown.endswith("not accepted")


def test_a_short_text_or_key_is_not_quoted_either() -> None:
    assert redact("bad token k3y-9 given", ["k3y-9"]) == "bad token … given"


HOSTILE = [
    "sk-TOPSECRET-0123456789",
    "passage: Senior Welder at Acme in Oulu",
    "\n",
    "\x1b[31m",
    "\u202e",
    "\u200b",
]


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize(
    "shape",
    [
        {"error": "X", "error_type": "Backend"},
        {"error": "no", "error_type": "X"},
        {"message": "X", "type": "X", "code": 500},
        {"error": {"message": "X", "type": "X", "code": "X", "param": "X"}},
        {"object": "error", "message": "no", "type": "X", "code": "X"},
        {"detail": "X"},
        {"detail": [{"loc": ["body"], "msg": "X"}]},
        {"errors": ["X"]},
    ],
)
@pytest.mark.parametrize("status", [400, 401, 422, 424, 429, 500, 503])
def test_no_field_of_an_error_shows_what_was_sent_or_commands_a_terminal(
    status: int, shape: dict[str, object], hostile: str
) -> None:
    body = json.dumps(shape).replace("X", json.dumps(f"before {hostile} after")[1:-1])
    detail = read_refusal(status, {"content-type": "application/json"}, body.encode(), HOSTILE[:2]).detail
    assert detail.isprintable()
    assert "TOPSECRET" not in detail
    assert "Welder" not in detail


def test_no_field_of_info_shows_the_key_or_commands_a_terminal() -> None:
    server = Server("embedding backend", "EMBED_URL http://host/embed")
    key = HOSTILE[0]
    hostile = f"{key} \x1b[31m\u202e\n"
    for told in (
        info(model_id=hostile),
        info(model_type={hostile: {}}),
        info(model_type={"embedding": {"pooling": hostile}}),
    ):
        with pytest.raises(ConfigFault) as fault:
            read_info(told, TINY, server, [key])
        assert str(fault.value).isprintable()
        assert "TOPSECRET" not in str(fault.value)


@given(st.text(min_size=12, alphabet=st.characters(categories=["L", "N"])), st.text(max_size=30))
def test_no_long_quotation_survives(secret: str, around: str) -> None:
    shown = redact(f"{around} {secret} {around}", [secret])
    assert len(shown) <= 200
    assert secret not in shown


@given(st.binary(max_size=200), st.integers(100, 599))
def test_any_body_is_read_without_an_error(body: bytes, status: int) -> None:
    assert len(read_refusal(status, {}, body, ["a text"]).detail) <= 260
