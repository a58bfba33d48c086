"""EMBED_URL, EMBED_API and EMBED_API_KEY -> where to ask in which dialect, and what to show of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlunsplit

from freehire_embed.settings import SettingsError
from freehire_embed.wire.address import Server, checked_key, checked_url, shown

if TYPE_CHECKING:
    from pydantic import SecretStr

    from freehire_embed.settings import Api


@dataclass(frozen=True, slots=True)
class Endpoint:
    api: Api
    embed: str = field(repr=False)
    """Posted to exactly as given: TEI's endpoint or root, which takes POST as well, or .../v1/embeddings."""
    about: str = field(repr=False)
    """Beside it: TEI's /info, or the OpenAI form's /models."""
    server: Server
    """For people: without query and fragment, which may carry a token."""
    api_key: str | None = field(repr=False)

    @property
    def about_name(self) -> str:
        return "/info" if self.api == "tei" else "/models"

    @staticmethod
    def of(url: str, api_key: SecretStr | None, api: Api | None = None) -> Endpoint:
        """`api` None = by the path: `.../v1` and `.../embeddings` are the OpenAI form, all others are TEI's.

        Raises SettingsError, without quoting what might be a secret, when the URL or key is unusable.
        """
        parts = checked_url(url, "EMBED_URL", "EMBED_API_KEY", "http://127.0.0.1:8090/embed")
        path = parts.path.rstrip("/")
        openai = path.endswith(("/v1", "/embeddings"))
        if openai and api == "tei" and not path.endswith("/embed"):
            raise SettingsError(
                f"EMBED_API=tei: EMBED_URL ends in {path.rpartition('/')[2]}, which is the OpenAI form: "
                "unset EMBED_API"
            )
        beside = path.removesuffix("/embed")
        embed, about = url, f"{beside}/info"
        if openai or api == "openai":
            if not path.endswith("/embeddings"):
                path = f"{path}/embeddings" if path.endswith("/v1") else f"{path}/v1/embeddings"
                embed = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
            about = f"{path.removesuffix('/embeddings')}/models"
        return Endpoint(
            api="openai" if openai or api == "openai" else "tei",
            embed=embed,
            about=urlunsplit((parts.scheme, parts.netloc, about, parts.query, "")),
            server=Server("embedding backend", f"EMBED_URL {shown(parts)}"),
            api_key=checked_key(api_key, "EMBED_API_KEY"),
        )
