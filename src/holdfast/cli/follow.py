"""Follows a process in the foreground: output, input, signals and terminal sizes, until it ends.

``run``, ``exec`` and ``attach`` share this, on a server and without one.

What must hold:

1. Standard output and standard error carry the output of the process and nothing else.
2. Nothing is read faster than it can be passed on, so neither output nor input piles up here.
3. However it ends, all tasks have ended before ``follow`` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import termios
from collections.abc import AsyncIterator, Coroutine, Iterable

from holdfast.api.handle import Handle
from holdfast.errors import OutputGap, StdinFailed
from holdfast.model import Chunk, Outcome, Size
from holdfast.terminal.resets import TerminalMarks
from holdfast.value import value

from . import terminal
from .connection import ConnectionState, left
from .explain import code_of, command, dropped, remark
from .line_keys import LineTerminal, handing_over, is_in_foreground
from .record import CastWriter
from .report import ExitCode, say
from .show import denial_documents, outcome_document, usage_document
from .sink import OutputSink
from .streams import DescriptorReader
from .terminal import KeyScanner, viewed

_AGAIN = 2.0
"""Seconds within which a second ^C means that the first was not enough."""

_LINGER = 2.0
"""Seconds of silence after the exit that end the wait for output, if others hold it open."""

_REDRAWN = 0.3
"""Seconds in which a program redraws its screen for another size, if it does so at all."""

_DRAWN = 0.05
"""Seconds of silence after which a screen is complete.  A program that draws may miss a further change."""

_CLAIM = 1.0
"""Seconds after which whoever types tells the size again: somebody else may have another one."""

_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@value
class Manner:
    """How a process is followed."""

    stdin: bool = False
    """Pass our standard input on to it."""
    lines: bool = False
    """Look for the detach keys in the lines that are typed; for a terminal that is not raw."""
    leaves: bool = False
    """Whether ^C leaves the process: nothing is passed on to it."""
    back: str = ""
    """The command line that comes back to the process when it was left."""
    connection: ConnectionState | None = None
    """The connection to its server, if it has one."""
    raw: bool = False
    """Pass on each key and each change of the size, because the process and we have a terminal."""
    keys: bytes = b""
    """The detach keys.  They leave the process running, if it is detachable."""
    detachable: bool = False
    """Whether it goes on when it is left."""
    ours: bool = True
    """Whether a signal that ends us ends the process, too."""
    redraw: int | None = None
    """Have the program redraw its screen once the output up to this number was shown; 0 for at once."""
    grace: float = 5.0
    """Seconds between the request to end and the kill."""
    json: bool = False
    """Write output and end as lines of JSON."""
    quiet: bool = False
    """Print no messages of our own."""
    record: CastWriter | None = None
    """Records what is shown."""


async def follow(handle: Handle, manner: Manner, first: Iterable[Chunk] = ()) -> int:
    """Follow a process until it has ended, or the user leaves it; return the exit code.

    Args:
        first: Output to write before that of the handle.

    Raises:
        HoldfastError: It cannot be followed any further, for example because the connection is lost.
    """
    process = ForegroundProcess(handle, manner, asyncio.get_running_loop(), first)
    try:
        if manner.raw:
            with terminal.raw(0) as screen:
                return await process.to_end(screen)
        if manner.lines:
            with handing_over(0, manner.keys) as lines:
                return await process.to_end(None, lines)
        return await process.to_end(None)
    finally:
        process.close()
        process.leave_terminal()
        if process.last_message and not manner.quiet:
            say(process.last_message)


class ForegroundProcess:
    """A process while it is followed, with the tasks that do so."""

    def __init__(
        self, handle: Handle, manner: Manner, loop: asyncio.AbstractEventLoop, first: Iterable[Chunk]
    ) -> None:
        self._handle = handle
        self._manner = manner
        self._loop = loop
        self._screen: terminal.Terminal | None = None
        self._lines: LineTerminal | None = None
        self._input: asyncio.Task[None] | None = None
        self._first = first
        self._sink = OutputSink(loop, json=manner.json)
        self._chunk_count = 0
        self._chunk_arrived = asyncio.Event()
        self._gap: str | None = None  # A message about output that was lost.
        self._is_incomplete = False  # Whether the gap makes this a failure.
        self._output_ended: asyncio.Future[None] = loop.create_future()
        self._done: asyncio.Future[int] = loop.create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._signals: asyncio.Queue[int] = asyncio.Queue()
        self._end_requests = 0  # How often a signal asked us to end.
        self._end_requested_at = float("-inf")
        # What our terminal is told by the process, to be undone at the end.
        shows = manner.raw and not manner.json and terminal.is_terminal(1)
        self._marks = TerminalMarks() if shows else None
        self._resized_at = float("-inf")
        self.last_message: str | None = None
        """A message for the user, to be printed when the terminal is no longer raw."""

    async def to_end(self, screen: terminal.Terminal | None, lines: LineTerminal | None = None) -> int:
        """Follow the process; return the exit code.

        Args:
            screen: Our terminal, if it is in raw mode.
            lines: Our terminal, if the detach keys are looked for in lines.
        """
        self._screen, self._lines = screen, lines
        caught = [signal.SIGINT, signal.SIGQUIT, *_END_SIGNALS]
        if screen is not None:
            caught += [signal.SIGWINCH, signal.SIGCONT]
        if lines is not None:
            caught += [signal.SIGCONT]
        for number in caught:
            self._loop.add_signal_handler(number, self._signals.put_nowait, number)
        try:
            self._begin(self._pass_output())
            self._begin(self._await_end())
            self._begin(self._handle_signals())
            if self._manner.stdin or lines is not None:
                self._input = self._begin(self._pass_input())
            if self._manner.connection is not None:
                self._manner.connection.listen(self._on_connection_change)
            return await self._done
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for number in caught:
                self._loop.remove_signal_handler(number)

    def close(self) -> None:
        """Close what was opened here."""
        self._sink.close()

    def leave_terminal(self) -> None:
        """Put our terminal back into its usual state, whatever the process has made of it."""
        if self._marks is not None and (undo := self._marks.undo()):
            with contextlib.suppress(OSError):
                os.write(1, undo)

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_finished)
        return task

    def _on_finished(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._done.done():
            self._done.set_exception(error)

    def _finish(self, code: int, message: str | None = None) -> None:
        if not self._done.done():
            self.last_message = message
            self._done.set_result(code)

    # Output.

    async def _pass_output(self) -> None:
        try:
            for chunk in self._first:
                await self._sink.write_chunk(chunk)
            redraw = self._manner.redraw if self._screen is not None else None
            if redraw == 0:
                self._begin(self._redraw())
            async for chunk in self._chunks():
                self._chunk_count += 1
                self._chunk_arrived.set()
                if self._marks is not None:
                    self._marks.feed(chunk.data)
                await self._sink.write_chunk(chunk)
                if self._manner.record is not None:
                    self._manner.record.output(chunk.data)
                if redraw and chunk.seq >= redraw:
                    redraw = None
                    self._begin(self._redraw())
        except BrokenPipeError:
            if self._manner.ours:
                await self._handle.end()
            self._finish(ExitCode.BROKEN_PIPE)
        else:
            self._output_ended.set_result(None)

    async def _chunks(self) -> AsyncIterator[Chunk]:
        """Yield the output.  A gap does not end it; a message at the end reports it."""
        while True:
            try:
                async for chunk in self._handle.chunks():
                    yield chunk
            except OutputGap as gap:
                self._gap = str(gap)
                # For a process that was found, a missing beginning is normal.
                self._is_incomplete = self._is_incomplete or self._manner.ours or self._chunk_count > 0
            else:
                return

    async def _await_end(self) -> None:
        outcome = await self._handle.wait()
        message = None
        while not self._output_ended.done():
            count = self._chunk_count
            done, _ = await asyncio.wait((self._output_ended,), timeout=_LINGER)
            if not done and count == self._chunk_count and not self._sink.busy:
                message = "its output is held open by others whom it has started; they are not waited for"
                break
        code = ExitCode.FAILED if self._is_incomplete else code_of(outcome)
        if self._manner.json:
            await self._write_end(outcome)
            message = message or self._gap
        else:
            said = remark(outcome, self._handle.denials) or dropped(self._handle.dropped)
            message = self._gap or said or message
        self._finish(code, message)

    async def _write_end(self, outcome: Outcome) -> None:
        document = {
            "name": self._handle.name,
            "exitCode": code_of(outcome),
            "outcome": outcome_document(outcome),
            "usage": usage_document(self._handle.usage),
            "denials": denial_documents(self._handle.denials),
            "droppedBytes": self._handle.dropped,
        }
        try:
            await self._sink.write_document(document)
        except BrokenPipeError:
            self._finish(ExitCode.BROKEN_PIPE)

    # Input.

    async def _pass_input(self) -> None:
        """Pass on our standard input, if it is to be, and look for the detach keys, if there are any."""
        watched = self._manner.raw or self._manner.lines
        stdin = self._handle.stdin if self._manner.stdin else None
        reader = DescriptorReader(0, self._loop)
        scanner = KeyScanner(self._manner.keys if watched else b"", passes_keys=not self._manner.detachable)
        while stdin is not None or watched:
            data = await reader.read()
            passed, found = scanner.feed(data)
            if stdin is not None:
                # It may read no more input.  That is no failure of ours, and its end will be reported.
                with contextlib.suppress(BrokenPipeError, StdinFailed):
                    if data:
                        self._claim_size()
                        if self._manner.record is not None:
                            self._manner.record.input(passed)
                        stdin.write(passed)
                        await stdin.drain()
                    else:
                        stdin.write(scanner.rest())
                        stdin.write_eof()
                        if not watched:
                            await stdin.wait_closed()
                if not data or stdin.is_closing():
                    stdin = None
            if found:
                self._leave()
            # At a terminal more may be typed after the key that means the end, the detach keys for example.
            if not data and not terminal.is_terminal(0):
                return

    def _leave(self, code: int = 0) -> None:
        """Leave the process running, if it can be."""
        manner = self._manner
        if manner.detachable:
            name = self._handle.name
            self._finish(code, left(name, manner.back or command("attach", name), manner.connection))
        else:
            os.write(2, b"\r\nholdfast: there is nothing to detach from: the process ends with this one\r\n")

    # The connection.

    @property
    def _is_cut_off(self) -> bool:
        return self._manner.connection is not None and self._manner.connection.is_lost

    def _on_connection_change(self, connected: bool) -> None:  # noqa: FBT001  (a callback with one fact)
        """Without a connection ^C means us: it would not reach the process."""
        if self._screen is not None and not self._done.done():
            with contextlib.suppress(termios.error):
                self._screen.raw() if connected else self._screen.raw_but_interrupt()

    def _give_up(self, number: int) -> None:
        """Leave because of a signal while there is no connection."""
        if self._manner.detachable:
            self._leave(128 + number)
        else:
            server = self._manner.connection.server if self._manner.connection else None
            name = self._handle.name
            self._finish(128 + number, f"no connection to {server}; {name} ends there with its session, soon")

    # Signals.

    async def _handle_signals(self) -> None:
        if self._screen is not None:
            await self._resize()  # The size may have changed since the process was started.
        while True:
            number = await self._signals.get()
            if number == signal.SIGWINCH:
                await self._resize()
            elif number == signal.SIGCONT:
                await self._continue()
            elif self._is_cut_off:
                self._give_up(number)
            elif number == signal.SIGINT and self._manner.leaves:
                self._leave(ExitCode.INTERRUPTED)
            elif number == signal.SIGQUIT:
                self._begin(self._handle.send_signal(number))
            elif number == signal.SIGINT:
                self._interrupt()
            elif not self._manner.ours or (number == signal.SIGHUP and self._manner.detachable):
                self._finish(128 + number)
            else:
                self._stop(number)

    async def _continue(self) -> None:
        """Go on after a stop: the shell that was in the foreground meanwhile has changed the mode."""
        if self._screen is not None:
            self._screen.raw()
            await self._resize()
        elif self._lines is not None and is_in_foreground(0):
            self._lines.enter()
            if self._input is None or self._input.done():
                self._input = self._begin(self._pass_input())
        elif self._input is not None and not self._manner.stdin:
            self._input.cancel()  # To read in the background would stop us again.

    async def _resize(self) -> None:
        size = terminal.screen_size()
        if size is not None:
            self._resized_at = self._loop.time()
            if self._manner.record is not None:
                self._manner.record.resized(Size(*viewed(*size)))
            await self._handle.resize(Size(*viewed(*size)))

    def _claim_size(self) -> None:
        """Of several people who look at one terminal, the one who types has the size."""
        if self._screen is not None and self._loop.time() - self._resized_at >= _CLAIM:
            self._resized_at = self._loop.time()
            self._begin(self._resize())

    async def _redraw(self) -> None:
        """Have a full-screen program draw its whole screen; a program that draws nothing is not disturbed.

        The kernel reports only a size that differs from the last one, and some programs draw only if it
        still differs when they look.  So the size stays different until the program has drawn.
        """
        size = terminal.screen_size()
        if size is None:
            return
        rows, cols = size
        await self._handle.resize(Size(rows - 1 if rows > 1 else rows + 1, cols))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REDRAWN):
                silence = _REDRAWN
                while await self._has_output_within(silence):
                    silence = _DRAWN
        await self._resize()

    async def _has_output_within(self, seconds: float) -> bool:
        self._chunk_arrived.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._chunk_arrived.wait()
        return False

    def _interrupt(self) -> None:
        """Handle ^C: pass the first one on; the second ends the process; the third does not wait for that.

        A process that is not ours is never ended: the second leaves it.
        """
        now = self._loop.time()
        if now - self._end_requested_at > _AGAIN:
            self._end_requests = 0
        self._end_requested_at = now
        self._end_requests += 1
        if self._end_requests == 1:
            self._begin(self._handle.send_signal(signal.SIGINT))
        elif not self._manner.ours and self._manner.detachable:
            self._leave(ExitCode.INTERRUPTED)
        elif self._end_requests == 2:
            self._begin(self._end(self._manner.grace))
        else:
            self._finish(128 + signal.SIGINT)

    def _stop(self, number: int) -> None:
        """Handle a request to end: end the process, the second time without grace, the third time leave."""
        self._end_requests += 1
        if self._end_requests > 2:
            self._finish(128 + number)
        else:
            self._begin(self._end(self._manner.grace if self._end_requests == 1 else 0.0))

    async def _end(self, grace: float) -> None:
        await self._handle.end(grace)
