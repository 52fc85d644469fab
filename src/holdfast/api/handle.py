"""A process as programs use it, on this host or on that of a server, and commands that are run to their end.

Shaped like ``asyncio.subprocess.Process``.  ``send_signal``, ``terminate`` and ``kill`` have to be awaited
here, because they may cross a network.
"""

from __future__ import annotations

import asyncio
import signal as signals
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from subprocess import PIPE
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TextIO, TypeVar

from holdfast.errors import HoldfastError, LinkLost
from holdfast.model import Chunk, Ended, Exit, Kind, Outcome, Size, Stream, Usage
from holdfast.value import value

from .feed import OutputBytes, OutputChunks, OutputFeed, Routes
from .options import Options, Text
from .stdin import StdinWriter

if TYPE_CHECKING:
    from holdfast.allowance import Allowance
    from holdfast.place import NamedProcess
    from holdfast.sandbox import Denial

    from .host import Host

DRAIN = 2.0
"""Seconds for which output is awaited after the exit, if another process holds it open."""

UNKNOWN = 255
"""The return code of a process whose end is not known, as in ``asyncio``."""

_LONG = 3600.0
"""Seconds after which a request that waits for an exit is repeated."""


class Handle:
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
    ) -> None:
        """Handles are made by ``Host``, before anything else can run after the start of the process.

        Args:
            stdin: Whether the process has a stdin that can be written to.
            piped: Whether that is a pipe made for this handle, which ``communicate`` closes.
            ours: Whether leaving an ``async with`` block ends the process.
            after: For a process that was found: the number behind which reading begins.
            unread: How much unread output all handles of a host may hold together.
        """
        self._process = process
        self._ours = ours
        self._piped = piped
        self._feed = OutputFeed(process, routes, after=after, unread=unread)
        self.args = args
        """The command; empty if the process was found by its name."""
        self.stdin: StdinWriter | None = None
        if stdin:
            self.stdin = StdinWriter(process, can_end=process.can_end_stdin, wake=self._feed.wake)
            self._feed.before_wait = self.stdin.raise_trouble
        self.stdout: asyncio.StreamReader | None = self._feed.readers.get(Stream.STDOUT)
        """Its standard output; all output, if it has a terminal.  None if that is dropped."""
        self.stderr: asyncio.StreamReader | None = self._feed.readers.get(Stream.STDERR)

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


# Commands that are run to their end: input, output, timeout, and the result or the error.

T_co = TypeVar("T_co", bound=bytes | str | None, covariant=True)


class CommandFailed(HoldfastError, subprocess.CalledProcessError):
    """A command with ``check`` failed; ``returncode``, ``stdout`` and ``stderr`` are those of the command."""

    def __init__(self, completed: Completed[bytes | str | None]) -> None:
        subprocess.CalledProcessError.__init__(
            self, completed.returncode, completed.args, completed.stdout, completed.stderr
        )
        self.outcome = completed.outcome

    def __reduce__(self) -> tuple[type[CommandFailed], tuple[Completed[bytes | str | None]]]:
        made = Completed(list(self.cmd), self.returncode, self.stdout, self.stderr, self.outcome)
        return CommandFailed, (made,)

    def __str__(self) -> str:
        why = subprocess.CalledProcessError.__str__(self)
        return why if self.outcome.detail is None else f"{why[:-1]} ({self.outcome.detail})."


class TimedOut(HoldfastError, subprocess.TimeoutExpired):
    """A command took too long and was ended; ``stdout`` and ``stderr`` have its output up to then."""

    def __init__(
        self,
        cmd: Sequence[str],
        timeout: float,
        output: bytes | str | None = None,
        stderr: bytes | str | None = None,
    ) -> None:
        subprocess.TimeoutExpired.__init__(self, cmd, timeout, output, stderr)

    def __reduce__(self) -> tuple[type[TimedOut], tuple[object, ...]]:
        return TimedOut, (self.cmd, self.timeout, self.output, self.stderr)

    def __str__(self) -> str:
        return subprocess.TimeoutExpired.__str__(self)


@value
class Completed(Generic[T_co]):
    """The result of a command.  Shaped like ``subprocess.CompletedProcess``."""

    args: Sequence[str]
    returncode: int
    """The exit code, or -n after death by signal n."""
    stdout: T_co
    """None if it was not captured."""
    stderr: T_co
    """None if it was not captured, or is part of ``stdout``."""
    outcome: Outcome
    """How it ended, and why."""
    usage: Usage | None = None
    denials: tuple[Denial, ...] = ()
    """What its sandbox refused it, as far as the host saw it."""

    def check_returncode(self) -> None:
        """Raise an error if the command failed.

        Raises:
            CommandFailed: The return code is not 0.
        """
        if self.returncode:
            raise CommandFailed(self)


