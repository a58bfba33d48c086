"""Certificates that are not to be trusted are the configuration's fault; good ones are taken."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from freehire_embed.domain import HaltKind
from freehire_embed.drill.faulty_tei import vector_for
from freehire_embed.tei import ConfigFault
from freehire_embed.wire import http
from freehire_embed_tests.tei_bench import TINY, Asked, answering, client, info

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AUTHORITY = trustme.CA()
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture(autouse=True)
def _trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """SSL_CERT_FILE names AUTHORITY."""
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    http._tls.cache_clear()
    yield
    http._tls.cache_clear()


def tls(authority: trustme.CA, name: str = "127.0.0.1", **times: datetime) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, **times).configure_cert(context)
    return context


def answer(asked: Asked) -> tuple[int, Any]:
    if not asked.body:
        return 200, info()
    return 200, [vector_for(text, TINY.width, TINY.served[0]).tolist() for text in asked.inputs]


def test_a_certificate_of_the_authority_in_ssl_cert_file_is_trusted() -> None:
    with answering(answer, tls(AUTHORITY)) as url, client(url, profile=TINY) as embedder:
        embedder.preflight()
        assert embedder.embed(["passage: one"]).halt is None


@pytest.mark.parametrize(
    ("context", "told"),
    [
        (tls(trustme.CA()), "SSL_CERT_FILE"),
        (tls(AUTHORITY, "other.example"), "name that the certificate is made out for"),
        (tls(AUTHORITY, not_after=YESTERDAY, not_before=YESTERDAY - timedelta(days=9)), "expired.*renew it"),
        (tls(AUTHORITY, not_before=datetime.now(UTC) + timedelta(days=1)), "not yet valid.*clock"),
    ],
)
def test_a_certificate_that_cannot_be_trusted_is_a_config_fault_that_says_what_to_do(
    context: ssl.SSLContext, told: str
) -> None:
    with answering(answer, context) as url, client(url, profile=TINY, warmup_seconds=30) as embedder:
        with pytest.raises(ConfigFault, match=rf"EMBED_URL {url}.*certificate.*{told}"):
            embedder.preflight()
        halt = embedder.embed(["passage: one"]).halt
        assert halt is not None
        assert halt.kind is HaltKind.CONFIG
        with pytest.raises(ConfigFault, match=told):
            embedder.embed_query("one")


def test_a_url_that_asks_a_plain_server_for_tls_is_told_to_begin_otherwise() -> None:
    with (
        answering(answer) as url,
        client(url.replace("http:", "https:"), warmup_seconds=30) as embedder,
        pytest.raises(ConfigFault, match="begin the URL with http://"),
    ):
        embedder.preflight()
