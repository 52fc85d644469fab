"""The command line where little is as it should be: its streams, its surroundings, its server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.fakes.server import PATIENCE, program_at
from tests.fakes.terminal import HOLDFAST, SILENT, SIZE_TELLER, holdfast, person_at

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with program_at() as (_, url):
        yield url


def shell(line: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run holdfast from a line of shell, in which it is ``"$@"``."""
    return subprocess.run(
        ["sh", "-c", line, "sh", *HOLDFAST, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **SILENT},
        timeout=PATIENCE,
        check=False,
        cwd=cwd,
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(closed: str, tmp_path: Path) -> None:
    """Started by a daemon that has closed everything, it still does what it is asked to."""
    done = shell(
        f'"$@" {closed}', "run", "--", "sh", "-c", f"echo out; echo err >&2; : >{tmp_path}/ran; exit 3"
    )

    assert done.returncode == 3
    assert (tmp_path / "ran").exists()
    assert done.stdout == (b"" if ">&-" in closed.replace("2>&-", "") else b"out\n")
    assert done.stderr == (b"" if "2>&-" in closed else b"err\n")


@pytest.mark.parametrize(
    "arguments", [["version"], ["--version"], ["ps"], ["completion", "bash"], ["schema"], ["dance"]]
)
def test_with_all_streams_closed_only_the_code_is_left(arguments: Sequence[str]) -> None:
    done = shell('"$@" >&- 2>&-', *arguments)

    assert done.returncode == {"ps": 125, "dance": 2}.get(arguments[0], 0)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize(
    "arguments",
    [["version"], ["run", "--", "echo", "x"], ["run", "-o", "json", "--", "true"], ["completion", "zsh"]],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_full_disk_is_told_in_one_line(arguments: Sequence[str]) -> None:
    done = shell('"$@" >/dev/full', *arguments)

    assert done.returncode == 125
    assert done.stderr == b"holdfast: cannot write the output: No space left on device\n"


def test_in_a_directory_that_is_gone_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = shell('cd gone; rmdir ../gone; "$@"', "run", "--", "true", cwd=tmp_path)

    assert done.returncode == 125
    assert done.stderr.startswith(b"holdfast: the current directory cannot be used: ")


def test_it_needs_no_variables_at_all() -> None:
    done = shell('exec env -i "$@"', "run", "--", "/bin/sh", "-c", 'echo "${HOME-none}"')

    assert (done.returncode, done.stdout, done.stderr) == (0, b"none\n", b"")


def test_it_needs_no_directory_that_can_be_written(tmp_path: Path) -> None:
    done = shell('cd /proc && "$@"', "run", "--", "pwd")

    assert (done.returncode, done.stdout) == (0, b"/proc\n")


@pytest.mark.parametrize("where", ["here", "far"])
def test_very_long_command_lines_pass(server: str, where: str) -> None:
    options = ("-H", server) if where == "far" else ()
    long = holdfast("exec", *options, "--", "sh", "-c", 'echo "$#"', "sh", *(["y" * 1000] * 1500))
    one = holdfast("exec", *options, "--", "sh", "-c", 'echo "${#1}"', "sh", "x" * 131_000)

    assert (long.stdout, long.stderr) == (b"1500\n", b"")
    assert (one.stdout, one.stderr) == (b"131000\n", b"")


@pytest.mark.parametrize("name", ["", "two\nlines", "\x1b[2J", "n" * 201])
def test_a_name_that_nobody_could_type_is_refused(name: str, server: str) -> None:
    done = holdfast("run", "-d", "-H", server, "--name", name, "--", "true")

    assert done.returncode == 125
    assert done.stderr.startswith(b"holdfast: --name: ")


STOPPED = {
    "run": ["run", "--", "sh", "-c", "echo up; exec sleep 1000"],
    "exec": ["exec", "--", "sh", "-c", "echo up; exec sleep 1000"],
    "attach": ["attach", "--no-stdin", "p"],
    "logs": ["logs", "-f", "p"],
}


@pytest.mark.parametrize("arguments", STOPPED.values(), ids=STOPPED.keys())
def test_a_server_that_goes_away_ends_us_with_our_code_and_one_line(arguments: list[str]) -> None:
    with program_at() as (server, url):
        holdfast("run", "-d", "-H", url, "--name", "p", "--", "sh", "-c", "echo up; exec sleep 1000")
        verb, *rest = arguments
        ours = subprocess.Popen(
            [*HOLDFAST, verb, "-H", url, "--reconnect", "0", *rest],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **SILENT},
        )
        assert ours.stdout is not None
        first = ours.stdout.readline()
        server.send_signal(signal.SIGTERM)
        _, errors = ours.communicate(timeout=PATIENCE)

    assert (first, ours.returncode) == (b"up\n", 125)
    assert errors.startswith(b"holdfast: ")
    assert errors.count(b"\n") == 1
    assert url.encode() in errors


def test_a_server_that_goes_away_leaves_no_half_copy(tmp_path: Path) -> None:
    (tmp_path / "endless").touch()
    os.truncate(tmp_path / "endless", 1 << 40)
    with program_at() as (server, url):
        command = ("cp", "-H", url, "--reconnect", "0", f":{tmp_path}/endless", str(tmp_path / "copy"))
        with person_at(*command) as person:
            person.expect(b"[....")
            server.send_signal(signal.SIGTERM)
            code = person.wait()

    assert code == 125
    assert url.encode() in person.shown
    assert os.listdir(tmp_path) == ["endless"]


@pytest.mark.parametrize("cols", [1, 8, 30])
def test_a_narrow_terminal_is_no_reason_to_fail(server: str, cols: int, tmp_path: Path) -> None:
    (tmp_path / "endless").touch()
    os.truncate(tmp_path / "endless", 1 << 40)
    with person_at("ps", "-a", "-H", server, rows=1, cols=cols) as person:
        assert person.wait() == 0
        assert b"NAME" in person.shown
    with person_at("run", "-t", "--", "stty", "size", rows=1, cols=cols) as person:
        person.expect(f"8 {max(cols, 20)}".encode())  # No program draws anything useful on less.
        assert person.wait() == 0
    with person_at("cp", f":{tmp_path}/endless", f"{tmp_path}/copy", rows=1, cols=cols) as person:
        person.expect(b"\x1b[K")
        person.type(b"\x03")
        assert person.wait() == 130


def test_without_the_name_of_a_terminal_there_is_one_all_the_same() -> None:
    command = " ".join(HOLDFAST)
    with person_at("run", "-t", "--", "sh", "-c", f"unset TERM; exec {command} run -t -- tty") as person:
        person.expect(b"/dev/pts/")

        assert person.wait() == 0


def test_inside_of_itself_keys_sizes_and_interrupts_reach_the_innermost() -> None:
    inner = (*HOLDFAST, "run", "-t", "--", sys.executable, "-c", SIZE_TELLER)
    with person_at("run", "-t", "--", *inner, rows=30, cols=90) as person:
        person.expect(b"size 90 30")
        person.resize(40, 100)
        person.expect(b"size 100 40")
        person.type(b"hello\r")
        person.expect(b"got hello")
        person.type(b"\x03")

        assert person.wait() == 130
        assert person.modes() == person.modes_before
