"""The way to the database: is DATABASE_URL an address, and what refuses the connection?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from freehire_embed.settings import SettingsError
from freehire_embed.store.faults import DatabaseDown, DatabaseMisfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import SecretStr

CONNECT_TIMEOUT_SECONDS = 10
# Only what poolers pass on.
PARAMETERS: dict[str, Any] = {
    "application_name": "freehire_embed",
    "client_encoding": "utf8",
    "connect_timeout": CONNECT_TIMEOUT_SECONDS,
    "keepalives_idle": 30,
}

# libpq gives no SQLSTATE for a refused connection; these words are the server's, the pooler's and libpq's own.
_REFUSALS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("certificate", "does not support SSL", "SSL is not enabled", "SSL required", "sslmode"),
        "check sslmode, sslrootcert and sslcert of DATABASE_URL against the server's certificate",
    ),
    (
        ("authentication failed", "no password supplied", "no such user", "is not permitted to log in"),
        "check user and password of DATABASE_URL",
    ),
    (("does not exist", "no such database"), "check user and database of DATABASE_URL"),
    (("permission denied for database",), "let the owner of the database GRANT CONNECT to this role"),
    (("no pg_hba.conf entry",), "let the server's pg_hba.conf admit this user from here"),
    (
        ("unsupported startup parameter",),
        "the pooler does not pass it on: take it out of DATABASE_URL and the PG* variables",
    ),
)
_SHORTAGES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        (
            "too many connections",
            "remaining connection slots",
            "too many clients",
            "no more connections allowed",
        ),
        "all its connections are taken: raise max_connections, or go through a pooler",
    ),
    (
        ("starting up", "shutting down", "in recovery", "not yet accepting"),
        "it is starting or stopping: try again in a minute",
    ),
)


def checked(url: SecretStr) -> str:
    """`url` as libpq takes it. Raises SettingsError where it is none, without quoting a password."""
    conninfo = url.get_secret_value()
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        # the original text quotes parts of the URL, a password among them
        raise SettingsError(
            "DATABASE_URL is not a connection string; it looks like postgresql://user:password@host:5432/database"
        ) from None
    if conninfo.startswith(("postgresql://", "postgres://")) and _is_torn(parts):
        raise SettingsError(
            "DATABASE_URL: the password (or user) holds a character that ends it too early: percent-encode the "
            "password, such as %40 for @, %2F for /, %3A for : and %25 for %"
        )
    return conninfo


def _is_torn(parts: Mapping[str, Any]) -> bool:
    """Part of a password has landed in the host, port or name, which messages quote."""
    host, port, name = (str(parts.get(key) or "") for key in ("host", "port", "dbname"))
    ports = port.replace(",", "")
    return "@" in host or "@" in name or (ports != "" and not ports.isdecimal())


def refuse_encoding(connection: psycopg.Connection[Any]) -> None:
    """Texts in other encodings lose characters on their way, or are no text at all (SQL_ASCII)."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):
        raise DatabaseMisfit(
            f"DATABASE_URL: the database {connection.info.dbname} is encoded in {encoding} and postings need UTF8: "
            "restore a dump of it into one made by CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )


@contextmanager
def faults_of_connecting() -> Iterator[None]:
    """Why there is no connection: DatabaseMisfit where somebody has to act, else DatabaseDown."""
    try:
        yield
    except psycopg.OperationalError as error:
        message = " ".join(str(error).split())
        cure = _cure(message, _REFUSALS)
        if cure:
            raise DatabaseMisfit(f"DATABASE_URL: {message}; {cure}") from None
        cure = _cure(message, _SHORTAGES) or "is the server running and reachable from here?"
        raise DatabaseDown(f"DATABASE_URL: {message}; {cure}") from None


def _cure(message: str, table: tuple[tuple[tuple[str, ...], str], ...]) -> str | None:
    return next((cure for words, cure in table if any(word in message for word in words)), None)
