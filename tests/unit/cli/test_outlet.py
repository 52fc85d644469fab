"""The way out: pipes, terminals, files and sockets, without stopping the loop and without changing them."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import socket
import tty
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.cli.outlet import Outlet

MUCH = os.urandom(1 << 20)


async def passed(write_fd: int, read: Callable[[], bytes], data: bytes = MUCH) -> bytes:
    """Write everything while another task reads, which it can only if the loop is not stopped."""
    loop = asyncio.get_running_loop()
    outlet = Outlet(write_fd, loop)
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
            outlet = Outlet(fd, loop)
            await outlet.write(MUCH)
            outlet.close()

    assert (tmp_path / "file").read_bytes() == MUCH


async def test_a_pipe_that_nobody_reads_is_told() -> None:
    reader, writer = os.pipe()
    early = Outlet(writer, asyncio.get_running_loop())
    os.close(reader)
    late = Outlet(writer, asyncio.get_running_loop())

    for outlet in (early, late):
        with pytest.raises(BrokenPipeError):
            await outlet.write(b"x")
        outlet.close()
    os.close(writer)


async def test_it_is_known_whether_somebody_waits() -> None:
    reader, writer = os.pipe()
    outlet = Outlet(writer, asyncio.get_running_loop())
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
