"""Our own standard streams: read, written and kept open without ever blocking the event loop.

Other programs may share them, so they are never made non-blocking: that would happen to every program that
shares them.  A pipe or a terminal is opened a second time instead, for ourselves alone.  Where that is not
allowed, each write is small enough for the system to take it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import socket
import stat
from collections.abc import Callable
from functools import partial

_PIPE_BLOCK = 1 << 16
"""Bytes of one read from a pipe or terminal: a pipe holds no more."""

_FILE_BLOCK = 1 << 18
"""Bytes of one read from a file."""

_AT_ONCE = select.PIPE_BUF
"""Bytes that fit into any pipe which the system calls writable."""


# Descriptors.


def open_standard_files() -> None:
    """Open /dev/null for each of descriptors 0 to 2 that is closed, so that no other file gets its number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def is_given(fd: int) -> bool:
    """Whether input was redirected to a descriptor: a pipe, a file or a socket.

    False for a terminal, for /dev/null and for a closed descriptor.
    """
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


# Input.


class DescriptorReader:
    """Reads a descriptor.  The descriptor stays the caller's, who closes it."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._fd = fd
        self._loop = loop
        mode = os.fstat(fd).st_mode
        # epoll does not take files and devices such as /dev/null.  They can always be read.
        self._is_always_ready = stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))

    async def read(self) -> bytes:
        """Return the next bytes; empty at the end.  Cancelling loses nothing.

        Nothing is read in advance, so a program that writes to a pipe waits until this is called.
        """
        if self._is_always_ready:
            return os.read(self._fd, _FILE_BLOCK)
        while True:
            await self._readable()
            try:
                return os.read(self._fd, _PIPE_BLOCK)
            except BlockingIOError:
                continue  # Another program that shares the descriptor has read the bytes.
            except OSError as error:
                if error.errno == errno.EIO:
                    return b""  # The terminal was hung up.
                raise

    async def _readable(self) -> None:
        future = self._loop.create_future()
        self._loop.add_reader(self._fd, _settle, future)
        try:
            await future
        finally:
            self._loop.remove_reader(self._fd)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


# Output.


class DescriptorWriter:
    """Writes to a descriptor.  The descriptor stays the caller's, who closes it."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._fd = fd
        self._own: int | None = None  # The same pipe or terminal, opened a second time.
        self._socket: socket.socket | None = None
        self._put: Callable[[memoryview], int] = self._put_little
        self.busy = False
        """Whether a write waits for the reader at the other end."""
        self._choose()

    def _choose(self) -> None:
        """Choose the way to write that cannot block."""
        try:
            mode = os.fstat(self._fd).st_mode
        except OSError:
            # The descriptor is closed.  As in any program, output to it is dropped.
            self._put = len
            return
        if stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(self._fd)):
            self._put = partial(os.write, self._fd)
        elif stat.S_ISSOCK(mode):
            self._socket = socket.socket(fileno=os.dup(self._fd))
            self._put = self._put_socket
        else:
            with contextlib.suppress(OSError):
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
                self._own = os.open(f"/proc/self/fd/{self._fd}", flags)
                self._put = partial(os.write, self._own)

    async def write(self, data: bytes) -> None:
        """Write all of ``data``; return when the system has it.  Calls must not overlap.

        Raises:
            BrokenPipeError: The reading end is closed.
            OSError: The system refused, for example because the disk is full.
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
        """Close what was opened here.  May be called twice."""
        own, self._own = self._own, None
        if own is not None:
            os.close(own)
        if self._socket is not None:
            self._socket.close()

    # Ways to write, as ``os.write`` does: each returns the number of bytes, or raises BlockingIOError.

    def _put_socket(self, data: memoryview) -> int:
        assert self._socket is not None
        return self._socket.send(data, socket.MSG_DONTWAIT)

    def _put_little(self, data: memoryview) -> int:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        if not poll.poll(0):
            raise BlockingIOError
        return os.write(self._fd, data[:_AT_ONCE])
