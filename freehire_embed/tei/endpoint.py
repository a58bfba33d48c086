"""EMBED_URL and EMBED_API_KEY -> where to ask, and what to show of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from freehire_embed.settings import SettingsError

if TYPE_CHECKING:
    from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class Endpoint:
    embed: str = field(repr=False)
    """Posted to exactly as given: the endpoint itself, or a server root, which takes POST as well."""
    info: str = field(repr=False)
    shown: str
    """For people: without query and fragment, which may carry a token."""
    api_key: str | None = field(repr=False)

    @staticmethod
    def of(url: str, api_key: SecretStr | None) -> Endpoint:
        """Raises SettingsError, without quoting what might be a secret, when the URL or key is unusable."""
        if not re.fullmatch(r"[\x21-\x7e]+", url):
            raise SettingsError("EMBED_URL: has spaces or other characters that must be percent-encoded")
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
            # The resolver encodes it so, and fails with an error of its own where it cannot.
            (host or "").encode("idna")
        except ValueError:
            raise SettingsError("EMBED_URL: its host or port cannot be read") from None
        if "@" in parts.netloc:
            raise SettingsError(
                "EMBED_URL: has a user name or password in it; put the key into EMBED_API_KEY instead"
            )
        if parts.scheme not in ("http", "https"):
            raise SettingsError(
                "EMBED_URL: must begin with http:// or https://, as in http://127.0.0.1:8090/embed"
            )
        if not host:
            raise SettingsError("EMBED_URL: names no host, as in http://127.0.0.1:8090/embed")
        key = api_key.get_secret_value() if api_key else None
        if key and not re.fullmatch(r"[\x21-\x7e]+", key):
            raise SettingsError("EMBED_API_KEY: must be printable ASCII without spaces to fit into a header")
        beside = parts.path.rstrip("/").removesuffix("/embed")
        return Endpoint(
            embed=url,
            info=urlunsplit((parts.scheme, parts.netloc, f"{beside}/info", parts.query, "")),
            shown=urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")),
            api_key=key,
        )
