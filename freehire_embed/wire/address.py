"""A URL and a key out of the environment, checked before anything is sent there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit, urlunsplit

from freehire_embed.settings import SettingsError

if TYPE_CHECKING:
    from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class Server:
    """Who is spoken of when something goes wrong."""

    role: str
    """Such as `embedding backend`."""
    name: str
    """The setting and the URL as it may be shown."""

    def __str__(self) -> str:
        return self.name


_VISIBLE = re.compile(r"[\x21-\x7e]+")


def checked_url(url: str, variable: str, key_variable: str, example: str) -> SplitResult:
    """The parts of `url`; raises SettingsError, naming `variable` and quoting nothing, when it is unusable."""
    if not _VISIBLE.fullmatch(url):
        raise SettingsError(f"{variable}: has spaces or other characters that must be percent-encoded")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        # The resolver encodes it so, and fails with an error of its own where it cannot.
        (host or "").encode("idna")
    except ValueError:
        raise SettingsError(f"{variable}: its host or port cannot be read") from None
    if "@" in parts.netloc:
        raise SettingsError(
            f"{variable}: has a user name or password in it; put the key into {key_variable} instead"
        )
    if parts.scheme not in ("http", "https"):
        raise SettingsError(f"{variable}: must begin with http:// or https://, as in {example}")
    if not host:
        raise SettingsError(f"{variable}: names no host, as in {example}")
    return parts


def checked_key(api_key: SecretStr | None, variable: str) -> str | None:
    """The key itself; raises SettingsError when no header can carry it."""
    key = api_key.get_secret_value() if api_key else None
    if key and not _VISIBLE.fullmatch(key):
        raise SettingsError(f"{variable}: must be printable ASCII without spaces to fit into a header")
    return key


def shown(parts: SplitResult) -> str:
    """For people: without query and fragment, which may carry a token."""
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
