"""An output of a child, and the end of it that the child would hold."""

from __future__ import annotations

import asyncio
import os
import pty
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.backend import Valve
from holdfast.engine.output import Output
from holdfast.model import Stream
from holdfast.poller import Poller
from tests.fakes.process import PATIENCE, open_files


class Listener:
    """The process behind an output: keeps what it is told."""

    def __init__(self) -> None:
        self.valves: tuple[Valve, ...] = ()
        self.writes = 0
        self.pieces: list[bytes] = []
        self.streams: set[Stream] = set()
        self.over = False
        self.then: Callable[[], None] = lambda: None
        self._news = asyncio.Event()

    def said(self, stream: Stream, data: bytes) -> None:
        self.streams.add(stream)
        self.pieces.append(data)
        self._news.set()
        self.then()

    def ended(self, output: Output) -> None:
        self.over = True
        self._news.set()

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    async def when(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()


class Line:
    """An output and the end that the child would hold."""

    def __init__(self, *, terminal: bool) -> None:
        if terminal:
            fd, self.child = pty.openpty()
            tty.setraw(self.child)
        else:
            fd, self.child = os.pipe()
        os.set_blocking(fd, False)
        os.set_blocking(self.child, False)
        self.fd = fd
        loop = asyncio.get_running_loop()
        self.listener = Listener()
        self.poller = Poller()
        self.poller.attach(loop)
        stream = Stream.PTY if terminal else Stream.STDOUT
        self.output = Output(stream, fd, self.listener, loop=loop, poller=self.poller)

    def hang_up(self) -> None:
        os.close(self.child)
        self.child = -1

    def close(self) -> None:
        self.output.close()
        self.poller.close()
        if self.child >= 0:
            self.hang_up()

    def fill(self) -> int:
        """Write as much as there is room for."""
        total = 0
        try:
            while True:
                total += os.write(self.child, b"f" * 4096)
        except BlockingIOError:
            return total


@contextmanager
def line(*, terminal: bool = False) -> Iterator[Line]:
    before = open_files()
    made = Line(terminal=terminal)
    try:
        yield made
    finally:
        made.close()
    assert open_files().items() <= before.items()


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
