"""The program on its standard streams: one client, a message per line."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import start_params
from tests.fakes.server import (
    COMMAND,
    PATIENCE,
    Sighting,
    descendants,
    eventually_sync,
    is_same,
    run_to_end,
    without_stalls,
)

HANDSHAKE = '{"id":0,"method":"initialize","params":{"clientName":"t"}}\n{"method":"initialized"}\n'
STATUS = '{"id":1,"method":"environment/status"}'
READY = {"id": 1, "result": {"status": "ready"}}


def talk(data: str | bytes) -> list[Any]:
    """Send everything at once, then the end of input; gives all answers behind the handshake's."""
    given = (HANDSHAKE + data).encode() if isinstance(data, str) else HANDSHAKE.encode() + data
    done = run_to_end("--listen", "stdio", data=given)
    assert (done.returncode, done.stderr) == (0, b"")
    first, *rest = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["id"] == 0
    return rest


def test_a_request_is_answered_with_one_line() -> None:
    """The simplest client is a shell with a pipe."""
    assert talk(STATUS + "\n") == [READY]


@pytest.mark.parametrize("blank", ["\n", "\r\n", "   \n", "\t \n", "\u00a0\n"])
def test_blank_lines_are_skipped(blank: str) -> None:
    """They are nobody's message, and nobody is told that they are bad ones."""
    assert talk(blank + STATUS + "\n" + blank) == [READY]


def test_a_carriage_return_before_the_line_end_is_dropped() -> None:
    """Clients on other systems end their lines with two characters."""
    assert talk(STATUS + "\r\n") == [READY]


def test_a_final_line_without_its_end_is_processed() -> None:
    """The last line of a hand-written file often lacks it."""
    assert talk(STATUS) == [READY]


def test_garbage_is_answered_and_the_next_message_is_read() -> None:
    """One bad line says nothing about the others."""
    bad, good = talk("garbage\n" + STATUS + "\n")

    assert (bad["id"], bad["error"]["code"]) == (-1, -32600)
    assert bad["error"]["message"].startswith("failed to parse JSON-RPC message from exec-server stdio: ")
    assert good == READY


def test_invalid_utf_8_ends_the_connection_and_what_came_before_is_answered() -> None:
    """Where the text cannot be trusted, neither can the line ends."""
    answers = talk(STATUS.encode() + b"\n\xff\xfe\n" + STATUS.encode() + b"\n")

    assert answers == [READY]


def test_a_violation_of_the_dialect_ends_the_program() -> None:
    """There is no close frame on a pipe; the end is all there is to say."""
    assert talk(STATUS + '\n{"method":"nope"}\n' + STATUS + "\n") == [READY]


@pytest.mark.slow
def test_a_line_over_64_mib_ends_the_connection() -> None:
    """Nobody makes the server collect without limit."""
    long = b'{"id":2,"method":"' + b"x" * (1 << 26) + b'"}\n'

    assert talk(STATUS.encode() + b"\n" + long + STATUS.encode() + b"\n") == [READY]


@pytest.mark.slow
def test_a_line_of_almost_64_mib_is_read() -> None:
    """The limit is no smaller than it says."""
    padded = STATUS.encode() + b" " * ((1 << 26) - len(STATUS)) + b"\n"

    assert talk(padded) == [READY]