Sinks = dict[Stream, Callable[[bytes], object]]


class Coding:
    """Whether input and output are text, and in which encoding."""

    def __init__(
        self, *, text: bool | None = None, encoding: str | None = None, errors: str | None = None
    ) -> None:
        self._is_text = bool(text or encoding or errors)
        self._encoding = encoding or "utf-8"
        self._errors = errors or "strict"

    def encode(self, given: bytes | str) -> bytes:
        return given.encode(self._encoding, self._errors) if isinstance(given, str) else given

    def decode(self, data: bytearray | None) -> bytes | str | None:
        if data is None:
            return None
        if not self._is_text:
            return bytes(data)
        # As ``subprocess`` does it.
        return data.decode(self._encoding, self._errors).replace("\r\n", "\n").replace("\r", "\n")


async def run_to_end(
    host: Host,
    argv: Sequence[Text],
    options: Options,
    *,
    given: bytes | str | None,
    capture: bool,
    coding: Coding,
) -> Completed[bytes | str | None]:
    """Run a command to its end; see ``Host.run``."""
    if given is not None:
        if options.get("stdin") is not None:
            raise ValueError("stdin and input arguments may not both be used.")
        options["stdin"] = PIPE
    captured, sinks = _outputs(options, capture=capture)
    # The host enforces the drain, even if the connection is lost meanwhile.
    drain = options.setdefault("drain", DRAIN)
    handle = await host.start(argv, **options)
    try:
        handle.finish(None if given is None else coding.encode(given), drain=drain)
        async for chunk in handle.chunks():
            sinks[chunk.stream](chunk.data)
        await handle.wait()
    except LinkLost:
        raise
    except BaseException as error:
        handle.detach()
        try:
            await handle.end()
        except HoldfastError as further:
            error.add_note(f"The command may go on: {further}")
        raise
    stdout, stderr = (coding.decode(captured.get(stream)) for stream in (Stream.STDOUT, Stream.STDERR))
    return _completed(handle, options, stdout, stderr)


def _outputs(options: Options, *, capture: bool) -> tuple[dict[Stream, bytearray], Sinks]:
    """Return the buffers, and what to do with each output; change the options to those of a start."""
    if capture:
        if options.get("stdout") is not None or options.get("stderr") is not None:
            raise ValueError("stdout and stderr arguments may not be used with capture_output.")
        options["stdout"] = options["stderr"] = PIPE
    captured: dict[Stream, bytearray] = {}
    sinks: Sinks = {}
    if options.get("stdout") is None:
        options["stdout"] = PIPE
        sinks[Stream.STDOUT] = _passed_on_to(sys.stdout)
    elif options["stdout"] == PIPE:
        captured[Stream.STDOUT] = bytearray()
    if options.get("stderr") is None:
        options["stderr"] = PIPE
        sinks[Stream.STDERR] = _passed_on_to(sys.stderr)
    elif options["stderr"] == PIPE:
        captured[Stream.STDERR] = bytearray()
    sinks.update((stream, data.extend) for stream, data in captured.items())
    return captured, sinks


def _passed_on_to(file: TextIO | None) -> Callable[[bytes], object]:
    """Return a function that writes bytes to one of our outputs; if there is none, they are dropped."""

    def write(data: bytes) -> None:
        if file is None:
            return
        raw = getattr(file, "buffer", None)
        if raw is None:  # It was replaced by a text stream, as in notebooks.
            file.write(data.decode(errors="replace"))
        else:
            file.flush()
            raw.write(data)
        file.flush()

    return write


def _completed(
    handle: Handle, options: Options, stdout: bytes | str | None, stderr: bytes | str | None
) -> Completed[bytes | str | None]:
    code, outcome = handle.returncode, handle.outcome
    assert code is not None
    assert outcome is not None
    limits = {Kind.TIMEOUT: options.get("timeout"), Kind.IDLE_TIMEOUT: options.get("idle_timeout")}
    seconds = limits.get(outcome.kind)
    if seconds is not None:
        raise TimedOut(handle.args, seconds, stdout, stderr)
    return Completed(handle.args, code, stdout, stderr, outcome, handle.usage, handle.denials)
