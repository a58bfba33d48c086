"""What all commands share: options that name their variable, and the way to settings and database."""

from __future__ import annotations

import logging
import os
import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from freehire_embed.local.defaults import with_database
from freehire_embed.profiles import load_profiles
from freehire_embed.run import resolve_profile
from freehire_embed.settings import Settings
from freehire_embed.store import identities
from freehire_embed.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

Command = TypeVar("Command", bound="Callable[..., Any]")

option = partial(click.option, show_envvar=True)
"""click's, with the variable in the help. An option that is no setting gets FREEHIRE_<COMMAND>_<OPTION>."""

json_option = option("--json", is_flag=True, help="Print JSON for scripts.")


def setting_option(flag: str, variable: str, text: str) -> Callable[[Command], Command]:
    """An option that stands for the setting `variable`; the settings' own rules judge its value."""

    def override(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.ensure_object(dict)[variable] = value

    return option(flag, envvar=variable, help=text, callback=override, expose_value=False)


def read_settings() -> Settings:
    """The settings of the environment and of this command's options."""
    return Settings.from_environment({**os.environ, **click.get_current_context().ensure_object(dict)})


_LONGEST_SECONDS = 100 * 365.25 * 86400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class Age(click.ParamType[float]):
    """A span such as 90s, 30m, 12h, 2d or 1w, in seconds."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not an age; write 90s, 30m, 12h, 2d or 1w", param, ctx)
        seconds = float(match.group(1)) * _UNITS[match.group(2)]
        if seconds > _LONGEST_SECONDS:
            self.fail(f"{value!r} is longer than a hundred years", param, ctx)
        return seconds


class Text(click.ParamType[str]):
    """Text that Postgres and JSON can hold: the bytes of an argument need not be any."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail("is not valid UTF-8; check the encoding of the terminal or script", param, ctx)
        return text


ID = click.IntRange(1, 2**63 - 1)
"""Of a posting or an entry: a bigint of Postgres."""


def identity_followed(settings: Settings, database: Database) -> str:
    """The identity that a command is about which embeds nothing: the target; before there is one, what would be it.

    An EMBED_MODEL left behind in somebody's shell must not hide what the database holds.
    """
    target = identities.target(database, load_profiles(settings.profiles_path))
    if target and settings.model and settings.model != target:
        logger.warning("EMBED_MODEL is %s; the answer is about the target %s", settings.model, target)
    return target or resolve_profile(settings, None).identity


@contextmanager
def opened(settings: Settings) -> Iterator[tuple[Settings, Database]]:
    """An open database, the embedded one where none is named, and the settings with its URL filled in."""
    settings = with_database(settings)
    assert settings.database_url is not None  # noqa: S101 - just filled in
    with Database(settings.database_url) as database:
        yield settings, database
