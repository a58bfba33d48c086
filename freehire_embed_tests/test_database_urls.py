"""What is wrong with an address or a statement is said at once, and never in the password's own letters."""

from __future__ import annotations

import psycopg
import pytest
from pydantic import SecretStr

from freehire_embed.settings import SettingsError
from freehire_embed.store.database import Database
from freehire_embed.store.faults import DatabaseDown, DatabaseMisfit, RowRejected, translate


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:s3c@ret@pw@:zz/x",
        "postgresql://bob:s3c@ret@127.0.0.1:1/x",
        "postgresql://bob:s3c/ret@127.0.0.1:1/x",
        "postgres://bob:123/ret@127.0.0.1:1/x",
        "postgresql://bob:pw@127.0.0.1:ret/x",
    ],
)
def test_a_password_that_is_not_encoded_is_not_quoted(url):
    with pytest.raises(SettingsError, match="percent-encode the password") as refused:
        Database(SecretStr(url))
    assert "ret" not in str(refused.value)
    assert "s3c" not in str(refused.value)
    assert "123" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:s3c%40ret@127.0.0.1:1/x",
        "postgresql://bob@127.0.0.1:1,[::1]:1/x",
        "postgresql://bob@/x?host=/nowhere,/elsewhere",
        "host=@socket user=bob dbname=x",
    ],
)
def test_a_proper_address_is_tried(url):
    with pytest.raises(DatabaseDown):
        Database(SecretStr(url))


def test_what_the_driver_refuses_is_not_taken_for_a_server_that_is_down():
    assert isinstance(translate(psycopg.DataError("text fields cannot contain NUL")), RowRejected)
    assert isinstance(translate(psycopg.ProgrammingError("cannot adapt type")), DatabaseMisfit)
    assert isinstance(translate(psycopg.NotSupportedError("no pipeline")), DatabaseMisfit)
    assert isinstance(translate(psycopg.OperationalError("server closed the connection")), DatabaseDown)
    assert isinstance(translate(psycopg.InterfaceError("connection is closed")), DatabaseDown)
