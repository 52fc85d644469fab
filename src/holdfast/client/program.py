"""A server that is a program of ours: messages are lines on its standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE

from holdfast.config import MIB
from holdfast.wire.jsonrpc import Lines, LineTooLong

from .address import Program
from .channel import ChannelBase, NoConnection

_MOST_UNSENT = MIB
"""Bytes that may wait to be sent before whoever sends more has to wait."""

_LINE_MOST = 128 * MIB
"""A message of a server: twice of what it may send as one."""

_GOODBYE_SECONDS = 5.0
"""How long the program has to end by itself when its input has ended."""

_LAST_WORDS_SECONDS = 1.0
"""How long the output of a program that has ended is waited for."""


class ProgramChannel(ChannelBase, asyncio.SubprocessProtocol):
    """One such program.  Implements ``channel.Channel``."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._lines = Lines(_LINE_MOST)
        self._leaving = False
        self._pidfd = -1
        self._transport: asyncio.SubprocessTransport | None = None
        self._last_words: asyncio.TimerHandle | None = None

    # Implements ``asyncio.SubprocessProtocol``.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        with contextlib.suppress(ProcessLookupError):
            self._pidfd = os.pidfd_open(transport.get_pid())

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.received_at = self.loop.time()
        try:
            for line in self._lines.feed(data):
                if line:
                    self.tell(line)
        except LineTooLong:
            self.cut("the server broke the protocol: a line is too long")

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd:
            self.cut("the server ended" if exc is None else str(exc))
        elif not self._leaving:
            self._end_soon()

    def process_exited(self) -> None:
        self._end_soon()

    def _end_soon(self) -> None:
        # What it said last may still be in the pipe, and somebody else may hold that open for ever.
        if self._last_words is None:
            self._last_words = self.loop.call_later(_LAST_WORDS_SECONDS, self.cut, "the server ended")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._last_words is not None:
            self._last_words.cancel()
        self.end("the server ended")
        if self._transport is not None:
            self._transport.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        self.leave()

    # Implements ``channel.Channel``.

    @property
    def _stdin(self) -> asyncio.WriteTransport | None:
        pipe = None if self._transport is None else self._transport.get_pipe_transport(0)
        return pipe if isinstance(pipe, asyncio.WriteTransport) else None

    def send(self, message: bytes) -> None:
        stdin = self._stdin
        if stdin is not None and not self.broken:
            stdin.write(message + b"\n")

    def ping(self) -> None:
        pass  # A pipe whose other end is gone says so.

    def cut(self, reason: str) -> None:
        self.end(reason)
        transport = self._transport
        if transport is not None and not self.gone.done():
            # Not by its transport, nor all of that closed: both take the exit away from who waits for it.
            if self._pidfd >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            for fd in (0, 1):
                pipe = transport.get_pipe_transport(fd)
                if pipe is not None:
                    pipe.close()

    async def aclose(self) -> None:
        self._leaving = True
        stdin = self._stdin
        if stdin is not None:
            stdin.close()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self.gone), _GOODBYE_SECONDS)
        finally:
            self.cut("closed")
        await self.gone


async def start(address: Program) -> ProgramChannel:
    """Start the program that is the server; what it says on stderr goes to ours.

    Raises:
        NoConnection: It cannot be started.
    """
    loop = asyncio.get_running_loop()
    try:
        _, made = await loop.subprocess_exec(
            lambda: ProgramChannel(loop), *address.argv, stdin=PIPE, stdout=PIPE, stderr=None
        )
    except OSError as error:
        raise NoConnection(f"{address.argv[0]}: {error.strerror}", final=True) from None
    return made
