"""What `--help` promises: an example first, and the variable of every option."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from freehire_embed.cli import commands
from freehire_embed.settings import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that call it."""
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from leaves(child, (*path, name))
    else:
        yield path, command


COMMANDS = list(leaves(commands))


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_help_starts_with_an_example_of_the_command_itself_and_names_each_variable(
    path: tuple[str, ...], command: click.Command
) -> None:
    shown = CliRunner().invoke(commands, [*path, "--help"], prog_name="freehire-embed").output
    first = next(line for line in shown.splitlines()[1:] if line.strip())
    assert first.strip().startswith(f"Example: freehire-embed {' '.join(path)}")
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.show_envvar, option.opts
            assert option.help, option.opts


def test_an_option_that_stands_for_a_setting_names_a_setting_that_exists() -> None:
    named = {
        str(option.envvar)
        for _, command in COMMANDS
        for option in command.params
        if isinstance(option, click.Option) and option.envvar
    }
    assert named
    assert named <= set(VARIABLES)


def test_every_command_has_a_line_in_the_list() -> None:
    for path, command in COMMANDS:
        assert command.short_help, path
