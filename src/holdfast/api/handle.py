"""A process as programs use it, on this host or on that of a server.

Shaped like ``asyncio.subprocess.Process``.  ``send_signal``, ``terminate`` and ``kill`` have to be awaited
here, because they may cross a network.
"""

from __future__ import annotations

import asyncio
import signal as signals
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.errors import OutOfTurn
from holdfast.model import Chunk, Ended, Exit, Outcome, Size, Stream, Usage
from holdfast.screens import ScreenSnapshot

from .feed import OutputBytes, OutputChunks, OutputFeed, Routes
from .lines import TextLines
from .opening import Opening
from .reader import LIMIT
from .stdin import StdinWriter
from .verbs import HandleVerbs

if TYPE_CHECKING:
    from holdfast.allowance import Allowance
    from holdfast.place import NamedProcess
    from holdfast.sandbox import Denial

DRAIN = 2.0
"""Seconds for which output is awaited after the exit, if another process holds it open."""

UNKNOWN = 255
"""The return code of a process whose end is not known, as in ``asyncio``."""

_LONG = 3600.0
"""Seconds after which a request that waits for an exit is repeated."""


class Handle(HandleVerbs):
    """A process that was started, or found by its name."""

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
        unread: Allowance | None = None,
        most: int | None = None,
        opening: Opening | None = None,
    ) -> None:
        """Handles are made by ``Host``, before anything else can run after the start of the process.

        Args:
            stdin: Whether the process has a stdin that can be written to.
            piped: Whether that is a pipe made for this handle, which ``communicate`` closes.
            ours: Whether leaving an ``async with`` block ends the process.
            after: For a process that was found, the number behind which reading begins.
            unread: How much unread output all handles of a host may hold together.
            most: Bytes after which its output is cut.  The host gives the piece in which that is whole.
            opening: How a terminal that was found begins.
        """
        self._process = process
        self._ours = ours
        self._piped = piped
        self._feed = OutputFeed(process, routes, after=after, unread=unread, most=most, opening=opening)
        self.shown = None if opening is None else opening.shown
        """What its terminal showed when it was attached to with ``snapshot``, if the host knows."""
        self.args = args
        """The command; empty if the process was found by its name."""
        self.stdin: StdinWriter | None = None
        """Its standard input; None unless it was started with ``stdin=PIPE``, or has a terminal."""
        if stdin:
            self.stdin = StdinWriter(process, can_end=process.can_end_stdin, wake=self._feed.wake)
            self._feed.before_wait = self.stdin.raise_trouble
        self.stdout: asyncio.StreamReader | None = self._feed.readers.get(Stream.STDOUT)
        """Its standard output; all output, if it has a terminal.  None if that is dropped."""
        self.stderr: asyncio.StreamReader | None = self._feed.readers.get(Stream.STDERR)
        """Its standard error; None if that is dropped, or part of ``stdout``."""

    def __repr__(self) -> str:
        state = "running" if self.returncode is None else f"returncode {self.returncode}"
        return f"<Handle {self.name!r} pid {self.pid}, {state}>"

    # Facts.

    @property
    def name(self) -> str:
        """What people call it on its host.  ``Host.attach`` finds the process by it.

        Another process may have this name once this one has ended.
        """
        return self._process.name

    @property
    def identifier(self) -> str:
        """What no other process of its host is ever called.  ``Host.attach`` finds it by this, too."""
        return self._process.identifier

    @property
    def pid(self) -> int | None:
        """Its process identifier on the host where it runs; None if a server does not send it."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, or -n after death by signal n; None while it runs."""
        end = self._process.exit
        return None if end is None else returncode(end)

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, and why; None while it runs."""
        end = self._process.exit
        return None if end is None else end.outcome

    @property
    def usage(self) -> Usage | None:
        """What it has used; None while it runs, and if the host does not measure it."""
        end = self._process.exit
        return None if end is None else end.usage

    @property
    def denials(self) -> tuple[Denial, ...]:
        """What its sandbox refused it, as far as the host saw that; empty while it runs."""
        end = self._process.exit
        return () if end is None or end.denied is None else end.denied.denials

    @property
    def dropped(self) -> int:
        """Bytes of output that ``truncate_output`` has cut off: by the host up to the exit, and here."""
        end = self._process.exit
        return self._feed.cut + (0 if end is None else end.dropped)

    # Output.

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the bytes of both outputs, in the order in which they came, up to their end."""
        return OutputBytes(self._feed)

    def chunks(self) -> AsyncIterator[Chunk]:
        """Iterate over the output as chunks, with stream and number.

        An iteration that was left can be continued with another one.

        Raises, when it is read:
            OutOfTurn: The output is read through ``stdout`` and ``stderr``.
            OutputGap: Some output is lost.  Iterate again to read what follows it.
            LinkLost: The connection is lost, and no more output will come.
            HoldfastError: Bytes written to stdin could not be delivered, and no call has raised that
                yet.  The process may wait for them for ever.  Iterate again to wait for it all the same.
        """
        return OutputChunks(self._feed)

    def lines(
        self,
        *,
        encoding: str = "utf-8",
        errors: str = "replace",
        universal: bool = True,
        limit: int = LIMIT,
    ) -> AsyncIterator[str]:
        """Iterate over the lines of ``stdout`` as text, each with its newline.

        A process that writes much to ``stderr`` meanwhile waits until somebody reads that, as with a pipe:
        read it in another task, or start the process with ``stderr`` as ``STDOUT`` or ``DEVNULL``.

        Args:
            encoding: How the output is encoded.  Bytes that are no text become U+FFFD; ``errors`` says what
                else could become of them.
            universal: Have CR and CR LF end a line, too, as a terminal and a progress bar write them.
            limit: Characters after which a line is given in pieces.  Only the last piece has a newline.

        Raises:
            OutOfTurn: ``stdout`` is dropped.

        Raises, when it is read:
            OutOfTurn: The output is read as chunks.
            OutputGap: Some output is lost.  Go on with the same iterator to read what follows it.
            LinkLost: The connection is lost, and no more output will come.
        """
        if self.stdout is None:
            raise OutOfTurn("there are no lines: stdout is dropped")
        return TextLines(self.stdout, encoding=encoding, errors=errors, universal=universal, limit=limit)

    async def communicate(
        self,
        input: bytes | None = None,  # noqa: A002  (as in asyncio)
        *,
        drain: float = DRAIN,
    ) -> tuple[bytes | None, bytes | None]:
        """Write ``input``, close stdin, and wait for all output and the end.

        It is no error if the process does not read its input.  If other processes hold the output open
        when this one has ended, they have ``drain`` seconds to finish.  Cancelling does nothing to the
        process, and the output so far can still be read.

        Raises:
            HoldfastError: The input could not be delivered.  The process goes on without it.
        """
        self.finish(input, drain=drain)
        await self._feed.collect()
        await self.wait()
        stdout = None if self.stdout is None else await self.stdout.read()
        stderr = None if self.stderr is None else await self.stderr.read()
        return stdout, stderr

    def finish(self, input: bytes | None, *, drain: float | None) -> None:  # noqa: A002
        """Write ``input``, close stdin, and end the output ``drain`` seconds after the exit at the latest."""
        # A terminal is not closed, and neither is the stdin of a process that others write to.
        if self.stdin is not None and (input is not None or self._piped):
            self.stdin.finish(input)
        if drain is not None:
            self._feed.expect_end(drain)

    # The end.

    async def wait(self) -> Outcome:
        """Wait for the exit of the process, whether or not others hold its output open.

        Any number of tasks may wait.  Cancelling does nothing to the process.  As in ``asyncio``, a
        process with much output does not exit before somebody reads it; ``communicate`` does so.

        Raises:
            LinkLost: The connection is lost, and how the process ends will not be known.
            HoldfastError: Bytes written to stdin could not be delivered, and no call has raised that
                yet.  The process may wait for them for ever.  Call this again to wait all the same.
        """
        if self.stdin is None or self._process.exit is not None:
            return await self._end_of_it()
        with self.stdin.raising_trouble():
            return await self._end_of_it()

    async def _end_of_it(self) -> Outcome:
        while (end := await self._process.wait(_LONG)) is None:
            pass
        return end.outcome

    async def send_signal(self, signal: int) -> None:
        """Send a signal to the process group.  Does nothing once the process has ended.

        Raises:
            SignalFailed: The host refused to deliver it.
        """
        await self._process.signal(signal)

    async def terminate(self) -> None:
        """Send SIGTERM to the process group, which asks it to end."""
        await self.send_signal(signals.SIGTERM)

    async def kill(self) -> None:
        """Send SIGKILL to the process group.  Processes that have left the group survive; see ``end``."""
        await self.send_signal(signals.SIGKILL)

    async def end(self, grace: float = 0.0) -> Ended:
        """End the process and everything it has started; return when all are gone.

        Args:
            grace: Seconds between SIGTERM and SIGKILL; 0 to kill at once.
        """
        return await self._process.end(grace=grace)

    async def resize(self, size: Size) -> None:
        """Change the size of its terminal.

        Raises:
            NoTerminal: It has none.
        """
        await self._process.resize(size)

    async def snapshot(self) -> ScreenSnapshot:
        """Return what its terminal shows; ``Unsupported`` is raised by hosts without the extra ``screen``."""
        return await self._process.snapshot()

    def detach(self) -> None:
        """Stop reading its output, and let it go on.  ``Host.attach`` reads on."""
        self._feed.stop()
        self._process.release()

    async def __aenter__(self) -> Handle:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process and everything it has started, if it runs; detach from one that is kept."""
        self.detach()
        if self._ours and self._process.exit is None:
            await self.end()


def returncode(end: Exit) -> int:
    """Return the exit code, or -n after death by signal n."""
    outcome = end.outcome
    if outcome.signal is not None:
        return -outcome.signal
    return UNKNOWN if outcome.exit_code is None else outcome.exit_code
