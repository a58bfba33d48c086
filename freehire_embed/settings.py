"""Environment -> frozen Settings. The only place that reads environment variables.

A number that cannot be parsed falls back to its default with a warning that names the variable; one below
its floor or above its ceiling becomes the bound silently (`doctor` shows both the given and the used value).
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from pydantic import SecretStr

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)

DEFAULT_EMBED_URL = "http://127.0.0.1:8090/embed"


Api = Literal["tei", "openai"]


class SettingsError(Exception):
    """A setting that cannot be used; the text names it and the way out. Exit code 2."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One numeric setting: its default, its floor and ceiling, and why the floor is where it is."""

    variable: str
    default: int
    floor: int
    ceiling: int
    """More than anyone needs, and less than what a clock, a query or a thread pool cannot take."""
    why: str

    def bounded(self, number: int) -> int:
        return min(max(number, self.floor), self.ceiling)


RULES: Mapping[str, Rule] = {
    rule.variable: rule
    for rule in (
        Rule("EMBED_BATCH_SIZE", 500, 1, 100_000, "a wave holds at least one posting"),
        Rule("EMBED_CONCURRENCY", 1, 1, 1_000, "one request has to be in flight"),
        Rule("EMBED_LEASE_SECONDS", 300, 5, 604_800, "a renewal every third of it must fit in"),
        Rule("EMBED_CALL_TIMEOUT_SECONDS", 600, 0, 604_800, "0 = a wave may take for ever"),
        Rule("EMBED_ATTEMPT_TIMEOUT_SECONDS", 60, 1, 86_400, "a request needs some time"),
        Rule("EMBED_MAX_ATTEMPTS", 3, 1, 1_000, "the first failure is the earliest dead letter"),
        Rule("EMBED_UPSTREAM_GRACE_DAYS", 14, 0, 36_500, "0 = an upstream fault never dead-letters"),
        Rule("EMBED_LANES", 3, 1, 1_000, "one run has to be allowed"),
        Rule("EMBED_WAVES_PER_RUN", 100, 1, 1_000_000, "a run works at least one wave"),
        Rule("EMBED_WARMUP_SECONDS", 30, 0, 86_400, "0 = do not wait for a server that is starting"),
    )
}

VARIABLES = (
    "DATABASE_URL",
    "EMBED_URL",
    "EMBED_API",
    "EMBED_API_KEY",
    "EMBED_MODEL",
    "EMBED_PROFILES",
    "EMBED_VERIFY_MODEL",
    "EMBED_ADAPTIVE",
    "FREEHIRE_STATE",
    *RULES,
)
TRUE_WORDS = ("1", "true", "yes", "on")
FALSE_WORDS = ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a run needs to know; durations are in the unit that the name ends with."""

    database_url: SecretStr | None
    """None = the embedded Postgres of the extra `local`."""
    embed_url: str | None
    """None = the local model server beside an embedded database, else DEFAULT_EMBED_URL."""
    api: Api | None
    """How the server is spoken to; None = by the path of its URL."""
    api_key: SecretStr | None
    model: str | None
    """None = the deployment's target."""
    profiles_path: Path | None
    local: bool
    """DATABASE_URL was not given: the embedded defaults apply, also once their URLs are filled in."""
    state_dir: Path
    """Where the embedded Postgres and Dagster keep their files."""
    batch_size: int
    concurrency: int
    lease_seconds: int
    call_timeout_seconds: int
    attempt_timeout_seconds: int
    max_attempts: int
    upstream_grace_days: int
    lanes: int
    waves_per_run: int
    warmup_seconds: int
    verify_model: bool
    adaptive: bool
    """Concurrency is found, between 1 and `concurrency`; False = `concurrency` whatever the server's queue."""

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
        """Settings of `environment` (default: this process's)."""
        env = os.environ if environment is None else environment
        database_url = _text(env, "DATABASE_URL")
        api_key = _text(env, "EMBED_API_KEY")
        profiles = _text(env, "EMBED_PROFILES")
        return Settings(
            database_url=SecretStr(database_url) if database_url else None,
            embed_url=_text(env, "EMBED_URL"),
            api=_api(env),
            api_key=SecretStr(api_key) if api_key else None,
            model=_text(env, "EMBED_MODEL"),
            profiles_path=Path(profiles) if profiles else None,
            local=database_url is None,
            state_dir=Path(_text(env, "FREEHIRE_STATE") or ".freehire").absolute(),
            batch_size=_number(env, "EMBED_BATCH_SIZE"),
            concurrency=_number(env, "EMBED_CONCURRENCY"),
            lease_seconds=_number(env, "EMBED_LEASE_SECONDS"),
            call_timeout_seconds=_number(env, "EMBED_CALL_TIMEOUT_SECONDS"),
            attempt_timeout_seconds=_number(env, "EMBED_ATTEMPT_TIMEOUT_SECONDS"),
            max_attempts=_number(env, "EMBED_MAX_ATTEMPTS"),
            upstream_grace_days=_number(env, "EMBED_UPSTREAM_GRACE_DAYS"),
            lanes=_number(env, "EMBED_LANES"),
            waves_per_run=_number(env, "EMBED_WAVES_PER_RUN"),
            warmup_seconds=_number(env, "EMBED_WARMUP_SECONDS"),
            verify_model=_flag(env, "EMBED_VERIFY_MODEL", default=True),
            adaptive=_flag(env, "EMBED_ADAPTIVE", default=True),
        )


def _text(env: Mapping[str, str], variable: str) -> str | None:
    return env.get(variable, "").strip() or None


def _api(env: Mapping[str, str]) -> Api | None:
    given = (_text(env, "EMBED_API") or "").lower()
    if given not in ("", "tei", "openai"):
        # A wrong guess here would be told as a fault of the server's.
        raise SettingsError(
            f"EMBED_API={given!r} is neither tei nor openai; unset it to go by EMBED_URL's path"
        )
    return cast("Api", given) if given else None


def _number(env: Mapping[str, str], variable: str) -> int:
    rule = RULES[variable]
    given = _text(env, variable)
    if given is None:
        return rule.default
    try:
        return rule.bounded(int(given))
    except ValueError:
        logger.warning("%s=%r is not a whole number; using the default %d", variable, given, rule.default)
        return rule.default


def _flag(env: Mapping[str, str], variable: str, *, default: bool) -> bool:
    given = (_text(env, variable) or "").lower()
    if given in TRUE_WORDS:
        return True
    if given in FALSE_WORDS:
        return False
    if given:
        logger.warning("%s=%r is neither true nor false; using the default %s", variable, given, default)
    return default
