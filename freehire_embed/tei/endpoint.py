"""EMBED_URL and EMBED_API_KEY -> where to ask, and what to show of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlunsplit

from freehire_embed.wire.address import Server, checked_key, checked_url, shown

if TYPE_CHECKING:
    from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class Endpoint:
    embed: str = field(repr=False)
    """Posted to exactly as given: the endpoint itself, or a server root, which takes POST as well."""
    info: str = field(repr=False)
    server: Server
    """For people: without query and fragment, which may carry a token."""
    api_key: str | None = field(repr=False)

    @staticmethod
    def of(url: str, api_key: SecretStr | None) -> Endpoint:
        """Raises SettingsError, without quoting what might be a secret, when the URL or key is unusable."""
        parts = checked_url(url, "EMBED_URL", "EMBED_API_KEY", "http://127.0.0.1:8090/embed")
        beside = parts.path.rstrip("/").removesuffix("/embed")
        return Endpoint(
            embed=url,
            info=urlunsplit((parts.scheme, parts.netloc, f"{beside}/info", parts.query, "")),
            server=Server("embedding backend", f"EMBED_URL {shown(parts)}"),
            api_key=checked_key(api_key, "EMBED_API_KEY"),
        )
