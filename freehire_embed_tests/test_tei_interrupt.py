"""Ending early: interrupts, time limits, closing; and what must not be seen meanwhile."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from freehire_embed.domain import HaltKind
from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.tei import TeiEmbedder
from freehire_embed_tests.tei_bench import PROFILE, SECRET, Asked, answering, client, passages

if TYPE_CHECKING:
    from types import FrameType


class Interrupted(BaseException):
    pass


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")
def test_an_interrupt_of_the_waiting_thread_goes_on_up_and_ends_the_request() -> None:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    hung_up = threading.Event()

    async def hang(exchange: tei_faults.Exchange) -> None:
        await exchange.hung_up()
        hung_up.set()

    try:
        with FaultyTei() as tei, client(tei.url) as embedder:
            tei.fail(hang, times=1)

            def send() -> None:
                tei.arrived.wait(10)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

            threading.Thread(target=send, daemon=True).start()
            with pytest.raises(Interrupted):
                embedder.embed(passages(100))
            assert hung_up.wait(10)
            assert tei.requests == 1
            assert embedder.embed(passages(40)).halt is None
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_wave_out_of_time_keeps_what_is_finished_and_charges_nobody() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        tei.fail(tei_faults.hang, after=2)
        embeddings = embedder.embed(passages(100), timeout_seconds=0.3)
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.CALL_TIMEOUT
        assert "EMBED_CALL_TIMEOUT_SECONDS" in embeddings.halt.reason
        assert sum(vector is not None for vector in embeddings.vectors) == 62
        assert embeddings.faults == {}
        assert tei.requests == 3


def test_zero_is_no_time_limit() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        assert embedder.embed(passages(40), timeout_seconds=0).halt is None


def test_two_waves_at_once_share_the_concurrency() -> None:
    results = []
    with FaultyTei(latency_seconds=0.002) as tei, client(tei.url, concurrency=2) as embedder:

        def wave() -> None:
            results.append(embedder.embed(passages(300)))

        waves = [threading.Thread(target=wave) for _ in range(3)]
        for thread in waves:
            thread.start()
        for thread in waves:
            thread.join(30)
        assert [result.halt for result in results] == [None] * 3
        assert tei.peak_requests == 2


def test_closing_twice_is_harmless_and_leaves_no_thread() -> None:
    with FaultyTei() as tei:
        embedder = client(tei.url)
        embedder.preflight()
        embedder.close()
        embedder.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "tei-client"]


def test_closing_ends_a_wave_that_another_thread_waits_for() -> None:
    ended: list[BaseException] = []
    with FaultyTei() as tei:
        tei.fail(tei_faults.hang)
        embedder = client(tei.url)

        def wave() -> None:
            try:
                embedder.embed(passages(10))
            except BaseException as error:  # noqa: BLE001 - which one is what is tested
                ended.append(error)

        thread = threading.Thread(target=wave)
        thread.start()
        assert tei.arrived.wait(10)
        embedder.close()
        thread.join(10)
        assert len(ended) == 1


@pytest.mark.parametrize(
    "fault",
    [
        tei_faults.echo(422),
        tei_faults.echo(424, "Backend"),
        tei_faults.echo(500, ""),
        tei_faults.status(401, message=f"bad key {SECRET}"),
        tei_faults.status(404, message=f"no route for Bearer {SECRET}"),
    ],
)
def test_neither_key_nor_passage_is_in_reasons_reprs_or_logs(
    fault: tei_faults.Fault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    texts = passages(40, p7="passage: Confidential welding position, shhh, in Oulu. POISON")
    with (
        FaultyTei(api_key=SECRET) as tei,
        client(tei.url, api_key=SecretStr(SECRET)) as embedder,
    ):
        embedder.preflight()
        tei.fail(fault, marker="POISON")
        embeddings = embedder.embed(texts)
        shown = f"{embeddings.halt} {dict(embeddings.faults)} {embedder!r} {vars(embedder)} {caplog.text}"
    assert embeddings.halt or embeddings.faults
    for secret in (SECRET, "welding", "Confidential", "posting 3"):
        assert secret not in shown


def test_no_request_carries_the_key_in_its_url_or_body() -> None:
    seen: list[Asked] = []

    def answer(asked: Asked) -> tuple[int, Any]:
        seen.append(asked)
        return 500, {}

    with (
        answering(answer) as url,
        TeiEmbedder(url=url, api_key=SecretStr(SECRET), profile=PROFILE, warmup_seconds=0) as embedder,
        pytest.raises(Exception, match="unavailable"),
    ):
        embedder.preflight()
    assert seen
    for asked in seen:
        assert SECRET not in f"{asked.path} {asked.body!r}"
        assert asked.headers["authorization"] == f"Bearer {SECRET}"


def test_the_faulty_server_runs_as_a_process() -> None:
    command = [sys.executable, "-m", "freehire_embed.drill.faulty_tei", "--poison", "POISON", "422"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with client(url) as embedder:
                embedder.preflight()
                assert list(embedder.embed(passages(40, p7="POISON")).faults) == [7]
        finally:
            process.kill()
