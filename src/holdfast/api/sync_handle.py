"""Processes for programs without an event loop: every call waits for its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from holdfast.model import Chunk, Ended, Outcome, Size, Usage
from holdfast.screens import ScreenSnapshot

from . import handle as asynchronous
from .completed import TimedOut
from .handle import DRAIN
from .reader import LIMIT
from .stdin import StdinWriter
from .sync_verbs import SyncHandleVerbs
from .thread import LoopThread

if TYPE_CHECKING:
    from holdfast.sandbox import Denial

T = TypeVar("T")


class Reader:
    """An output of a process.  The synchronous ``asyncio.StreamReader``."""

    def __init__(self, reader: asyncio.StreamReader, thread: LoopThread) -> None:
        self._reader = reader
        self._thread = thread

    def read(self, n: int = -1) -> bytes:
        """Return up to ``n`` bytes, as soon as there are any; without ``n``, everything up to the end."""
        return self._thread.call(self._reader.read(n))

    def readline(self) -> bytes:
        """Return one line, with its line end; empty at the end of the output."""
        return self._thread.call(self._reader.readline())

    def readexactly(self, n: int) -> bytes:
        return self._thread.call(self._reader.readexactly(n))

    def readuntil(self, separator: bytes = b"\n") -> bytes:
        return self._thread.call(self._reader.readuntil(separator))

    def at_eof(self) -> bool:
        return self._reader.at_eof()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        line = self.readline()
        if not line:
            raise StopIteration
        return line


class Stdin:
    """The standard input of a process.  The synchronous ``holdfast.api.stdin.StdinWriter``."""

    def __init__(self, stdin: StdinWriter, thread: LoopThread) -> None:
        self._stdin = stdin
        self._thread = thread

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes; wait while many are queued.

        Raises:
            BrokenPipeError: The process reads no more.
            LinkLost: The connection is lost.
            HoldfastError: Bytes could not be delivered.
        """
        self._thread.call(self._write(bytes(data)))

    async def _write(self, data: bytes) -> None:
        self._stdin.write(data)
        await self._stdin.drain()

    def writelines(self, data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(data))

    def drain(self) -> None:
        self._thread.call(self._stdin.drain())

    def can_write_eof(self) -> bool:
        """Whether the host can close stdin.  Servers of other makers may not support it."""
        return self._stdin.can_write_eof()

    def write_eof(self) -> None:
        """Close stdin once everything was delivered.

        Raises:
            HoldfastError: Bytes could not be delivered.  Stdin stays open, so that the process does
                not take its input for complete.
        """
        self._thread.call(self._write_eof())

    async def _write_eof(self) -> None:
        self._stdin.write_eof()

    def close(self) -> None:
        self.write_eof()

    def is_closing(self) -> bool:
        return self._stdin.is_closing()

    def wait_closed(self) -> None:
        self._thread.call(self._stdin.wait_closed())


