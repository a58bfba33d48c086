"""What an answer without vectors means. The body decides, not the status class.

TEI moved the same complaint between 413, 400 and 422 from release to release, so the error type and the text
are read first; the status speaks only for answers that carry neither.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from freehire_embed.wire.redaction import redact
from freehire_embed.wire.refusal import Kind, Refusal, retry_after_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BY_TYPE = {
    "unhealthy": Kind.UPSTREAM,
    "backend": Kind.BACKEND,
    "overloaded": Kind.BUSY,
    "validation": Kind.ROW,
    "tokenizer": Kind.ROW,
    "empty": Kind.ROW,
}
_BY_STATUS = {
    400: Kind.ROW,
    408: Kind.UPSTREAM,
    413: Kind.SIZE,
    422: Kind.ROW,
    424: Kind.BACKEND,
    425: Kind.UPSTREAM,
    429: Kind.BUSY,
}
_ABOUT_A_BODY = frozenset({400, 413, 422})
_ABOUT_THE_SET_UP = frozenset({401, 403, 404, 405, 415})
_BATCH_LIMIT = re.compile(r"maximum allowed batch size (\d{1,9})", re.IGNORECASE)


def read_refusal(status: int, headers: Mapping[str, str], body: bytes, private: Sequence[str]) -> Refusal:
    """The meaning of an answer whose status is not 200.

    `private` are the texts (and the key) that must not be quoted in `detail`.
    """
    error_type, message = _read_error(headers, body)
    kind = _kind(status, error_type, message)
    limit = None
    if status in _ABOUT_A_BODY and (found := _BATCH_LIMIT.search(message)):
        kind, limit = Kind.LIMIT, int(found[1])
    # No field of an answer is shown as it came: any may repeat what was sent, or command a terminal.
    title = f"{status} {redact(error_type, private)}".rstrip()
    shown = redact(message, private) or _hint(status)
    return Refusal(
        kind,
        cause=str(status),
        detail=f"{title}: {shown}" if shown else title,
        retry_after_seconds=retry_after_seconds(headers),
        limit=limit,
    )


def _kind(status: int, error_type: str, message: str) -> Kind:
    if 300 <= status < 400 or status in _ABOUT_THE_SET_UP:
        return Kind.CONFIG
    if "not an embedding model" in message.lower():
        return Kind.CONFIG
    if kind := _BY_TYPE.get(error_type.lower()) or _BY_STATUS.get(status):
        return kind
    return Kind.CONFIG if 400 <= status < 500 else Kind.UPSTREAM


def _hint(status: int) -> str:
    if status in (401, 403):
        return "check EMBED_API_KEY"
    if 300 <= status < 400:
        return "redirects are not followed; give EMBED_URL the final address"
    return ""


def _read_error(headers: Mapping[str, str], body: bytes) -> tuple[str, str]:
    text = body[:4000].decode("utf-8", "replace").strip()
    if text.startswith("<") or "text/html" in headers.get("content-type", ""):
        return "", "an HTML page"
    try:
        error = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "", text
    if not isinstance(error, dict):
        return "", ""
    error_type = error.get("error_type") or error.get("type")
    message = error.get("error") or error.get("message")
    return (
        error_type[:40] if isinstance(error_type, str) else "",
        message if isinstance(message, str) else "",
    )
