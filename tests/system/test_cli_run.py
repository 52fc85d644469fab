"""``holdfast run`` and ``exec`` without a terminal: codes, streams, much data, signals; near and far."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.backends import LONG
from tests.fakes.server import PATIENCE, eventually_sync, is_running, program_at
from tests.fakes.terminal import HOLDFAST, SILENT, holdfast

pytestmark = pytest.mark.slow

MUCH = (1024 if LONG else 32) << 20
"""Bytes: far more than all buffers together."""

BOUND = 192 << 20
"""Bytes of memory that must do for any amount of data."""

HASH = (
    "import hashlib, sys\n"
    "digest = hashlib.sha256()\n"
    "while data := sys.stdin.buffer.read1(1 << 20): digest.update(data)\n"
    "print(digest.hexdigest())\n"
)

WRITER = (
    "import sys\n"
    f"block = bytes(range(256)) * 256\n"
    f"for _ in range({MUCH} // len(block)): sys.stdout.buffer.write(block)\n"
)


def expected() -> str:
    digest = hashlib.sha256()
    block = bytes(range(256)) * 256
    for _ in range(MUCH // len(block)):
        digest.update(block)
    return digest.hexdigest()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with program_at() as (_, url):
        yield url


@pytest.fixture(params=["here", "far"])
def command(request: pytest.FixtureRequest) -> list[str]:
    """``run`` in this process, and ``exec`` on a server, which is ``run`` there with another end."""
    return ["run"] if request.param == "here" else ["exec", "-H", request.getfixturevalue("server")]


CODES = {
    "success": (["true"], 0),
    "its own": (["sh", "-c", "exit 7"], 7),
    "a signal": (["sh", "-c", "kill -9 $$"], 137),
    "another": (["sh", "-c", "kill -TERM $$"], 143),
    "no such program": (["no-such-program"], 127),
    "no such path": (["/no/such/program"], 127),
    "not executable": (["/etc/passwd"], 126),
    "a directory": (["/tmp"], 126),
}


@pytest.mark.parametrize(("argv", "code"), CODES.values(), ids=CODES.keys())
def test_the_code_is_the_programs_or_says_why_there_is_none(
    command: list[str], argv: list[str], code: int
) -> None:
    done = holdfast(*command, "--", *argv)

    assert done.returncode == code
    assert done.stdout == b""
    assert done.stderr.startswith(b"holdfast: cannot run") == (code in (126, 127))


@pytest.mark.parametrize("option", ["--timeout", "--idle-timeout"])
def test_a_timeout_has_its_own_code_and_what_was_said_is_passed_on(command: list[str], option: str) -> None:
    done = holdfast(*command, option, "300ms", "--", "sh", "-c", "echo early; sleep 100")

    assert (done.returncode, done.stdout) == (124, b"early\n")
    assert done.stderr.startswith(b"holdfast: it was ended because")


def test_output_ends_at_its_limit_and_the_program_with_it_or_goes_on(command: list[str]) -> None:
    script = ["--", "sh", "-c", "seq 1 100000; exit 7"]

    ended = holdfast(*command, "--output-limit", "100", "--", "yes")
    cut = holdfast(*command, "--output-limit", "100", "--truncate", *script)
    quiet = holdfast(*command, "--output-limit", "100", "--truncate", "-q", *script)
    told = holdfast(*command, "--output-limit", "100", "--truncate", "-o", "json", *script)
    wrong = holdfast(*command, "--truncate", *script)

    assert ended.returncode == 137
    assert ended.stderr.startswith(b"holdfast: it was ended because it said more than it may")
    assert (cut.returncode, len(cut.stdout)) == (7, 100)
    assert cut.stderr == b"holdfast: 588,795 bytes of its output were dropped: it said more than is kept\n"
    assert (quiet.returncode, quiet.stderr) == (7, b"")
    assert json.loads(told.stdout.splitlines()[-1])["droppedBytes"] == 588_795
    assert wrong.returncode == 125
    assert b"--output-limit" in wrong.stderr


def test_outputs_stay_apart_and_carry_nothing_else(command: list[str]) -> None:
    done = holdfast(*command, "--", "sh", "-c", r"printf 'a\377'; printf 'b\000' >&2")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"a\xff", b"b\0")


def test_without_input_the_program_reads_its_end_at_once(command: list[str]) -> None:
    done = holdfast(*command, "--", "cat")

    assert (done.returncode, done.stdout) == (0, b"")


def test_a_closed_standard_input_does_no_harm(command: list[str]) -> None:
    line = ["sh", "-c", 'exec "$@" <&-', "sh", *HOLDFAST, *command, "--", "sh", "-c", "cat; echo done"]
    done = subprocess.run(line, capture_output=True, env={**os.environ, **SILENT}, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"done\n", b"")


def test_piped_input_is_passed_on_and_then_ends(command: list[str]) -> None:
    done = holdfast(*command, "--", "sh", "-c", "cat; echo done", data=b"given ")

    assert (done.returncode, done.stdout) == (0, b"given done\n")


def test_input_from_a_file_is_passed_on(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"x" * 300_000)
    with path.open("rb") as file:
        line = [*HOLDFAST, *command, "--", "wc", "-c"]
        done = subprocess.run(
            line, stdin=file, capture_output=True, env={**os.environ, **SILENT}, check=False
        )

    assert done.stdout.strip() == b"300000"


def test_a_program_that_wants_no_input_ends_all_the_same(command: list[str]) -> None:
    done = holdfast(*command, "--", "true", data=b"x" * 10_000_000)

    assert (done.returncode, done.stderr) == (0, b"")


def peak(pid: int) -> int:
    """The most memory that a process had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no peak")


