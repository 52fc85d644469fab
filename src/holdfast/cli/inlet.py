"""The way in: bytes from a descriptor of ours, as they come, without ever stopping the event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import stat

BLOCK = 1 << 16
"""What a pipe holds: more at once is not to be had."""

_FILE_BLOCK = 1 << 18


class Inlet:
    """Reads one descriptor, which stays the caller's."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._fd = fd
        self._loop = loop
        mode = os.fstat(fd).st_mode
        # The kernel has no news of these: they can be read at any time.
        self._ready = stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))

    async def read(self) -> bytes:
        """The next bytes; nothing at the end.  Cancelling loses nothing.

        Nothing is read ahead, so whoever does not ask makes the other side wait.
        """
        if self._ready:
            return os.read(self._fd, _FILE_BLOCK)
        while True:
            await self._readable()
            try:
                return os.read(self._fd, BLOCK)
            except BlockingIOError:
                continue  # Somebody else who has this descriptor was faster.
            except OSError as error:
                if error.errno == errno.EIO:
                    return b""  # A terminal that was hung up.
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


def is_given(fd: int) -> bool:
    """Whether there is something to read: a pipe, a file or a socket; neither a terminal nor /dev/null."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
