"""Postings of files -> `jobs`, for people without freehire."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

from freehire_embed.queries import query
from freehire_embed.store.database import execute
from freehire_embed.store.divide import divide
from freehire_embed.store.faults import for_the_owner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from freehire_embed.posting import Posting
    from freehire_embed.store.database import Connection, Database

_BATCH = 500
"""Postings a statement; more of them gain nothing."""
_BATCH_CHARACTERS = 32 * 1024 * 1024
"""500 of the largest real postings are some 20 MB; a file of larger ones must not fill the memory."""
_KEYS_IN_MEMORY = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What became of one batch; of a key that comes twice the last row counts."""

    added: int
    updated: int
    unchanged: int
    refused: tuple[str, ...] = ()
    """Rows that Postgres refuses: their keys and why."""


@contextmanager
def posting_import(database: Database) -> Iterator[PostingImport]:
    """Opens one import of any number of files; each batch commits by itself.

    Raises DatabaseFault. An import that broke off is simply repeated: what is there already stays untouched.
    """
    with for_the_owner("import"), SpooledTemporaryFile(_KEYS_IN_MEMORY, "w+", encoding="utf-8") as keys:
        yield PostingImport(database, keys)


class PostingImport:
    """See `posting_import`.

    The keys seen are kept here, not in the session: behind a pooler each transaction may have another one.
    """

    def __init__(self, database: Database, keys: SpooledTemporaryFile[str]) -> None:
        self._database = database
        self._keys = keys

    def add(self, postings: Iterable[Posting]) -> Iterator[BatchReport]:
        """Adds or updates by (source, external_id), batch after batch; what came before an error is written."""
        batch: list[Posting] = []
        size = 0
        try:
            for posting in postings:
                batch.append(posting)
                size += len(posting.description) + len(posting.title)
                if len(batch) == _BATCH or size > _BATCH_CHARACTERS:
                    full, batch, size = batch, [], 0
                    yield self._write(full)
        except Exception:
            if batch:
                yield self._write(batch)
            raise
        if batch:
            yield self._write(batch)

    def close_missing(self) -> int:
        """Closes the open postings of the sources seen so far whose keys were not seen; returns how many."""

        def work(connection: Connection) -> int:
            execute(connection, "import_seen")
            self._keys.seek(0)
            with connection.cursor().copy(query("import_seen_copy")) as copy:
                for line in self._keys:
                    copy.write_row(json.loads(line))
            return execute(connection, "import_close_missing")

        return self._database.transact(work)

    def _write(self, batch: Sequence[Posting]) -> BatchReport:
        parts, rejected = divide(range(len(batch)), lambda places: self._upsert([batch[i] for i in places]))
        return BatchReport(
            added=sum(part.added for part in parts),
            updated=sum(part.updated for part in parts),
            unchanged=sum(part.unchanged for part in parts),
            refused=tuple(
                f"{batch[place].source} {batch[place].external_id}: Postgres refuses the row: {why}"
                for place, why in rejected.items()
            ),
        )

    def _upsert(self, batch: Sequence[Posting]) -> BatchReport:
        columns = {
            "sources": [posting.source for posting in batch],
            "external_ids": [posting.external_id for posting in batch],
            "urls": [posting.url for posting in batch],
            "titles": [posting.title for posting in batch],
            "companies": [posting.company for posting in batch],
            "company_slugs": [posting.company_slug for posting in batch],
            "descriptions": [posting.description for posting in batch],
            "public_slugs": [posting.public_slug for posting in batch],
            "posted": [posting.posted_at for posting in batch],
            "tech": [posting.is_tech for posting in batch],
            "closed": [posting.closed_at for posting in batch],
            "hashes": [posting.content_hash for posting in batch],
        }
        written = [row.added for row in self._database.rows("import_postings", columns)]
        keys = {(posting.source, posting.external_id) for posting in batch}
        self._keys.writelines(f"{json.dumps(key)}\n" for key in keys)
        return BatchReport(sum(written), len(written) - sum(written), len(keys) - len(written))
