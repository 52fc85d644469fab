"""One process in the hands of a program, near or far.

Shaped like ``asyncio.subprocess.Process``.  What crosses a network there has to be
awaited, hence ``send_signal``, ``terminate`` and ``kill`` are.
"""

from __future__ import annotations

import asyncio
import signal as signals
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.model import Chunk, Ended, Exit, Outcome, Size, Stream, Usage

from .feed import Feed, Routes
from .stdin import Stdin

if TYPE_CHECKING:
    from .place import NamedProcess

DRAIN = 2.0
"""Seconds after the exit for which output is waited, if somebody else holds it open."""

UNKNOWN = 255
"""The return code of a process of which nobody knows how it ended; ``asyncio`` has the same."""

_LONG = 3600.0
"""Seconds of one wait for an exit; then the next one begins."""


class Handle:
    """A process that was started, or found."""

    def __init__(
        self,
        process: NamedProcess,
        args: Sequence[str],
        routes: Routes,
        *,
        stdin: bool,
        piped: bool = False,
        ours: bool = True,
        after: int | None = None,
    ) -> None:
        """Made by ``Host``, without a wait after the process was started.

        Args:
            stdin: Whether it may be written to.
            piped: Whether that is a pipe of ours, which can be closed.
            ours: Whether the process ends with this handle, when it is used as a context.
            after: For a process that was found: the number behind which to read.
        """
        self._process = process
        self._ours = ours
        self._piped = piped
        self._feed = Feed(process, routes, after=after)
        self.args = args
        """The command; empty if the process was found by its name."""
        self.stdin = Stdin(process, can_end=process.can_end_stdin) if stdin else None
        self.stdout: asyncio.StreamReader | None = self._feed.readers.get(Stream.STDOUT)
        """What it says; for a terminal, all of it."""
        self.stderr: asyncio.StreamReader | None = self._feed.readers.get(Stream.STDERR)

    def __repr__(self) -> str:
        state = "running" if self.returncode is None else f"returncode {self.returncode}"
        return f"<Handle {self.name!r} pid {self.pid}, {state}>"

    # What it is.

    @property
    def name(self) -> str:
        """What it is called at its host: ``Host.attach`` finds it by this."""
        return self._process.name

    @property
    def pid(self) -> int | None:
        """The kernel's name for it, on the host where it runs; None if that host does not tell."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; its exit code, or -n after death by signal n."""
        end = self._process.exit
        return None if end is None else returncode(end)

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, and why; None while it runs."""
        end = self._process.exit
        return None if end is None else end.outcome

    @property
    def usage(self) -> Usage | None:
        """What it has used, once it has ended and if its host tells."""
        end = self._process.exit
        return None if end is None else end.usage

    # What it says.

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The bytes of both outputs, in the order in which they came, up to the end of the output."""
        return _Bytes(self._feed)

    def chunks(self) -> AsyncIterator[Chunk]:
        """The same with streams and numbers.  Who breaks off can go on.

        Raises, when it is read:
            OutOfTurn: The output is read through ``stdout`` and ``stderr``.
            OutputGap: Some of it is lost.  Who reads on gets what is behind it.
            LinkLost: There will be no more.
        """
        return _Chunks(self._feed)

    async def communicate(
        self,
        input: bytes | None = None,  # noqa: A002  (as in asyncio)
        *,
        drain: float = DRAIN,
    ) -> tuple[bytes | None, bytes | None]:
        """Write ``input``, close stdin, and wait for all output and the end.

        A process that does not want its input is none the worse for it.  If others
        hold the output open when it has ended, they are given ``drain`` seconds.
        Cancelling does nothing to the process, and what it said can still be read.
        """
        self.finish(input, drain=drain)
        await self._feed.collect()
        await self.wait()
        stdout = None if self.stdout is None else await self.stdout.read()
        stderr = None if self.stderr is None else await self.stderr.read()
        return stdout, stderr

    def finish(self, input: bytes | None, *, drain: float | None) -> None:  # noqa: A002
        """Close stdin, behind ``input``, and give the output ``drain`` seconds once the process has ended."""
        if self.stdin is not None and not self.stdin.is_closing():
            if input is not None:
                self.stdin.write(input)
            if input is not None or self._piped:  # A terminal is for typing, and that of others for them.
                self.stdin.write_eof()
        if drain is not None:
            self._feed.expect_end(drain)

    # Its end.

    async def wait(self) -> Outcome:
        """Wait for its end, however long others hold its output open.

        Any number of tasks may wait.  Cancelling does nothing to the process.  A
        process whose output nobody reads may have to wait for that: then so does
        this, as in ``asyncio``; ``communicate`` does not.

        Raises:
            LinkLost: Nobody will tell how it ends.
        """
        end: Exit | None = None
        while end is None:
            end = await self._process.wait(_LONG)
        return end.outcome

    async def send_signal(self, signal: int) -> None:
        """Send a signal to the process and its group.  Does nothing once it has ended.

        Raises:
            SignalFailed: The host would not deliver it.
        """
        await self._process.signal(signal)

    async def terminate(self) -> None:
        """Ask it to end: SIGTERM."""
        await self.send_signal(signals.SIGTERM)

    async def kill(self) -> None:
        """Kill it and its group: SIGKILL.  What left the group stays; ``end`` gets that too."""
        await self.send_signal(signals.SIGKILL)

    async def end(self, grace: float = 0.0) -> Ended:
        """End it and everything it has started; return when they are gone.

        With ``grace``, they are asked first, and killed so many seconds later.
        """
        return await self._process.terminate(grace=grace)

    async def resize(self, size: Size) -> None:
        """Give its terminal another size.

        Raises:
            NoTerminal: It has none.
        """
        await self._process.resize(size)

    def detach(self) -> None:
        """Read no more of it, and let it go on.  What it says can be read by another ``attach``."""
        self._feed.stop()
        self._process.release()

    async def __aenter__(self) -> Handle:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process and everything it has started, if it runs; let go of one that is kept."""
        self.detach()
        if self._ours and self._process.exit is None:
            await self.end()


def returncode(end: Exit) -> int:
    """The exit code, or -n after death by signal n."""
    outcome = end.outcome
    if outcome.signal is not None:
        return -outcome.signal
    return UNKNOWN if outcome.exit_code is None else outcome.exit_code


class _Chunks(AsyncIterator[Chunk]):
    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def __anext__(self) -> Chunk:
        chunk = await self._feed.chunk()
        if chunk is None:
            raise StopAsyncIteration
        return chunk


class _Bytes(AsyncIterator[bytes]):
    def __init__(self, feed: Feed) -> None:
        self._chunks = _Chunks(feed)

    async def __anext__(self) -> bytes:
        return (await self._chunks.__anext__()).data
