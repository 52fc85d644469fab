"""Our own standard streams: pipes, terminals, files and sockets, without blocking the loop."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import pty
import socket
import subprocess
import sys
import tty
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.cli.streams import DescriptorReader, DescriptorWriter, is_given, open_standard_files

# Descriptors.


@pytest.mark.slow
def test_closed_ones_are_taken_and_others_are_left_alone() -> None:
    script = (
        "import os\n"
        "from holdfast.cli.streams import open_standard_files\n"
        "os.close(0); os.close(2)\n"
        "open_standard_files()\n"
        "print(os.readlink('/proc/self/fd/0'), os.readlink('/proc/self/fd/2'), os.open('/', 0) > 2)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "/dev/null /dev/null True\n"


def test_with_all_of_them_nothing_changes() -> None:
    before = os.listdir("/proc/self/fd")

    open_standard_files()

    assert set(os.listdir("/proc/self/fd")) <= set(before)


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


# Input.


async def everything(fd: int) -> bytes:
    given = DescriptorReader(fd, asyncio.get_running_loop())
    got = b""
    while data := await given.read():
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
    given = DescriptorReader(reader, asyncio.get_running_loop())
    task = asyncio.create_task(given.read())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    os.write(writer, b"x")

    assert await given.read() == b"x"
    os.close(reader)
    os.close(writer)


async def test_if_somebody_else_was_faster_it_is_waited_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"x")
    told: list[OSError] = [BlockingIOError(), OSError(errno.EIO, "gone"), OSError(errno.EISDIR, "no")]

    def read(fd: int, size: int) -> bytes:
        raise told.pop(0)

    given = DescriptorReader(reader, asyncio.get_running_loop())
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", read)
        at_end = await given.read()
        with pytest.raises(IsADirectoryError):
            await given.read()

    assert at_end == b""  # How a terminal says to those in the background that it was hung up.
    os.close(reader)
    os.close(writer)


# Output.

MUCH = os.urandom(1 << 20)


async def passed(write_fd: int, read: Callable[[], bytes], data: bytes = MUCH) -> bytes:
    """Write everything while another task reads, which it can only if the loop is not stopped."""
    loop = asyncio.get_running_loop()
    outlet = DescriptorWriter(write_fd, loop)
    got = b""

    async def take() -> None:
        nonlocal got
        while len(got) < len(data):
            got += await loop.run_in_executor(None, read)

    await asyncio.gather(outlet.write(data), take())
    outlet.close()
    outlet.close()
    return got


async def test_a_pipe_takes_everything_and_stays_as_it_is() -> None:
    """Whoever shares it with us must not find it changed."""
    reader, writer = os.pipe()

    got = await passed(writer, lambda: os.read(reader, 1 << 16))

    assert got == MUCH
    assert not fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK
    os.close(reader)
    os.close(writer)


async def test_a_pipe_that_cannot_be_opened_again_takes_everything_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be another user's."""
    reader, writer = os.pipe()

    def refuse(*_: object) -> int:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        got = await passed(writer, lambda: os.read(reader, 1 << 16))

    assert got == MUCH
    os.close(reader)
    os.close(writer)


async def test_a_terminal_takes_everything() -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)

    assert await passed(slave, lambda: os.read(master, 1 << 16), MUCH[:100_000]) == MUCH[:100_000]
    os.close(master)
    os.close(slave)


async def test_a_socket_takes_everything_and_stays_as_it_is() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert await passed(ours.fileno(), lambda: theirs.recv(1 << 16)) == MUCH
        assert not fcntl.fcntl(ours, fcntl.F_GETFL) & os.O_NONBLOCK


async def test_a_file_and_nothing_at_all_take_everything(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    with (tmp_path / "file").open("wb") as file, open(os.devnull, "wb") as nothing:
        for fd in (file.fileno(), nothing.fileno(), 1 << 20):
            outlet = DescriptorWriter(fd, loop)
            await outlet.write(MUCH)
            outlet.close()

    assert (tmp_path / "file").read_bytes() == MUCH


async def test_a_pipe_that_nobody_reads_is_told() -> None:
    reader, writer = os.pipe()
    early = DescriptorWriter(writer, asyncio.get_running_loop())
    os.close(reader)
    late = DescriptorWriter(writer, asyncio.get_running_loop())

    for outlet in (early, late):
        with pytest.raises(BrokenPipeError):
            await outlet.write(b"x")
        outlet.close()
    os.close(writer)


async def test_it_is_known_whether_somebody_waits() -> None:
    reader, writer = os.pipe()
    outlet = DescriptorWriter(writer, asyncio.get_running_loop())
    task = asyncio.create_task(outlet.write(MUCH))
    await asyncio.sleep(0)
    waits = outlet.busy
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (waits, outlet.busy) == (True, False)
    outlet.close()
    os.close(reader)
    os.close(writer)
