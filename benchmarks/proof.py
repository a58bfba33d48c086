"""What it costs that every answer proves itself: one known row a request."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

import orjson

from benchmarks import pipeline, seed
from benchmarks.canned_tei import serving
from benchmarks.figures import Figure
from benchmarks.scratch import PROFILE
from freehire_embed.chunks import estimate_tokens
from freehire_embed.tei import TeiEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.figures import Sizes
    from benchmarks.scratch import Scratch
    from freehire_embed.tei.vectors import Rows
    from freehire_embed.wire.refusal import Refusal

_TURNS = 9


def run(scratch: Scratch, sizes: Sizes) -> Iterator[Figure]:
    texts = [f"passage: {number} {seed.PARAGRAPH * 12}" for number in range(31 * max(sizes.run // 93, 4))]
    with serving() as url, _client(url) as proving, _client(url, rows_per_request=32) as trusting:
        proving.preflight()
        trusting.preflight()
        trusting._proof.embed = _plainly(trusting)  # type: ignore[method-assign]
        taken = [(_cpu(proving, texts), _cpu(trusting, texts)) for _ in range(_TURNS)]
        with scratch.database() as (_, connection):
            seed.add_postings(connection, sizes.run, eligible=sizes.run, chunks=pipeline.CHUNKS)
            connection.execute("vacuum analyze")
            ran = pipeline.run(scratch.url(connection.info.dbname), url, sizes)
        tokens = estimate_tokens(orjson.loads(proving._proof.row))
    extra = median(with_it - without for with_it, without in taken)
    a_chunk = ran.cpu_seconds / ran.counters["embedded"] * 1e6
    yield Figure(
        "the known row's share of a run's client CPU",
        extra / a_chunk,
        0.01,
        unit="",
        detail=f"{extra:.2f} of {a_chunk:.0f} us/chunk; embedding alone {median(pair[1] for pair in taken):.0f}",
    )
    passage = estimate_tokens(texts[0])
    yield Figure(
        "the known row's share of the server's tokens",
        tokens / (31 * passage + tokens),
        0.01,
        unit="",
        detail=f"{tokens} beside 31 passages of {passage}",
    )


def _client(url: str, **options: int) -> TeiEmbedder:
    return TeiEmbedder(url=url, api_key=None, profile=PROFILE, **options)


def _plainly(client: TeiEmbedder) -> object:
    async def embed(rows: Sequence[bytes], timeout_seconds: float) -> Rows | Refusal:
        return await client._client.embed(rows, timeout_seconds)

    return embed


def _cpu(client: TeiEmbedder, texts: Sequence[str]) -> float:
    """Microseconds of this process's CPU a passage."""
    started = time.process_time()
    client.embed(texts)
    return (time.process_time() - started) / len(texts) * 1e6
