"""A client that is closed while several waves use it: each caller gets an end, none waits for ever."""

from __future__ import annotations

import threading

from freehire_embed.drill import tei_faults
from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed_tests.tei_bench import client, passages


def test_a_wave_that_comes_while_the_client_closes_is_turned_away() -> None:
    ends: list[BaseException] = []

    def two_waves_in_turn() -> None:
        for _ in range(2):
            try:
                embedder.embed(passages(4))
            except BaseException as error:  # noqa: BLE001 - a cancellation is one
                ends.append(error)

    with FaultyTei() as tei:
        tei.fail(tei_faults.hang)
        embedder = client(tei.url)
        threads = [threading.Thread(target=two_waves_in_turn, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert tei.arrived.wait(10)
        embedder.close()
        for thread in threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in threads)
    assert len(ends) == 8
