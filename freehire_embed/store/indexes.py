"""Indexes by what they are: table, columns in their order, operators, predicate. Names tell nothing.

An existing database may have one of ours under another name, another one under our name, or the invalid rest of a
build that failed under any.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from psycopg.sql import SQL, Identifier

from freehire_embed.queries import SQL_DIR, query
from freehire_embed.store.database import fetch, transaction
from freehire_embed.store.faults import DatabaseDown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from freehire_embed.store.database import Connection

logger = logging.getLogger(__name__)

_DEFINITION = re.compile(
    r"CREATE (?:UNIQUE )?INDEX (?P<name>\"(?:[^\"]|\"\")+\"|\S+) ON (?:ONLY )?(?:\w+\.)?(?P<table>\w+) "
    r"USING (?P<keys>.*?)(?: INCLUDE \([^)]*\))?(?: NULLS NOT DISTINCT)?(?: WITH \([^)]*\))?(?: TABLESPACE \S+)?"
    r"(?P<where> WHERE .*)?"
)
_OPERATORS = re.compile(r"\b\w+\.(vector_\w+_ops)\b")


@dataclass(frozen=True, slots=True)
class Index:
    """An index as it stands in a database, or as it should."""

    name: str
    table: str
    shape: str
    """Keys, operators and predicate: equal for indexes that serve the same. Storage parameters do not count."""
    valid: bool = True
    builder: int | None = None
    """Process id of the session that is building it now."""


@cache
def expected() -> dict[str, Index]:
    """What the migrations make, by name: schema.sql has it in the words of Postgres."""
    lines = (SQL_DIR / "schema.sql").read_text(encoding="utf-8").splitlines()
    found = [_parse(line.rstrip(";")) for line in lines if line.startswith("CREATE INDEX")]
    return {index.name: index for index in found}


def present(connection: Connection) -> list[Index]:
    """Every index on the tables that we have indexes on, in the order of their names."""
    tables = sorted({index.table for index in expected().values()})
    found = []
    for row in fetch(connection, "index_definitions", {"tables": tables}):
        index = _parse(row.definition)
        found.append(Index(row.name, index.table, index.shape, row.valid, row.builder))
    return found


def serving(wanted: Index, found: Iterable[Index]) -> list[Index]:
    """Those of `found` that do what `wanted` does, valid or not."""
    return [index for index in found if (index.table, index.shape) == (wanted.table, wanted.shape)]


def ensure(connection: Connection, name: str, definition: bytes) -> bool:
    """Sees to one valid index of the shape that `name` is to have; True when it had to be built.

    `definition` is the text of its migration. Writers go on meanwhile. What a failed build left behind is dropped;
    an index of our name and of another shape is replaced. Raises DatabaseDown while another session builds it.
    """
    wanted = expected()[name]
    found = present(connection)
    same = serving(wanted, found)
    for index in same:
        if index.builder is not None:
            raise DatabaseDown(
                f"index {index.name} is being built by pid {index.builder}: try again when it is done"
            )
        if not index.valid:
            logger.warning("index %s is left over from a build that failed; dropping it", index.name)
            drop(connection, index.name)
    valid = next((index.name for index in same if index.valid), None)
    built = valid is None
    if valid is None:
        valid = _free_name(connection, name)
        create(connection, definition, name, valid)
    elif valid != name:
        logger.info("index %s does what %s is for", valid, name)
    wrong = next((index for index in found if index.name == name and index not in same), None)
    if wrong is not None:
        logger.warning("index %s was another one (%s); replacing it", name, wrong.shape)
        drop(connection, name)
        with transaction(connection):
            connection.execute(_statement("index_rename", old=valid, new=name))
    return built


def create(connection: Connection, definition: bytes, name: str, as_name: str | None = None) -> None:
    """Builds the index of a migration concurrently, under another name if wished."""
    schema = fetch(connection, "index_operators")
    text = definition.decode().replace("${vector}", schema[0].schema if schema else "public")
    if as_name is not None:
        text = text.replace(f"if not exists {name}", f"if not exists {as_name}")
    connection.execute(text.encode())


def drop(connection: Connection, name: str) -> None:
    """Drops an index of `public` without blocking anyone."""
    connection.execute(_statement("index_drop", name=name))


def _free_name(connection: Connection, name: str) -> str:
    taken = fetch(connection, "index_name_taken", {"name": name})[0].taken
    return f"{name}_new" if taken else name


def _statement(file: str, **names: str) -> bytes:
    composed = SQL(query(file).decode()).format(**{key: Identifier(name) for key, name in names.items()})
    return composed.as_bytes(None)


def _parse(definition: str) -> Index:
    match = _DEFINITION.fullmatch(definition)
    if match is None:
        return Index(definition, "", definition)
    keys = _OPERATORS.sub(r"\1", match["keys"])
    return Index(match["name"].strip('"'), match["table"], keys + (match["where"] or ""))