class Handle(SyncHandleVerbs):
    """A process that was started, or found by its name.

    The synchronous ``holdfast.Handle``; usable from any thread.
    """

    def __init__(self, handle: asynchronous.Handle, thread: LoopThread) -> None:
        self._handle = handle
        self._thread = thread
        self.stdin = None if handle.stdin is None else Stdin(handle.stdin, thread)
        """Its standard input; None unless it was started with ``stdin=PIPE``, or has a terminal."""
        self.stdout = None if handle.stdout is None else Reader(handle.stdout, thread)
        """Its standard output; all output, if it has a terminal.  None if that is dropped."""
        self.stderr = None if handle.stderr is None else Reader(handle.stderr, thread)
        """Its standard error; None if that is dropped, or part of ``stdout``."""

    def __repr__(self) -> str:
        return repr(self._handle)

    @property
    def args(self) -> Sequence[str]:
        """The command; empty if the process was found by its name."""
        return self._handle.args

    @property
    def name(self) -> str:
        """What people call it on its host.  ``Host.attach`` finds the process by it."""
        return self._handle.name

    @property
    def identifier(self) -> str:
        """What no other process of its host is ever called."""
        return self._handle.identifier

    @property
    def pid(self) -> int | None:
        """Its process identifier on the host where it runs; None if a server does not send it."""
        return self._handle.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, or -n after death by signal n; None while it runs."""
        return self._handle.returncode

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, and why; None while it runs."""
        return self._handle.outcome

    @property
    def usage(self) -> Usage | None:
        """What it has used; None while it runs, and if the host does not measure it."""
        return self._handle.usage

    @property
    def denials(self) -> tuple[Denial, ...]:
        """What its sandbox refused it, as far as the host saw that; empty while it runs."""
        return self._handle.denials

    @property
    def dropped(self) -> int:
        """Bytes of output that ``truncate_output`` has cut off."""
        return self._handle.dropped

    # Output.

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the bytes of both outputs, in the order in which they came, up to their end."""
        return (chunk.data for chunk in self.chunks())

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over the output as chunks, with stream and number."""
        return Following(self._handle.chunks(), self._thread)

    def lines(
        self,
        *,
        encoding: str = "utf-8",
        errors: str = "replace",
        universal: bool = True,
        limit: int = LIMIT,
    ) -> Iterator[str]:
        """Iterate over the lines of ``stdout`` as text.  See ``holdfast.Handle.lines``."""
        lines = self._handle.lines(encoding=encoding, errors=errors, universal=universal, limit=limit)
        return Following(lines, self._thread)

    def communicate(
        self,
        input: bytes | None = None,  # noqa: A002  (as in subprocess)
        *,
        drain: float = DRAIN,
        timeout: float | None = None,
    ) -> tuple[bytes | None, bytes | None]:
        """Write ``input``, close stdin, and wait for all output and the end.

        Raises:
            TimedOut: It took longer than ``timeout`` seconds.  The process goes on, and no output is lost.
        """
        return self._within(self._handle.communicate(input, drain=drain), timeout)

    # The end.

    def wait(self, timeout: float | None = None) -> Outcome:
        """Wait for the exit of the process.

        Raises:
            TimedOut: It took longer than ``timeout`` seconds.  The process goes on.
        """
        return self._within(self._handle.wait(), timeout)

    def _within(self, coroutine: Coroutine[object, object, T], timeout: float | None) -> T:
        if timeout is None:
            return self._thread.call(coroutine)
        try:
            return self._thread.call(_bounded(coroutine, timeout))
        except TimeoutError:
            raise TimedOut(self.args, timeout) from None

    def send_signal(self, signal: int) -> None:
        self._thread.call(self._handle.send_signal(signal))

    def terminate(self) -> None:
        self._thread.call(self._handle.terminate())

    def kill(self) -> None:
        self._thread.call(self._handle.kill())

    def end(self, grace: float = 0.0) -> Ended:
        """End the process and everything it has started; return when all are gone."""
        return self._thread.call(self._handle.end(grace))

    def resize(self, size: Size) -> None:
        self._thread.call(self._handle.resize(size))

    def snapshot(self) -> ScreenSnapshot:
        """Return what its terminal shows.  See ``holdfast.Handle.snapshot``."""
        return self._thread.call(self._handle.snapshot())

    def detach(self) -> None:
        """Stop reading its output, and let it go on."""
        self._thread.call(self._detach())

    async def _detach(self) -> None:
        self._handle.detach()

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.call(self._handle.__aexit__(kind, error, trace))


async def _bounded(coroutine: Coroutine[object, object, T], timeout: float) -> T:  # noqa: ASYNC109
    async with asyncio.timeout(timeout):
        return await coroutine


class Following(Iterator[T]):
    """Iterates over what an asynchronous iterator gives, and goes on after an error as that does."""

    def __init__(self, items: AsyncIterator[T], thread: LoopThread) -> None:
        self._items = items
        self._thread = thread

    def __next__(self) -> T:
        found = self._thread.call(_next(self._items))
        if not found:
            raise StopIteration
        return found[0]


async def _next(items: AsyncIterator[T]) -> tuple[T, ...]:
    """Return the next item alone; none at the end."""
    async for item in items:
        return (item,)
    return ()
