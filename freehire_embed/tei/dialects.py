"""Two ways to say the same: TEI's /embed, and the OpenAI form that nearly everybody else understands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import orjson

from freehire_embed.tei.openai_vectors import read_embeddings
from freehire_embed.tei.vectors import Rows, read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from freehire_embed.profiles import Profile
    from freehire_embed.settings import Api
    from freehire_embed.wire.refusal import Refusal


class Dialect(Protocol):
    def ask(self, rows: Sequence[bytes]) -> bytes:
        """The body of a request; a row is a text as a JSON string."""

    def read(self, body: bytes, headers: Mapping[str, str], count: int) -> Rows | Refusal:
        """The vectors in the body of a 200."""

    def learn(self, refusal: Refusal) -> bool:
        """Whether the same rows, asked in other words, may be taken: the refusal was of the form."""


def dialect_of(api: Api, profile: Profile) -> Dialect:
    return OpenAiForm(profile) if api == "openai" else TeiForm(profile)


class TeiForm:
    """`{"inputs": [...], "truncate": true}` -> `[[...], ...]`."""

    def __init__(self, profile: Profile) -> None:
        self._width = profile.width
        # A row over the model's limit is cut by the server, whatever its own default (which changed in 1.9).
        options = b',"truncate":true'
        if profile.dimensions is not None:
            options += b',"dimensions":%d' % profile.dimensions
        self._tail = b"]" + options + b"}"

    def ask(self, rows: Sequence[bytes]) -> bytes:
        return b"".join((b'{"inputs":[', b",".join(rows), self._tail))

    def read(self, body: bytes, headers: Mapping[str, str], count: int) -> Rows | Refusal:
        return read_rows(body, count, self._width, told_tokens(headers))

    def learn(self, refusal: Refusal) -> bool:  # noqa: ARG002 - there is one form only
        return False


class OpenAiForm:
    """`{"model": ..., "input": [...]}` -> `{"data": [{"index": 0, "embedding": ...}, ...], "usage": {...}}`."""

    def __init__(self, profile: Profile) -> None:
        self._width = profile.width
        self._head = b'{"model":' + orjson.dumps(profile.served[0])
        if profile.dimensions is not None:
            self._head += b',"dimensions":%d' % profile.dimensions
        self._base64 = True
        """40 % of the bytes; asked for until somebody refuses it."""

    def ask(self, rows: Sequence[bytes]) -> bytes:
        how = b',"encoding_format":"base64","input":[' if self._base64 else b',"input":['
        return b"".join((self._head, how, b",".join(rows), b"]}"))

    def read(self, body: bytes, headers: Mapping[str, str], count: int) -> Rows | Refusal:
        return read_embeddings(body, count, self._width, told_tokens(headers))

    def learn(self, refusal: Refusal) -> bool:
        refused = self._base64 and refusal.about_encoding
        if refused:
            self._base64 = False
        return refused


def told_tokens(headers: Mapping[str, str]) -> int | None:
    header = headers.get("x-compute-tokens", "")
    return int(header) if header.isascii() and header.isdigit() and len(header) < 10 else None
