"""A watcher that remembers what it was told and can be waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.backend import Process
from holdfast.model import Chunk, Exit, Stream

from .process import PATIENCE

Event = tuple[str] | tuple[str, bytes | int]


class Recorder:
    """Implements ``backend.Watcher``."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        """Everything, in the words of ``until``: ``("stdout", b"x")``, ``("exited", 0)``, ``("closed",)``."""
        self.numbers: list[int] = []
        self.chunks: list[Chunk] = []
        self.exit: Exit | None = None
        self._news = asyncio.Event()

    # What a process says.

    def output(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self._note(chunk.seq, (chunk.stream.value, chunk.data))

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        self.exit = exit
        self._note(seq, ("exited", exit.code))

    def closed(self, seq: int) -> None:
        self._note(seq, ("closed",))

    def _note(self, seq: int, event: Event) -> None:
        self.numbers.append(seq)
        self.told.append(event)
        self._news.set()

    # What a test asks.

    async def until(self, *event: str | bytes | int) -> None:
        """Wait for one event: ``until("exited", 3)``."""
        await self.when(lambda: event in self.told)

    async def until_said(self, text: bytes) -> None:
        """Wait until the output so far contains ``text``."""
        await self.when(lambda: text in self.said())

    async def when(self, holds: Callable[[], bool]) -> None:
        """Wait for an event after which this holds."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"not told: only {self.told[-20:]!r}") from None

    def said(self, stream: Stream | None = None) -> bytes:
        """All output of one stream, or of all in the order they came."""
        return b"".join(c.data for c in self.chunks if stream is None or c.stream is stream)

    @property
    def outline(self) -> list[Event]:
        """What was told, with neighbouring chunks of a stream joined.

        How output is cut into chunks depends on the moment of reading; what is
        before and after what does not.
        """
        joined: list[Event] = []
        for event in self.told:
            last = joined[-1] if joined else ("",)
            if isinstance(event[-1], bytes) and isinstance(last[-1], bytes) and event[0] == last[0]:
                joined[-1] = (last[0], last[-1] + event[-1])
            else:
                joined.append(event)
        return joined


def record(process: Process) -> Recorder:
    """Watch a process that was just started."""
    recorder = Recorder()
    process.watch(recorder)
    return recorder


async def finished(process: Process) -> Recorder:
    """Watch a process that was just started, to its close."""
    recorder = record(process)
    await recorder.until("closed")
    return recorder
