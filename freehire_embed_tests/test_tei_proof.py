"""Every answer proves itself: the known row shows a replica of another model, and rows that are mixed up."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from freehire_embed.domain import HaltKind
from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei, vector_for
from freehire_embed.tei import ConfigFault
from freehire_embed.tei.proof import PROBE_TEXT
from freehire_embed_tests.tei_bench import assert_each_vector_is_of_its_text, client, passages

if TYPE_CHECKING:
    from collections.abc import Iterator

FOREIGN = [tei_faults.foreign(), tei_faults.width(768), tei_faults.scaled(2.0)]
MIXED_UP = [tei_faults.turned(), tei_faults.turned(1), tei_faults.turned(-1), tei_faults.turned(2)]


def delivered(embeddings: Any) -> int:
    return sum(vector is not None for vector in embeddings.vectors)


@contextmanager
def balancer(*servers: FaultyTei) -> Iterator[str]:
    """The URL of a balancer that gives each connection, for as long as it lives, to the next of the servers."""
    loop = asyncio.new_event_loop()
    turns = count()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece)
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chosen = servers[next(turns) % len(servers)]
        upstream_reader, upstream_writer = await asyncio.open_connection(
            "127.0.0.1", int(chosen.root.split(":")[2])
        )
        try:
            await asyncio.gather(
                pipe(reader, upstream_writer), pipe(upstream_reader, writer), return_exceptions=True
            )
        finally:
            for each in (writer, upstream_writer):
                each.transport.abort()

    async def listen() -> tuple[asyncio.Server, int]:
        server = await asyncio.start_server(connect, "127.0.0.1", 0)
        return server, server.sockets[0].getsockname()[1]

    async def stop() -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server, port = asyncio.run_coroutine_threadsafe(listen(), loop).result(10)
    try:
        yield f"http://127.0.0.1:{port}/embed"
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def test_the_known_row_rides_in_each_request_at_places_that_vary_and_are_never_the_middle() -> None:
    with FaultyTei(keep_texts=True) as tei, client(tei.url, rows_per_request=4) as embedder:
        embedder.preflight()
        assert embedder.embed(passages(200)).halt is None
        embedder.embed_query("who builds bridges?")
        places = [
            [place for place, text in enumerate(texts) if PROBE_TEXT in text]
            for texts in (tei.texts or [])[1:]
        ]
    assert all(len(each) == 1 for each in places)
    assert {each[0] for each in places} == {0, 1, 3, 4}


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("fault", FOREIGN)
def test_one_foreign_answer_in_three_is_asked_for_again_and_counted(
    fault: tei_faults.Fault, concurrency: int
) -> None:
    texts = passages(400)
    with FaultyTei() as tei, client(tei.url, concurrency=concurrency, adaptive=False) as embedder:
        embedder.preflight()
        tei.fail(fault, every=3)
        embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert embeddings.faults == {}
        assert delivered(embeddings) == 400
        assert_each_vector_is_of_its_text(texts, embeddings)
        assert embeddings.usage.foreign == embedder.stats.foreign == (tei.requests - 1) // 3
        assert embeddings.usage.answers == 13
        assert embeddings.usage.doubt is not None
        assert f"{embeddings.usage.foreign} of " in embeddings.usage.doubt


@pytest.mark.parametrize("fault", FOREIGN)
def test_a_server_that_stays_foreign_ends_the_wave_and_nothing_of_it_is_used(fault: tei_faults.Fault) -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.fail(fault, after=2)
        embeddings = embedder.embed(passages(200))
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.CONFIG
        assert "another model" in embeddings.halt.reason
        assert "5 attempts" in embeddings.halt.reason
        assert (delivered(embeddings), embeddings.faults) == (0, {})
        assert tei.requests == 1 + 2 + 5


@pytest.mark.parametrize("fault", MIXED_UP)
def test_rows_that_are_mixed_up_stop_the_run_at_once(fault: tei_faults.Fault) -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.fail(fault, after=1)
        embeddings = embedder.embed(passages(200))
        assert embeddings.halt is not None
        assert embeddings.halt.kind is HaltKind.CONFIG
        assert "order" in embeddings.halt.reason
        assert delivered(embeddings) == 0
        assert tei.requests == 3


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_reversed_rows_are_found_however_few_they_are(rows: int) -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.fail(tei_faults.turned())
        for _ in range(5):
            halt = embedder.embed(passages(rows)).halt
            assert halt is not None
            assert halt.kind is HaltKind.CONFIG


def test_a_passage_that_is_the_known_text_itself_confuses_nobody() -> None:
    texts = [*passages(3), f"passage: {PROBE_TEXT}"]
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.fail(tei_faults.foreign(), times=1)
        embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert_each_vector_is_of_its_text(texts, embeddings)


def test_a_foreign_replica_is_not_asked_again_over_the_connection_that_a_balancer_gave_it() -> None:
    texts = passages(400)
    with FaultyTei() as right, FaultyTei(model_id="example/other", info=False) as wrong:
        with client(right.url) as known:
            reference = known.preflight()
        with balancer(right, right, wrong) as url, client(url, concurrency=3, adaptive=False) as embedder:
            embedder.preflight(reference)
            embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert delivered(embeddings) == 400
        assert_each_vector_is_of_its_text(texts, embeddings)
        assert wrong.requests == embeddings.usage.foreign > 0


def test_a_health_check_that_meets_a_foreign_replica_is_asked_again_and_counted() -> None:
    texts = passages(20)
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.fail(tei_faults.status(500), times=2)
        tei.fail(tei_faults.foreign(), times=1)
        embeddings = embedder.embed(texts)
        assert embeddings.halt is None
        assert delivered(embeddings) == 20
        assert embeddings.usage.foreign == 1


def test_a_query_is_not_searched_with_a_foreign_answer() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.fail(tei_faults.foreign(), times=2)
        vector = embedder.embed_query("who builds bridges?")
        np.testing.assert_allclose(vector, vector_for("query: who builds bridges?"), atol=1e-6)
        tei.fail(tei_faults.foreign())
        with pytest.raises(ConfigFault, match="another model"):
            embedder.embed_query("who builds bridges?")


def test_a_query_whose_rows_are_mixed_up_is_a_config_fault() -> None:
    with FaultyTei() as tei, client(tei.url) as embedder:
        embedder.preflight()
        tei.fail(tei_faults.turned())
        with pytest.raises(ConfigFault, match="order"):
            embedder.embed_query("who builds bridges?")


def test_a_server_that_takes_one_row_a_request_cannot_prove_itself_and_is_refused() -> None:
    with (
        FaultyTei(max_client_batch_size=1) as tei,
        client(tei.url) as embedder,
        pytest.raises(ConfigFault, match="max-client-batch-size"),
    ):
        embedder.preflight()
