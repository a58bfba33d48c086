"""What the product is measured against: the ceiling of the server, and the ways of doing it that are avoided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from benchmarks.figures import median_seconds
from benchmarks.scratch import MODEL, PROFILE
from freehire_embed.store.commit import _binary_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from freehire_embed.domain import Vector

_ROWS = 20_000


def vectors(count: int, seed: int = 0) -> Sequence[Vector]:
    """`count` unit vectors of the profile's width, in clusters as texts have them."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(64, PROFILE.width))
    matrix = centres[random.integers(0, 64, count)] + random.normal(scale=0.7, size=(count, PROFILE.width))
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return list(matrix.astype(np.float32))


def raw_copy(connection: psycopg.Connection) -> float:
    """(a): chunks/s of COPY BINARY of encoded rows into an empty table without any index, one transaction."""
    one = vectors(1000)
    body = _binary_rows([(n, 0, one[n % 1000], bytes(32)) for n in range(_ROWS)])
    connection.execute(
        f"create table raw_copy (job_id bigint, chunk_index smallint, embedding vector({PROFILE.width}), "
        "passage_sha256 bytea)"
    )

    def copy() -> None:
        connection.execute("truncate raw_copy")
        with (
            connection.transaction(),
            connection.cursor().copy("copy raw_copy from stdin (format binary)") as to,
        ):
            to.write(body)

    seconds = median_seconds(copy, 3)
    connection.execute("drop table raw_copy")
    return _ROWS / seconds


def text_wave(
    connection: psycopg.Connection,
    job_ids: Sequence[int],
    rows: Sequence[tuple[int, int, Vector | list[float]]],
) -> None:
    """A wave's transaction with its vectors as text literals: arrays by orjson, lists as they print themselves."""
    literals = [
        str(vector)
        if isinstance(vector, list)
        else orjson.dumps(vector, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        for _, _, vector in rows
    ]
    with connection.transaction():
        connection.execute(
            "update jobs set semantic_embedded_model = %s, semantic_embedded_hash = content_hash, "
            "similar_computed_at = null where id = any(%s)",
            [MODEL, list(job_ids)],
        )
        connection.execute("delete from job_semantic_chunks where job_id = any(%s)", [list(job_ids)])
        connection.execute(
            "insert into job_semantic_chunks (job_id, chunk_index, embedding) select j, i, v::vector from "
            "unnest(%s::bigint[], %s::smallint[], %s::text[]) as t (j, i, v)",
            [[row[0] for row in rows], [row[1] for row in rows], literals],
        )
        connection.execute("delete from semantic_outbox where job_id = any(%s)", [list(job_ids)])


JOIN_SORTED_CLAIM = """
with picked as (
    select o.id from semantic_outbox o join jobs j on j.id = o.job_id
    where o.failed_at is null and (o.claimed_at is null or o.claimed_at < now() - interval '5 min')
    order by j.posted_at desc nulls last, j.id desc limit 500 for update of o skip locked
)
update semantic_outbox o set claimed_at = now() from picked where o.id = picked.id returning o.id
"""

SCANNING_ENQUEUE = """
insert into semantic_outbox (job_id, target_model, job_posted_at)
select id, %(model)s, coalesce(posted_at, created_at) from jobs
where (closed_at is null and duplicate_of is null and is_tech
        and (semantic_embedded_model is distinct from %(model)s
            or semantic_embedded_hash is distinct from content_hash))
    or ((closed_at is not null or duplicate_of is not null) and semantic_embedded_model is not null)
on conflict (job_id, target_model) do nothing
"""

SCANNING_COVERAGE = """
select count(*) as eligible,
    count(*) filter (where semantic_embedded_model = %(model)s
        and semantic_embedded_hash is not distinct from content_hash) as covered
from jobs where closed_at is null and duplicate_of is null and is_tech and not is_private
"""


def without_indexes(connection: psycopg.Connection, statement: str, parameters: dict[str, Any]) -> Any:
    """Runs `statement` as on a database that has none of the partial indexes; gives its first row, if any."""
    with connection.transaction():
        connection.execute("set local enable_indexscan = off")
        connection.execute("set local enable_indexonlyscan = off")
        connection.execute("set local enable_bitmapscan = off")
        cursor = connection.execute(statement, parameters)
        return cursor.fetchone() if cursor.description else None
