"""What an answer without vectors means. The body decides, not the status class.

TEI moved the same complaint between 413, 400 and 422 from release to release, llama.cpp says 500 of a text that is
too long, and OpenAI 429 of an account without money. So the type, the code and the text are read first; the status
speaks only for answers that carry none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from freehire_embed.wire.redaction import redact
from freehire_embed.wire.refusal import Kind, Refusal, retry_after_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NO_EMBEDDER = re.compile(
    r"not an embedding model|not allowed to generate embeddings|(does|do) not support.{0,20}embedding", re.I
)
_DIMENSIONS = re.compile(
    r"matryoshka|dimensions?\b.{0,40}not (currently )?support|not support.{0,30}dimensions", re.I
)
_ENCODING = re.compile(r"encoding_format|base64", re.I)
_BY_WORD = {
    # TEI
    "unhealthy": Kind.UPSTREAM,
    "backend": Kind.BACKEND,
    "overloaded": Kind.BUSY,
    "validation": Kind.ROW,
    "tokenizer": Kind.ROW,
    "empty": Kind.ROW,
    # OpenAI, Azure, LiteLLM, llama.cpp
    "context_length_exceeded": Kind.ROW,
    "exceed_context_size_error": Kind.ROW,
    "string_above_max_length": Kind.ROW,
    "content_filter": Kind.ROW,
    "content_policy_violation": Kind.ROW,
    "max_tokens_per_request": Kind.SIZE,
    "insufficient_quota": Kind.CONFIG,
    "billing_hard_limit_reached": Kind.CONFIG,
    "billing_not_active": Kind.CONFIG,
    "account_deactivated": Kind.CONFIG,
    "budget_exceeded": Kind.CONFIG,
    "invalid_api_key": Kind.CONFIG,
    "model_not_found": Kind.CONFIG,
    "deploymentnotfound": Kind.CONFIG,
    "not_supported_error": Kind.CONFIG,
    "rate_limit_exceeded": Kind.BUSY,
    "throttling_error": Kind.BUSY,
    "unavailable_error": Kind.UPSTREAM,
}
"""By the type or the code of an error, in lower case."""
_BY_WORDING = (
    (Kind.CONFIG, _NO_EMBEDDER),
    (Kind.CONFIG, _DIMENSIONS),
    (
        Kind.CONFIG,
        re.compile(r"model\W.{0,80}(not found|does not exist)|invalid model|no models? loaded", re.I),
    ),
    (Kind.CONFIG, re.compile(r"exceeded your current quota|budget has been exceeded", re.I)),
    (
        Kind.ROW,
        re.compile(
            r"maximum (context|sequence) length|context (length|window|size)|too large to process"
            r"|must have less than|maximum input length|too many tokens"
            r"|contentpolicyviolation|content management policy",
            re.I,
        ),
    ),
)
"""By its text, where type and code say too little; first come, first served."""
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
_BATCH_LIMIT = re.compile(
    r"(?:maximum allowed batch size|batch size.{0,40}larger than|at most) (\d{1,9})(?: (?:items|inputs|texts))?",
    re.I,
)
_MATCHED_CHARACTERS = 600


def read_refusal(status: int, headers: Mapping[str, str], body: bytes, private: Sequence[str]) -> Refusal:
    """The meaning of an answer whose status is not 200, in either dialect.

    `private` are the texts (and the key) that must not be quoted in `detail`.
    """
    words, message = _read_error(headers, body)
    # What a server quotes of a posting must not be taken for its own words.
    own = redact(message, private, _MATCHED_CHARACTERS)
    kind = _kind(status, words, own)
    limit = None
    if status in _ABOUT_A_BODY and kind is not Kind.CONFIG and (found := _BATCH_LIMIT.search(own)):
        kind, limit = Kind.LIMIT, int(found[1])
    # No field of an answer is shown as it came: any may repeat what was sent, or command a terminal.
    title = f"{status} {redact(words[0], private) if words else ''}".rstrip()
    shown = redact(message, private)
    hint = _hint(status, own) if kind is Kind.CONFIG else ""
    return Refusal(
        kind,
        cause=str(status),
        detail=": ".join(part for part in (title, shown, hint) if part),
        retry_after_seconds=retry_after_seconds(headers),
        limit=limit,
        about_encoding=status in _ABOUT_A_BODY and bool(_ENCODING.search(own)),
    )


def _kind(status: int, words: Sequence[str], message: str) -> Kind:
    if 300 <= status < 400 or status in _ABOUT_THE_SET_UP:
        return Kind.CONFIG
    for kind, wording in _BY_WORDING[:2]:
        if wording.search(message):
            return kind
    for word in words:
        if kind_said := _BY_WORD.get(word.lower()):
            return kind_said
    for kind, wording in _BY_WORDING[2:]:
        if wording.search(message):
            return kind
    if kind_said := _BY_STATUS.get(status):
        return kind_said
    return Kind.CONFIG if 400 <= status < 500 else Kind.UPSTREAM


def _hint(status: int, message: str) -> str:
    """What to do about it."""
    if 300 <= status < 400:
        return "redirects are not followed; give EMBED_URL the final address"
    if _NO_EMBEDDER.search(message):
        return (
            "name an embedding model first in `served` (EMBED_PROFILES), or start the server as an embedder"
        )
    if _DIMENSIONS.search(message):
        return "take `dimensions` out of the profile (EMBED_PROFILES) and give it the model's own width"
    if status == 401:
        return "check EMBED_API_KEY"
    if status == 403:
        return "check EMBED_API_KEY, and that its project may use the model"
    if status == 404:
        return "check the path of EMBED_URL, and the model's name in `served` (EMBED_PROFILES)"
    return ""


def _read_error(headers: Mapping[str, str], body: bytes) -> tuple[list[str], str]:
    """The type and the code of an error, the more telling first, and its text."""
    text = body[:4000].decode("utf-8", "replace").strip()
    if text.startswith("<") or "text/html" in headers.get("content-type", ""):
        return [], "an HTML page"
    try:
        error = orjson.loads(body)
    except orjson.JSONDecodeError:
        return [], text
    if not isinstance(error, dict):
        return [], ""
    inner = error.get("error")
    if isinstance(inner, dict):
        error = inner
    words = [error.get(name) for name in ("error_type", "code", "type")]
    said = [error.get(name) for name in ("error", "message", "detail")]
    message = next((value for value in said if value), "")
    return (
        [word[:40] for word in words if isinstance(word, str)],
        message if isinstance(message, str) else orjson.dumps(message).decode(),
    )
