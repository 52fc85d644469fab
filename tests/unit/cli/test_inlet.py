"""The way in: pipes, terminals and files, without stopping the loop."""

from __future__ import annotations

import asyncio
import errno
import os
import pty
import socket
from pathlib import Path

import pytest

from holdfast.cli.inlet import Inlet, is_given


async def everything(fd: int) -> bytes:
    inlet = Inlet(fd, asyncio.get_running_loop())
    got = b""
    while data := await inlet.read():
        got += data
    return got


async def test_a_pipe_is_read_to_its_end_without_stopping_the_loop() -> None:
    reader, writer = os.pipe()
    task = asyncio.create_task(everything(reader))
    await asyncio.sleep(0)

    os.write(writer, b"one")
    os.write(writer, b"two")
    os.close(writer)

    assert await task == b"onetwo"
    os.close(reader)


async def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 600_000)
    with path.open("rb") as file, open(os.devnull, "rb") as nothing:
        assert await everything(file.fileno()) == b"x" * 600_000
        assert await everything(nothing.fileno()) == b""


async def test_a_terminal_that_was_hung_up_is_at_its_end() -> None:
    master, slave = pty.openpty()
    os.close(master)

    assert await everything(slave) == b""
    os.close(slave)


async def test_cancelling_loses_nothing() -> None:
    reader, writer = os.pipe()
    inlet = Inlet(reader, asyncio.get_running_loop())
    task = asyncio.create_task(inlet.read())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    os.write(writer, b"x")

    assert await inlet.read() == b"x"
    os.close(reader)
    os.close(writer)


async def test_if_somebody_else_was_faster_it_is_waited_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"x")
    told: list[OSError] = [BlockingIOError(), OSError(errno.EIO, "gone"), OSError(errno.EISDIR, "no")]

    def read(fd: int, size: int) -> bytes:
        raise told.pop(0)

    inlet = Inlet(reader, asyncio.get_running_loop())
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", read)
        at_end = await inlet.read()
        with pytest.raises(IsADirectoryError):
            await inlet.read()

    assert at_end == b""  # How a terminal says to those in the background that it was hung up.
    os.close(reader)
    os.close(writer)


def test_pipes_files_and_sockets_are_given_and_nothing_else_is(tmp_path: Path) -> None:
    """A program must not wait for a terminal at which nobody was asked to type."""
    reader, writer = os.pipe()
    master, slave = pty.openpty()
    ours, theirs = socket.socketpair()
    path = tmp_path / "file"
    path.touch()
    with path.open() as file, open(os.devnull) as nothing, ours, theirs:
        found = [
            is_given(fd) for fd in (reader, file.fileno(), ours.fileno(), slave, nothing.fileno(), 1 << 20)
        ]

    assert found == [True, True, True, False, False, False]
    for fd in (reader, writer, master, slave):
        os.close(fd)
