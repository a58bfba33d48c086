"""Where the lines go: hostile text acts on no terminal, and an output that takes no more stops no work."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehire_embed.drill.faulty_tei import FaultyTei
from freehire_embed.printable import printable
from freehire_embed_tests.catalogue import add_posting, count
from freehire_embed_tests.conftest import WIDTH
from freehire_embed_tests.deployment import SERVED, environment
from freehire_embed_tests.test_cli import cli, process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg

ACTIVE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202etxt.exe\u2066\r\nforged: line\x00\u2028\x7f".replace("\0", "")
"""What a posting may hold to act on a terminal; Postgres takes no NUL."""


@pytest.fixture
def deployed(database_url: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    with FaultyTei(width=WIDTH, model_id=SERVED) as tei:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
        yield {**kept, "LANG": "C.UTF-8", **environment(database_url, tei.url, tmp_path)}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "freehire_embed", *arguments]


def harmless(shown: str) -> bool:
    return not any(unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") for sign in shown.replace("\n", ""))


@given(st.text(st.characters()))
def test_nothing_printable_is_changed_and_nothing_active_is_left(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in shown)
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


def test_joiners_that_words_and_emoji_need_are_kept() -> None:
    for text in ("👩\u200d💻", "می\u200cخواهم", "e\u0301", "  two"):
        assert printable(text) == text


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "bridges"],
        ["similar", "1"],
        ["dead", "list"],
        ["dead", "show", "1000"],
    ],
)
def test_hostile_text_does_nothing_to_a_terminal_in_any_command(
    deployed: dict[str, str], sql: psycopg.Connection, arguments: list[str]
) -> None:
    for number in range(3):
        add_posting(
            sql, title=f"T {ACTIVE}", company=f"C{number} {ACTIVE}", company_slug=f"c-{number}",
            url=f"https://jobs.example/{ACTIVE}", description=f"<p>d{number} {ACTIVE}</p>", source=f"s {ACTIVE}",
        )  # fmt: skip
    cli(deployed, "run")
    sql.execute(
        "insert into semantic_outbox (id, job_id, target_model, failed_at, last_error, attempts)"
        " overriding system value select 1000, 1, target_model, now(), %s, 5 from semantic_runs limit 1",
        [f"refused {ACTIVE}"],
    )
    result = cli(deployed, *arguments)
    assert harmless(result.stdout + result.stderr), result.stdout + result.stderr
    assert not any(line.startswith("forged") for line in result.stdout.splitlines())
    as_json = cli(deployed, *arguments, "--json")
    assert harmless(as_json.stdout)
    assert json.loads(as_json.stdout)


@pytest.mark.parametrize("arguments", [["doctor"], ["run"], ["search", "bridges"]])
def test_the_hostile_name_of_a_server_does_nothing_to_a_terminal(
    database_url: str, tmp_path: Path, arguments: list[str]
) -> None:
    with FaultyTei(width=WIDTH, model_id=f"evil {ACTIVE}") as tei:
        result = cli(environment(database_url, tei.url, tmp_path), *arguments)
    assert harmless(result.stdout + result.stderr), result.stdout + result.stderr
    assert (result.returncode == 0) is (arguments[0] == "search")


def test_json_keeps_the_value_that_it_makes_harmless(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    url = f"https://jobs.example/{ACTIVE}é北😀"
    add_posting(sql, url=url)
    assert process(deployed, "run").returncode == 0
    for encoding in ("utf-8", "latin-1"):
        shown = process({**deployed, "PYTHONIOENCODING": encoding}, "search", "bridges", "--json").stdout
        assert json.loads(shown)[0]["url"] == url


def test_a_bad_line_of_a_file_does_nothing_to_a_real_terminal(
    deployed: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({f"na\x1b[2Jme{ACTIVE}": 1}) + "\n")
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            command("import", str(path)), env=deployed, stdout=slave, stderr=slave, timeout=60
        )
        os.close(slave)
        shown = b""
        while piece := _read(master):
            shown += piece
    finally:
        os.close(master)
    assert done.returncode == 1
    assert b"has no field title" in shown
    assert b"na\\x1b[2Jme" in shown
    assert b"\x1b[2J" not in shown
    assert b"\x1b]" not in shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side of a terminal is gone
        return b""


def run_into(deployed: dict[str, str], *arguments: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(*arguments), env=deployed, timeout=60, **streams)


def closed_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def full_disk() -> int:
    return os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize(("broken", "reason"), [(full_disk, "No space left"), (closed_pipe, "Broken pipe")])
@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_run_whose_result_cannot_be_shown_finishes_its_work_and_says_so(
    deployed: dict[str, str], sql: psycopg.Connection, broken: Any, reason: str, json_too: list[str]
) -> None:
    for _ in range(6):
        add_posting(sql)
    out = broken()
    done = run_into(deployed, "run", *json_too, stdout=out, stderr=subprocess.PIPE)
    os.close(out)
    assert count(sql, "select count(*) from jobs where semantic_embedded_model is not null") == 6
    assert done.returncode == 1
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("freehire-embed: standard output did not take all of the result")
    assert reason in last
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("broken", [full_disk, closed_pipe])
def test_a_run_whose_log_cannot_be_written_finishes_its_work(
    deployed: dict[str, str], sql: psycopg.Connection, broken: Any
) -> None:
    for _ in range(6):
        add_posting(sql)
    err = broken()
    done = run_into(deployed, "run", "--json", "--batch-size", "2", stdout=subprocess.PIPE, stderr=err)
    os.close(err)
    assert json.loads(done.stdout)["outcomes"]["indexed"] == 6
    assert done.returncode == 0
    both = run_into(deployed, "status", stdout=(out := broken()), stderr=(err := broken()))
    os.close(out)
    os.close(err)
    assert both.returncode == 1


@pytest.mark.parametrize("broken", [full_disk, closed_pipe])
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["plan", "--help"]])
def test_a_help_that_cannot_be_shown_ends_without_a_traceback(
    deployed: dict[str, str], arguments: list[str], broken: Any
) -> None:
    out = broken()
    done = run_into(deployed, *arguments, stdout=out, stderr=subprocess.PIPE)
    os.close(out)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1


def test_a_run_in_a_terminal_that_is_gone_finishes_its_work(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    for _ in range(3):
        add_posting(sql)
    master, slave = pty.openpty()
    os.close(master)
    done = run_into(deployed, "run", stdout=slave, stderr=slave)
    os.close(slave)
    assert done.returncode == 1
    assert count(sql, "select count(*) from jobs where semantic_embedded_model is not null") == 3


def test_characters_that_the_encoding_lacks_are_written_out(
    deployed: dict[str, str], sql: psycopg.Connection
) -> None:
    add_posting(sql, title="Bäcker 北京", url="https://jobs.example/😀")
    latin = {**deployed, "PYTHONIOENCODING": "latin-1"}
    assert process(deployed, "run").returncode == 0
    done = subprocess.run(command("search", "bread"), env=latin, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Bäcker \\u5317\\u4eac".encode("latin-1") in done.stdout
    assert rb"https://jobs.example/\U0001f600" in done.stdout