@pytest.mark.slow
def test_all_answers_are_delivered_though_the_reader_is_slow() -> None:
    """The end of input must not cut off answers that did not fit into the pipe."""
    asked = 5000
    server = subprocess.Popen([*COMMAND, "--listen", "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    server.stdin.write(b"".join(b'{"id":%d,"method":"nope"}\n' % number for number in range(asked)))
    server.stdin.close()
    assert server.stdout is not None
    # Nothing is read before the pipe is full and the program has more to say than fits.
    eventually_sync(lambda: _waiting_bytes(server) > 60_000)
    with server.stdout:
        lines = server.stdout.read().splitlines()
    code = server.wait(PATIENCE)

    assert [json.loads(line)["id"] for line in lines] == list(range(asked))
    assert code == 0


def _waiting_bytes(server: subprocess.Popen[bytes]) -> int:
    """How much of the program's output nobody has read yet."""
    assert server.stdout is not None
    count = array.array("i", [0])
    fcntl.ioctl(server.stdout, termios.FIONREAD, count)
    return count[0]


# Processes.


@contextmanager
def conversation() -> Iterator[subprocess.Popen[bytes]]:
    """The program with both streams open, after the handshake."""
    server = subprocess.Popen(
        [*COMMAND, "--listen", "stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with server:
        say(server, HANDSHAKE.rstrip())
        assert hear(server)["id"] == 0
        try:
            yield server
        finally:
            server.kill()


def say(server: subprocess.Popen[bytes], text: str) -> None:
    assert server.stdin is not None
    server.stdin.write(text.encode() + b"\n")
    server.stdin.flush()


def hear(server: subprocess.Popen[bytes]) -> Any:
    assert server.stdout is not None
    return json.loads(server.stdout.readline())


def start(server: subprocess.Popen[bytes], name: str, *argv: str) -> None:
    message = {"id": name, "method": "process/start", "params": start_params(name, *argv)}
    say(server, json.dumps(message))
    assert hear(server) == {"id": name, "result": {"processId": name, "sandboxType": "none"}}


@pytest.mark.slow
def test_the_end_of_input_kills_all_processes_and_exits_with_code_zero() -> None:
    """The one client there is cannot come back, so there is nothing to wait for."""
    with conversation() as server:
        start(server, "p", "sh", "-c", "trap '' HUP TERM; sleep 1000 & wait")
        start(server, "q", "sleep", "1000")
        family = descendants(server.pid)
        assert server.stdin is not None
        server.stdin.close()

        code = server.wait(PATIENCE)
        gone(family)

    assert code == 0
    assert len(family) >= 4


def gone(family: set[Sighting]) -> None:
    eventually_sync(lambda: not [member for member in family if is_same(member)])


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_program_and_its_processes() -> None:
    """Whom should it tell?"""
    with conversation() as server:
        start(server, "p", "sh", "-c", "while :; do echo noise; sleep 0.01; done")
        family = descendants(server.pid)
        assert server.stdout is not None
        server.stdout.close()

        code = server.wait(PATIENCE)
        gone(family)

    assert code == 0


@pytest.mark.slow
def test_a_signal_ends_the_program_with_code_zero() -> None:
    """The same as on sockets."""
    with conversation() as server:
        start(server, "p", "sleep", "1000")
        family = descendants(server.pid)
        server.send_signal(signal.SIGTERM)

        code = server.wait(PATIENCE)
        gone(family)

    assert code == 0


def test_output_of_processes_shares_the_stream_with_answers_and_nothing_else_does() -> None:
    """Standard output is the protocol's alone."""
    with conversation() as server:
        start(server, "p", "sh", "-c", "echo hi; exit 3")
        events = [hear(server) for _ in range(3)]

    assert [event["method"] for event in events] == ["process/output", "process/exited", "process/closed"]
    assert [event["params"]["seq"] for event in events] == [1, 2, 3]


# Files in place of pipes.


@pytest.mark.slow
def test_regular_files_serve_as_standard_input_and_output(tmp_path: Path) -> None:
    """A recorded conversation can be played back, and its answers kept."""
    given, got = tmp_path / "in", tmp_path / "out"
    given.write_text(HANDSHAKE + STATUS + "\n" + "garbage\n" + STATUS)
    with given.open("rb") as source, got.open("wb") as output:
        done = subprocess.run(
            [*COMMAND, "--listen", "stdio"], stdin=source, stdout=output, timeout=PATIENCE, check=False
        )

    answers = [json.loads(line) for line in got.read_text().splitlines()]
    assert done.returncode == 0
    assert [answer["id"] for answer in answers] == [0, 1, -1, 1]


@pytest.mark.slow
def test_no_input_at_all_is_the_end_of_input() -> None:
    """Service managers give programs /dev/null."""
    done = subprocess.run(
        [*COMMAND, "--listen", "stdio"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stdout, without_stalls(done.stderr)) == (0, b"", b"")


@pytest.mark.slow
def test_a_terminal_serves_as_standard_input_and_output() -> None:
    """Trying the protocol by hand is how many people learn it."""
    ours, theirs = os.openpty()
    server = subprocess.Popen([*COMMAND, "--listen", "stdio"], stdin=theirs, stdout=theirs)
    os.close(theirs)
    with os.fdopen(ours, "r+b", 0) as terminal:
        terminal.write(b'{"id":1,"method":"nope"}\n')
        seen = b""
        while seen.count(b"\n") < 2:  # The terminal's echo, then the answer.
            seen += terminal.read(4096)
        terminal.write(b"\x04")

        code = server.wait(PATIENCE)

    assert b"-32601" in seen
    assert code == 0


@pytest.mark.slow
def test_stdio_beside_a_websocket_keeps_standard_output_clean(tmp_path: Path) -> None:
    """The URL of the other listener must not look like a message."""
    done = run_to_end("--listen", "stdio", "--listen", f"unix://{tmp_path}/s", data=STATUS.encode())

    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert done.stderr.decode() == f"unix://{tmp_path}/s\n"
