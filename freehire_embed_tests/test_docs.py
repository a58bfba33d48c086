"""What the documents say exists, and what exists is in the documents."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest

from freehire_embed.cli import commands
from freehire_embed.profiles import load_profiles
from freehire_embed.settings import RULES, VARIABLES

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")

each_document = pytest.mark.parametrize(
    "path", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS]
)


def command_names(group: click.Group = commands, before: str = "") -> set[str]:
    names = set()
    for name, command in group.commands.items():
        names |= (
            command_names(command, f"{before}{name} ")
            if isinstance(command, click.Group)
            else {before + name}
        )
    return names


def mentioned_commands(text: str) -> set[str]:
    """Of groups with the subcommand, of others the first word alone."""
    groups = {name for name, command in commands.commands.items() if isinstance(command, click.Group)}
    found = re.findall(r"freehire-embed ([a-z][a-z-]*)(?: ([a-z]+))?", text)
    return {f"{first} {second}".strip() if first in groups else first for first, second in found}


@each_document
def test_every_command_that_is_mentioned_exists(path: Path) -> None:
    assert mentioned_commands(path.read_text(encoding="utf-8")) <= command_names()


@each_document
def test_every_variable_that_is_mentioned_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    mentioned = set(re.findall(r"\b(?:EMBED|FREEHIRE)_[A-Z_]*[A-Z]\b", text))
    assert mentioned <= set(VARIABLES)


@each_document
def test_every_file_and_statement_that_is_mentioned_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    folders = r"(?:sql|docs|deploy|benchmarks|freehire_embed|freehire_embed_tests)"
    files = set(re.findall(rf"\b{folders}/[\w/.-]*\.(?:sql|py|md|yaml|json|jsonl)\b", text))
    missing = [name for name in files if not (ROOT / name).exists()]
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    missing += [link for link in links if not (path.parent / link).exists()]
    assert missing == []


@each_document
def test_every_make_target_that_is_mentioned_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    mentioned = set(re.findall(r"(?:`|^)make ([a-z]+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert mentioned <= targets


def test_every_command_is_in_the_readme() -> None:
    assert command_names() <= mentioned_commands((ROOT / "README.md").read_text(encoding="utf-8"))


def test_every_setting_has_a_row_with_its_default_and_bounds() -> None:
    rows = {
        cells[0]: cells[1:]
        for line in SETTINGS.splitlines()
        if line.startswith("| ") and (cells := [cell.strip() for cell in line.strip("|").split("|")])
    }
    assert set(VARIABLES) <= set(rows)
    for rule in RULES.values():
        assert rows[rule.variable][:3] == [str(rule.default), str(rule.floor), str(rule.ceiling)]


def test_the_profiles_of_the_servers_document_are_valid(tmp_path: Path) -> None:
    example = re.search(
        r"```toml\n(.*?)```", (ROOT / "docs" / "servers.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert example
    path = tmp_path / "profiles.toml"
    path.write_text(example[1], encoding="utf-8")
    profiles = load_profiles(path)
    declared = tomllib.loads(example[1])["profiles"]
    assert {profiles[identity].width for identity in declared} == {768, 1024, 1536}
    assert all(re.search(r"-chunked-v[12]$", identity) for identity in declared)


def test_the_example_of_a_profile_file_is_valid(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", SETTINGS, re.DOTALL)
    assert example
    path = tmp_path / "profiles.toml"
    path.write_text(example[1], encoding="utf-8")
    (identity,) = tomllib.loads(example[1])["profiles"]
    assert load_profiles(path)[identity].width == 1024
