"""Embedder identities and what each of them means.

The identity is the staleness key of the whole catalogue: it names the model and the shape of the passage.
A profile says how to make and check vectors for it.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from freehire_embed.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import UnionType

MAX_WIDTH = 2000
"""pgvector's limit of an HNSW index over `vector`; a row of it still fits a page, where we keep it."""

Chunking = Literal["v1", "v2"]


@dataclass(frozen=True, slots=True)
class Profile:
    """How one identity is embedded."""

    identity: str
    served: tuple[str, ...]
    """Model ids that the server's /info may report."""
    width: int
    passage_prefix: str = "passage: "
    query_prefix: str = "query: "
    chunking: Chunking = "v1"
    token_limit: int = 512
    """Tokens of one input, specials included; e5 models take 512."""
    pooling: str = "mean"
    dimensions: int | None = None
    """Asked of a server whose model gives shorter vectors on request; None = the model's own width."""
    price_per_million_tokens: float | None = None
    currency: str = "USD"


E5_BASE = "intfloat/multilingual-e5-base"
E5_SMALL = "intfloat/multilingual-e5-small"
DEFAULT_IDENTITY = f"{E5_BASE}-chunked-v1"
LOCAL_IDENTITY = f"{E5_SMALL}-chunked-v2"

BUILT_IN: Mapping[str, Profile] = {
    profile.identity: profile
    for profile in (
        Profile(DEFAULT_IDENTITY, (E5_BASE,), 768),
        Profile(f"{E5_BASE}-chunked-v2", (E5_BASE,), 768, chunking="v2"),
        Profile(f"{E5_SMALL}-chunked-v1", (E5_SMALL,), 384),
        Profile(LOCAL_IDENTITY, (E5_SMALL,), 384, chunking="v2"),
    )
}


def load_profiles(path: Path | None) -> dict[str, Profile]:
    """The built-in profiles and those declared in the TOML file at `path`.

    Raises SettingsError, naming EMBED_PROFILES, the table and the key, when the file is not usable.
    """
    profiles = dict(BUILT_IN)
    if path is None:
        return profiles
    try:
        declared = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"EMBED_PROFILES: cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"EMBED_PROFILES: {path} is not valid TOML: {error}") from error
    tables = declared.get("profiles")
    if not isinstance(tables, dict):
        raise SettingsError(f'EMBED_PROFILES: {path} has no table [profiles."<identity>"]')
    for identity, table in tables.items():
        profiles[identity] = _declared(path, identity, table)
    return profiles


def find_profile(identity: str, profiles: Mapping[str, Profile]) -> Profile:
    """The profile of `identity`; raises SettingsError that lists the known ones."""
    try:
        return profiles[identity]
    except KeyError:
        known = ", ".join(sorted(profiles))
        raise SettingsError(
            f"EMBED_MODEL: unknown embedder identity {identity!r}; known are {known}. "
            "Declare others in the file named by EMBED_PROFILES."
        ) from None


_KEYS: Mapping[str, tuple[type | UnionType, str]] = {
    "served": (list, "a list of model ids"),
    "width": (int, f"a whole number from 1 to {MAX_WIDTH}, the most that an HNSW index takes"),
    "passage_prefix": (str, "a string"),
    "query_prefix": (str, "a string"),
    "chunking": (str, '"v1" or "v2"'),
    "token_limit": (int, "a whole number of at least 32"),
    "pooling": (str, "a string such as mean or cls"),
    "dimensions": (int, "a whole number, the same as width"),
    "price_per_million_tokens": (int | float, "a number of at least 0"),
    "currency": (str, "three capital letters such as USD"),
}


def _declared(path: Path, identity: str, table: object) -> Profile:
    def broken(detail: str) -> SettingsError:
        return SettingsError(f'EMBED_PROFILES: {path}, [profiles."{identity}"]: {detail}')

    if not isinstance(table, dict):
        raise broken("is not a table")
    values = cast("dict[str, Any]", table)
    for key, value in values.items():
        if key not in _KEYS:
            raise broken(f"unknown key {key!r}; known are {', '.join(_KEYS)}")
        kind, wanted = _KEYS[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise broken(f"{key} must be {wanted}")
    for key in ("served", "width"):
        if key not in values:
            raise broken(f"{key} is missing; it must be {_KEYS[key][1]}")
    served = values["served"]
    if not served or not all(isinstance(name, str) and name for name in served):
        raise broken("served must be a list of model ids")
    if not 1 <= values["width"] <= MAX_WIDTH:
        raise broken(f"width must be {_KEYS['width'][1]}")
    if values.get("chunking", "v1") not in ("v1", "v2"):
        raise broken('chunking must be "v1" or "v2"')
    if values.get("token_limit", 512) < 32:
        raise broken("token_limit must be a whole number of at least 32")
    if values.get("dimensions", values["width"]) != values["width"]:
        raise broken("dimensions must be the same as width: the column is as wide as what the server gives")
    if not 0 <= values.get("price_per_million_tokens", 0) < math.inf:
        raise broken(f"price_per_million_tokens must be {_KEYS['price_per_million_tokens'][1]}")
    if not re.fullmatch("[A-Z]{3}", values.get("currency", "USD")):
        raise broken(f"currency must be {_KEYS['currency'][1]}")
    return Profile(identity=identity, **{**values, "served": tuple(served)})