@pytest.mark.stress
@pytest.mark.timeout(600)
def test_much_input_and_output_pass_unchanged_in_bounded_memory(command: list[str]) -> None:
    """Neither side may wait in our memory for the other."""
    source = subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE)
    ours = subprocess.Popen(
        [*HOLDFAST, *command, "--", "cat"],
        stdin=source.stdout,
        stdout=subprocess.PIPE,
        env={**os.environ, **SILENT},
    )
    assert source.stdout is not None
    assert ours.stdout is not None
    source.stdout.close()
    digest = hashlib.sha256()
    most = 0
    with source, ours:
        while data := ours.stdout.read(1 << 20):
            digest.update(data)
            if is_running(ours.pid):
                most = max(most, peak(ours.pid))

    assert digest.hexdigest() == expected()
    assert (source.returncode, ours.returncode) == (0, 0)
    assert 0 < most < BOUND


def test_a_reader_that_has_enough_ends_the_program_quietly(command: list[str]) -> None:
    """``| head``: the code is that of a program that died of the closed pipe."""
    ours = subprocess.Popen(
        [*HOLDFAST, *command, "--", "sh", "-c", "echo $$; exec yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **SILENT},
    )
    assert ours.stdout is not None
    assert ours.stderr is not None
    with ours:
        pid = int(ours.stdout.readline())
        ours.stdout.close()
        errors = ours.stderr.read()
        code = ours.wait(PATIENCE)

    assert (code, errors) == (141, b"")
    eventually_sync(lambda: not is_running(pid))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_for_us_is_one_for_the_program(command: list[str], number: signal.Signals) -> None:
    """Whoever supervises us supervises it."""
    script = f"trap 'echo caught; exit 3' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
    ours = subprocess.Popen(
        [*HOLDFAST, *command, "--", "sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, **SILENT},
    )
    assert ours.stdout is not None
    with ours:
        first = ours.stdout.readline()
        ours.send_signal(number)
        rest = ours.stdout.read()

    assert (first, rest, ours.returncode) == (b"ready\n", b"caught\n", 3)


def test_output_that_others_hold_open_is_not_waited_for(command: list[str]) -> None:
    """A server left in the background must not keep its starter from ending."""
    done = holdfast(*command, "--", "sh", "-c", "sleep 1000 & echo started")

    assert (done.returncode, done.stdout) == (0, b"started\n")
    assert b"held open by others" in done.stderr


def test_json_has_each_piece_and_the_end(command: list[str]) -> None:
    done = holdfast(*command, "-o", "json", "--", "sh", "-c", "echo out; exit 4")

    lines = [json.loads(line) for line in done.stdout.splitlines()]
    data = b"".join(base64.b64decode(line["data"]) for line in lines[:-1])
    assert (done.returncode, data) == (4, b"out\n")
    assert lines[-1].keys() == {"name", "exitCode", "outcome", "usage", "denials", "droppedBytes"}
    assert lines[-1]["exitCode"] == 4
    assert lines[-1]["outcome"]["kind"] == "exit"


def test_variables_and_directory_are_those_asked_for(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "variables"
    file.write_text("# a comment\nFROM_FILE=1\nBOTH=file\n")
    done = holdfast(
        *command,
        *("-w", str(tmp_path), "--env-file", str(file), "-e", "BOTH=given", "-e", "OURS"),
        *("--", "sh", "-c", 'pwd; echo "$FROM_FILE $BOTH $OURS ${PATH:+path}"'),
        env={"OURS": "3"},
    )

    assert done.stdout.decode() == f"{tmp_path}\n1 given 3 path\n"


@pytest.mark.parametrize("verb", ["run", "exec"])
def test_when_our_window_is_closed_what_is_kept_stays_and_the_rest_ends(server: str, verb: str) -> None:
    """What is kept is there for whoever comes next; the rest is nobody's after us."""
    ours = subprocess.Popen(
        [*HOLDFAST, verb, "-H", server, "--name", f"of-{verb}", "--", "sh", "-c", "echo $$; exec sleep 1000"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, **SILENT},
    )
    assert ours.stdout is not None
    with ours:
        pid = int(ours.stdout.readline())
        ours.send_signal(signal.SIGHUP)

    listed = holdfast("ps", "-q", "-H", server).stdout.split()
    assert (f"of-{verb}".encode() in listed, is_running(pid)) == (verb == "run",) * 2
    if verb == "run":
        assert holdfast("kill", "-H", server, "of-run").returncode == 0
        assert not is_running(pid)


def test_detached_it_prints_its_name_and_all_other_commands_find_it(server: str) -> None:
    env = {"HOLDFAST_URL": server}
    started = holdfast("run", "-d", "-i", "--name", "d", "--", "cat", env=env)
    written = holdfast("write", "d", "one\n", env=env)
    more = holdfast("write", "d", "--eof", data=b"two\n", env=env)
    code = holdfast("wait", "d", env=env).returncode
    said = holdfast("logs", "d", env=env).stdout
    last = holdfast("logs", "--tail", "1", "d", env=env).stdout

    assert (started.returncode, started.stdout) == (0, b"d\n")
    assert (written.returncode, more.returncode, code) == (0, 0, 0)
    assert (said, last) == (b"one\ntwo\n", b"two\n")


def test_detached_without_a_server_is_refused_with_advice() -> None:
    done = holdfast("run", "-d", "--", "true")

    assert done.returncode == 125
    assert b"holdfast serve" in done.stderr
