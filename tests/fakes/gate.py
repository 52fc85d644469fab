"""Doors that a test opens: in a child program, and in front of a program that is about to run."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shlex
import shutil
import signal
from pathlib import Path

from .process import PATIENCE


class Gate:
    """A door in a child program: it reports that it was reached and waits to be opened.

    Both ways are named pipes that this side opens at once, for reading and
    writing, so that nobody waits for the other in ``open``.
    """

    def __init__(self, folder: Path) -> None:
        self._report = folder / "reached"
        self._door = folder / "door"
        os.mkfifo(self._report)
        os.mkfifo(self._door)
        self._report_fd = os.open(self._report, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._door_fd = os.open(self._door, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    @property
    def shell(self) -> str:
        """The door as a command for sh.  It is silent."""
        return f"echo >{shlex.quote(str(self._report))}; read _ <{shlex.quote(str(self._door))}"

    @property
    def report(self) -> str:
        """Only the first half, for a program that then waits for something else."""
        return f"echo >{shlex.quote(str(self._report))}"

    async def reached(self, times: int = 1) -> None:
        """Wait until the door was reached so many times more."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE):
            for _ in range(times):
                await _readable(loop, self._report_fd)
                os.read(self._report_fd, 1)

    def open(self, times: int = 1) -> None:
        """Let so many pass, those who come later too."""
        os.write(self._door_fd, b"\n" * times)

    def close(self) -> None:
        os.close(self._report_fd)
        os.close(self._door_fd)


class SlowProgram:
    """A program whose start takes until it is released, as on a stalled disk.

    A lease on the file makes the kernel hold every ``execve`` of it, after it
    told us with a signal.
    """

    def __init__(self, original: str, folder: Path) -> None:
        self.path = str(folder / "slow")
        shutil.copy(original, self.path)
        self._wanted = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGIO, self._wanted.set)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.fcntl(self._fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        self._released = False

    async def reached(self) -> None:
        """Wait until somebody wants to execute it."""
        async with asyncio.timeout(PATIENCE):
            await self._wanted.wait()

    def release(self) -> None:
        """Let it run."""
        # To close the descriptor would not do: whoever is about to execute the program has a copy.
        if not self._released:
            self._released = True
            fcntl.fcntl(self._fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def close(self) -> None:
        self.release()
        os.close(self._fd)
        # Until here, because the kernel's default for this signal is to kill us.
        if not self._loop.is_closed():
            self._loop.remove_signal_handler(signal.SIGIO)
        signal.signal(signal.SIGIO, signal.SIG_IGN)


async def _readable(loop: asyncio.AbstractEventLoop, fd: int) -> None:
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)


async def gone(pid: int | None) -> None:
    """Wait until a process, anybody's child, has ended."""
    assert pid is not None, "a backend that does not tell"
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        async with asyncio.timeout(PATIENCE):
            await _readable(asyncio.get_running_loop(), fd)
    finally:
        os.close(fd)


def end(pid: int) -> None:
    """Kill one process that got out of everybody's reach."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
