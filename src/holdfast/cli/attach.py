"""``holdfast attach`` and ``holdfast logs``: what a process of a server writes and has written."""

from __future__ import annotations

import argparse
import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence

from holdfast.api.host import Host
from holdfast.backend import Process
from holdfast.model import Chunk, Listing, ProcessState

from .follow import Manner, OutputSink, follow
from .keys import DEFAULT_DETACH_KEYS, detach_keys
from .options import wants_json
from .report import ExitCode, say
from .target import find, perform
from .terminal import is_terminal

_PAGE = 1 << 20
"""Bytes of output asked for with one request."""

_WAIT = 30.0
"""Seconds after which a request that waits for more output is repeated."""


def attach(arguments: argparse.Namespace) -> int:
    """Follow a process until it ends or the user leaves it; return its exit code."""

    async def work(host: Host) -> int:
        found = await find(host, arguments.name)
        first: list[Chunk] = []
        after = 0
        if arguments.tail is not None:
            pages = OutputPages(await host.place.find(arguments.name))
            first = await pages.last_lines(arguments.tail)
            after = pages.after
        handle = await host.attach(arguments.name, after=after)
        raw = found.terminal and is_terminal(0) and not arguments.no_stdin
        keys = arguments.detach_keys
        manner = Manner(
            stdin=not arguments.no_stdin,
            raw=raw,
            keys=detach_keys(DEFAULT_DETACH_KEYS) if keys is None else keys,
            detachable=True,
            ours=False,
            redraw=_redraw(found, after) if raw else None,
            json=wants_json(arguments),
            quiet=arguments.quiet,
        )
        return await follow(handle, manner, first)

    return perform(arguments, work)


def _redraw(found: Listing, after: int) -> int | None:
    """Return the value of ``Manner.redraw`` for a process that is read from behind number ``after``."""
    if found.exit_code is not None or found.state != ProcessState.RUNNING:
        return None
    return found.next_seq - 1 if found.next_seq - 1 > after else 0


def logs(arguments: argparse.Namespace) -> int:
    """Print the output that the server has kept of a process, and with ``-f`` what follows."""

    async def work(host: Host) -> int:
        process = await host.place.find(arguments.name)
        pages = OutputPages(process, after=arguments.since_seq)
        sink = OutputSink(asyncio.get_running_loop(), json=wants_json(arguments))
        try:
            if arguments.tail is not None:
                for chunk in await pages.last_lines(arguments.tail):
                    await sink.write_chunk(chunk)
            async for chunk in pages.chunks(follow=arguments.follow):
                await sink.write_chunk(chunk)
        except BrokenPipeError:
            return ExitCode.BROKEN_PIPE
        finally:
            sink.close()
        if pages.missing is not None and not arguments.quiet:
            say(pages.missing)
        return 0

    return perform(arguments, work)


class OutputPages:
    """The output of a process, requested page by page, so that the server sends nothing before we take it."""

    def __init__(self, process: Process, *, after: int = 0) -> None:
        """Begin behind the chunk with number ``after``."""
        self._process = process
        self._last_seq = process.next_seq - 1  # The last number at this moment.
        self._begun = False
        self.after = after
        """The number of the last chunk that was read."""
        self.missing: str | None = None
        """A message about output that the server no longer has; None if nothing is missing."""
        self._complete = False

    async def chunks(self, *, follow: bool) -> AsyncIterator[Chunk]:
        """Yield the output up to the moment at which this object was made; with ``follow``, up to its end.

        Without ``follow`` this ends, however fast the process writes.  The first page is yielded whole:
        it is what the server has, even if everything older was dropped a moment before.
        """
        while not self._complete and (follow or not self._begun or self.after < self._last_seq):
            until = self._last_seq if self._begun and not follow else None
            self._begun = True
            chunks = await self._next_page(until, wait=_WAIT if follow else 0.0)
            for chunk in chunks:
                yield chunk
            if not follow and not chunks:
                return

    async def last_lines(self, count: int) -> list[Chunk]:
        """Return the last lines up to now; ``chunks`` continues behind them."""
        last = LastLines(count)
        async for chunk in self.chunks(follow=False):
            last.add(chunk)
        return last.take()

    async def _next_page(self, until: int | None, *, wait: float) -> Sequence[Chunk]:
        """Request the next page; leave out chunks with numbers above ``until``."""
        page = await self._process.read(after=self.after, limit=_PAGE, wait=wait)
        # A page that says "closed" need not be the last one.
        self._complete = page.closed and not page.chunks
        if page.gap is not None:
            whole = page.gap.size is not None and (until is None or page.gap.last <= until)
            size = str(page.gap.size) if whole else "an unknown number of"
            self.missing = f"{size} bytes of its output are no longer kept; a larger --retain keeps more"
        last = page.next_seq - 1 if until is None else min(page.next_seq - 1, until)
        self.after = max(self.after, last)
        return [chunk for chunk in page.chunks if chunk.seq <= last]


class LastLines:
    """Keeps the last lines of the chunks that it is given, of all streams together, and nothing else."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._chunks: deque[tuple[Chunk, int]] = deque()  # Each with the number of line ends in it.
        self._ends = 0

    def add(self, chunk: Chunk) -> None:
        """Take the next chunk; drop chunks that are no longer among the last lines."""
        if self._count == 0:
            return
        ends = chunk.data.count(b"\n")
        self._chunks.append((chunk, ends))
        self._ends += ends
        # One line end more than lines: the first line that is left may have lost its beginning.
        while self._ends - self._chunks[0][1] > self._count:
            self._ends -= self._chunks.popleft()[1]

    def take(self) -> list[Chunk]:
        """Return the last lines, cut at the beginning of the first one, and keep nothing."""
        chunks = [chunk for chunk, _ in self._chunks]
        self._chunks.clear()
        unfinished = bool(chunks) and not chunks[-1].data.endswith(b"\n")
        over = self._ends + unfinished - self._count
        self._ends = 0
        while over > 0 and chunks:
            first = chunks[0]
            here = first.data.count(b"\n")
            if here < over:
                over -= here
                del chunks[0]
                continue
            start = 0
            for _ in range(over):
                start = first.data.index(b"\n", start) + 1
            rest = first.data[start:]
            chunks[:1] = [Chunk(first.seq, first.stream, rest)] if rest else []
            break
        return chunks
