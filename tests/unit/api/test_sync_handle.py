"""Processes in the hands of programs without an event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from holdfast import DEVNULL, PIPE, Kind, Outcome, Size, Stream, TimedOut, sync
from holdfast.api.embedded_process import EmbeddedProcess
from holdfast.errors import Forbidden
from holdfast.model import WriteStatus
from tests.fakes.process import nothing_left_open


@pytest.fixture
def host() -> Iterator[sync.Host]:
    with nothing_left_open(), sync.local() as host:
        yield host


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_output_is_iterated(host: sync.Host) -> None:
    assert b"".join(host.start(sh("echo a; echo b"))) == b"a\nb\n"
    (chunk,) = host.start(sh("echo c >&2")).chunks()
    assert (chunk.stream, chunk.data) == (Stream.STDERR, b"c\n")


def test_a_stream_is_read(host: sync.Host) -> None:
    handle = host.start(sh("echo one; echo two; printf 'a;bc'; printf rest"))
    reader = handle.stdout
    assert reader is not None

    assert reader.readline() == b"one\n"
    assert next(reader) == b"two\n"
    assert (reader.readuntil(b";"), reader.readexactly(2)) == (b"a;", b"bc")
    assert not reader.at_eof()
    assert (reader.read(), reader.read(5), list(reader)) == (b"rest", b"", [])
    with pytest.raises(asyncio.IncompleteReadError):
        reader.readexactly(1)
    assert reader.at_eof()


def test_a_conversation_is_held(host: sync.Host) -> None:
    handle = host.start(["cat"], stdin=PIPE)
    assert handle.stdin is not None
    assert handle.stdout is not None

    handle.stdin.write(b"one\n")
    assert handle.stdout.readline() == b"one\n"
    handle.stdin.writelines([b"two", b"\n"])
    handle.stdin.drain()
    assert handle.stdin.can_write_eof()
    handle.stdin.write_eof()
    handle.stdin.close()
    handle.stdin.wait_closed()

    assert handle.stdin.is_closing()
    assert handle.stdout.read() == b"two\n"


def test_output_is_read_as_lines_of_text(host: sync.Host) -> None:
    handle = host.start(sh(r"echo one; printf 'a\rlonger'"))

    lines = handle.lines(limit=4)

    assert next(lines) == "one\n"
    assert list(lines) == ["a\n", "long", "er"]


def test_a_wait_ends_after_its_time_and_the_process_goes_on(host: sync.Host) -> None:
    handle = host.start(sh("read line; echo got $line"), stdin=PIPE)

    with pytest.raises(TimedOut):
        handle.wait(0.02)

    assert handle.communicate(b"it\n", timeout=10) == (b"got it\n", b"")
    assert handle.wait() == Outcome(Kind.EXIT, 0)


def test_a_handle_tells_what_it_is(host: sync.Host) -> None:
    handle = host.start(sh("exit 3"), name="it", stdout=DEVNULL, stderr=DEVNULL)
    handle.wait()

    assert (handle.name, handle.args, handle.returncode) == ("it", sh("exit 3"), 3)
    assert (handle.outcome, handle.stdin, handle.stdout, handle.stderr) == (
        Outcome(Kind.EXIT, 3),
        None,
        None,
        None,
    )
    assert handle.usage is not None
    assert repr(handle) == f"<Handle 'it' pid {handle.pid}, returncode 3>"


def test_a_process_is_ended_in_any_way(host: sync.Host) -> None:
    asked, killed, signalled = (host.start(["sleep", "1000"]) for _ in range(3))
    asked.terminate()
    killed.kill()
    signalled.send_signal(signal.SIGHUP)

    for handle in (asked, killed, signalled):
        handle.wait()
    with host.start(["sleep", "1000"], terminal=True) as left:
        left.resize(Size(rows=3, cols=3))
        left.detach()
    ended = host.start(["sleep", "1000"])

    assert ended.end(grace=5).running
    assert [handle.returncode for handle in (asked, killed, signalled, left, ended)] == [-15, -9, -1, -9, -15]


def test_input_that_cannot_be_handed_over_is_told(host: sync.Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as with an event loop: nothing waits for ever, and nothing follows what is missing."""

    async def write(process: EmbeddedProcess, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        raise Forbidden("method", "process/write")

    monkeypatch.setattr(EmbeddedProcess, "write", write)
    with host.start(["cat"], stdin=PIPE) as handle:
        stdin = handle.stdin
        assert stdin is not None
        with pytest.raises(Forbidden):
            stdin.write(bytes(100_000))
        for call in (stdin.drain, stdin.write_eof, stdin.close, stdin.wait_closed):
            with pytest.raises(Forbidden):
                call()
        with pytest.raises(Forbidden):
            handle.communicate(b"x")
    with host.start(["cat"], stdin=PIPE) as handle:
        assert handle.stdin is not None
        handle.stdin.write(b"x")
        with pytest.raises(Forbidden):
            handle.wait()
    with pytest.raises(Forbidden):
        host.run(["cat"], input=b"x")
