"""The way out: bytes to a descriptor of ours, whatever it is, without ever stopping the event loop.

Others may share our standard streams, so they are never made non-blocking: that
would happen to everybody.  A pipe or a terminal is opened once more instead, for
ourselves alone.  Where that is not allowed, little enough is written at a time
that the system takes it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import stat
from collections.abc import Callable

_AT_ONCE = select.PIPE_BUF
"""Bytes that fit into a pipe which the system calls writable."""


class Outlet:
    """Writes to one descriptor, which stays the caller's."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._fd = fd
        self._own: int | None = None
        self._socket: socket.socket | None = None
        self._put: Callable[[memoryview], int] = self._put_little
        self.busy = False
        """Whether somebody waits for the other side to take something."""
        self._choose()

    def _choose(self) -> None:
        """Find out how to write without stopping."""
        try:
            mode = os.fstat(self._fd).st_mode
        except OSError:
            # It is closed: as with any program, what is said there goes nowhere.
            self._put = len
            return
        if stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(self._fd)):
            self._put = self._put_all
        elif stat.S_ISSOCK(mode):
            self._socket = socket.socket(fileno=os.dup(self._fd))
            self._put = self._put_socket
        else:
            with contextlib.suppress(OSError):
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
                self._own = os.open(f"/proc/self/fd/{self._fd}", flags)
                self._put = self._put_own

    async def write(self, data: bytes) -> None:
        """Write everything; returns when the system has it.  Calls come one after the other.

        Raises:
            BrokenPipeError: Nobody reads there any more.
            OSError: The system would not take it, for example because the disk is full.
        """
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._put(rest) :]
            except BlockingIOError:
                await self._writable()

    async def _writable(self) -> None:
        fd = self._fd if self._own is None else self._own
        future = self._loop.create_future()
        self._loop.add_writer(fd, _settle, future)
        self.busy = True
        try:
            await future
        finally:
            self.busy = False
            self._loop.remove_writer(fd)

    def close(self) -> None:
        """Let go of what was opened here.  May be called twice."""
        own, self._own = self._own, None
        if own is not None:
            os.close(own)
        if self._socket is not None:
            self._socket.close()

    # Ways to write.

    def _put_all(self, data: memoryview) -> int:
        return os.write(self._fd, data)

    def _put_own(self, data: memoryview) -> int:
        assert self._own is not None
        return os.write(self._own, data)

    def _put_socket(self, data: memoryview) -> int:
        assert self._socket is not None
        return self._socket.send(data, socket.MSG_DONTWAIT)

    def _put_little(self, data: memoryview) -> int:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        if not poll.poll(0):
            raise BlockingIOError
        return os.write(self._fd, data[:_AT_ONCE])


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
