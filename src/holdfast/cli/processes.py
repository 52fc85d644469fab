"""Commands about processes of a server: attach, logs, ps, wait, kill, signal, write, resize."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from holdfast.api.host import Host
from holdfast.backend import Process
from holdfast.errors import HoldfastError, LinkLost
from holdfast.model import Chunk, Ended, Exit, Listing, ProcessState, Size, WriteStatus
from holdfast.wording import counted, signal_name

from .connection import come_back, left
from .explain import code_of, explain, remark
from .follow import Manner, follow
from .line_keys import is_in_foreground
from .options import wants_json
from .ranges import ranged_logs
from .report import ExitCode, Failure, in_colour, is_terminal_stream, paint, say, tell, tell_names
from .show import (
    LISTING_HEAD,
    STATE_COLUMN,
    WAITING,
    is_live,
    listing_document,
    listing_row,
    outcome_document,
    table,
    tell_json,
)
from .sink import OutputSink
from .streams import DescriptorReader, is_given
from .target import perform
from .terminal import DEFAULT_DETACH_KEYS, detach_keys, is_terminal, screen_size
from .waiting import wait_until

# attach and logs.

_PAGE = 1 << 20
"""Bytes of output asked for with one request."""

_WAIT = 30.0
"""Seconds after which a request that waits for more output is repeated."""


def attach(arguments: argparse.Namespace) -> int:
    """Follow a process until it ends or the user leaves it; return its exit code."""

    async def work(host: Host) -> int:
        found = await host.place.describe(arguments.name)
        first: list[Chunk] = []
        after = 0
        if arguments.tail is not None:
            pages = OutputPages(await host.place.find(found.identifier))
            first = await pages.last_lines(arguments.tail)
            after = pages.after
        raw = found.terminal and is_terminal(0) and not arguments.no_stdin
        shows = found.terminal and arguments.tail is None and is_terminal(1) and not wants_json(arguments)
        handle = await host.attach(found.identifier, after=after, snapshot=shows)
        is_drawn = handle.shown is not None and handle.shown.complete
        keys = detach_keys(DEFAULT_DETACH_KEYS) if arguments.detach_keys is None else arguments.detach_keys
        options = ["--no-stdin"] if arguments.no_stdin else []
        manner = Manner(
            stdin=not arguments.no_stdin,
            lines=not raw and bool(keys) and is_terminal(0) and is_in_foreground(0),
            leaves=arguments.no_stdin,
            back=come_back(arguments, arguments.name, "attach", *options),
            connection=arguments.connection,
            raw=raw,
            keys=keys,
            detachable=True,
            ours=False,
            redraw=_redraw(found, after) if raw and not is_drawn else None,
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
    if arguments.bytes is not None or arguments.stderr:
        return perform(arguments, ranged_logs(arguments))

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

    def parting() -> str:
        back = come_back(arguments, arguments.name, "logs", "-f")
        return left(arguments.name, back, arguments.connection)

    return perform(arguments, work, parting=parting if arguments.follow else None)


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
            size = counted(page.gap.size or 0, "byte") if whole else "an unknown number of bytes"
            verb = "is" if size == "1 byte" else "are"
            self.missing = f"{size} of its output {verb} no longer kept; a larger --retain keeps more"
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


# ps.

_STATE_COLOURS = {"running": "green", "starting": "yellow", WAITING: "yellow", "exit 0": "dim"}
"""Colours of states in ``ps``; all others are red."""


def ps(arguments: argparse.Namespace) -> int:
    """Print the processes of the server, the oldest first."""

    async def work(host: Host) -> int:
        found = sorted(
            await host.processes(inspect=arguments.waiting), key=lambda one: (one.started, one.name)
        )
        shown = [one for one in found if arguments.all or is_live(one)]
        if wants_json(arguments):
            tell_json([listing_document(one, inspected=arguments.waiting) for one in shown])
        elif arguments.quiet:
            meant = {one.name: one.identifier for one in sorted(found, key=is_live)}
            tell_names(one.name if meant[one.name] == one.identifier else one.identifier for one in shown)
        else:
            now = time.time()
            rows = [listing_row(one, now=now, whole=arguments.no_trunc) for one in shown]
            size = screen_size() if is_terminal_stream(sys.stdout) else None
            width = None if arguments.no_trunc or size is None else size[1]
            tell(
                *table(LISTING_HEAD, rows, width=width, paint=_paint_cell if in_colour(sys.stdout) else None)
            )
        return 0

    return perform(arguments, work)


def _paint_cell(column: int, text: str) -> str:
    return paint(_STATE_COLOURS.get(text, "red"), text) if column == STATE_COLUMN else text


# wait.

_LONG_WAIT = 3600.0
"""Seconds after which a request that waits for an end is repeated."""


def wait(arguments: argparse.Namespace) -> int:
    """Wait for the end of processes; return the exit code of the first that did not exit with 0."""
    if arguments.condition is not None:
        return wait_until(arguments)
    if arguments.timeout is not None:
        raise Failure("--timeout is how long to wait for what --for says; add --for")

    async def work(host: Host) -> int:
        ends = []
        # One after the other takes as long as all at once: until the last one ends.
        for process in [await host.place.find(name) for name in arguments.names]:
            end: Exit | None = None
            while end is None:
                end = await process.wait(_LONG_WAIT)
            ends.append((process.name, end.outcome))
            words = remark(end.outcome, () if end.denied is None else end.denied.denials)
            if words and not arguments.quiet and not wants_json(arguments):
                say(f"{process.name}: {words}")
        if wants_json(arguments):
            tell_json(
                [
                    {"name": name, "exitCode": code_of(outcome), "outcome": outcome_document(outcome)}
                    for name, outcome in ends
                ]
            )
        elif len(ends) > 1 and not arguments.quiet:
            tell(*(str(code_of(outcome)) for _, outcome in ends))
        return next((code for _, outcome in ends if (code := code_of(outcome))), 0)

    return perform(arguments, work)


# kill and signal.

_ENDS_AT_ONCE = 256
"""Processes that are ended at the same time: more than anybody types, and less than a server takes."""


def kill(arguments: argparse.Namespace) -> int:
    """End processes and everything they have started.

    A process that cannot be found or ended is reported, the others are ended all the same, and the exit
    code is 125.
    """

    async def work(host: Host) -> int:
        # At once, so that all have ended after one grace; what there is to say of them stays in order.
        names = list(dict.fromkeys(arguments.names))
        results: list[Ended | HoldfastError] = []
        for first in range(0, len(names), _ENDS_AT_ONCE):
            batch = names[first : first + _ENDS_AT_ONCE]
            results += await asyncio.gather(*(_end(host, name, arguments.grace) for name in batch))
        ended = []
        code = 0
        for name, result in zip(names, results, strict=True):
            if isinstance(result, HoldfastError):
                say(str(explain(result)))
                code = ExitCode.FAILED
                continue
            ended.append((name, result))
            if result.survivors:
                pids = ", ".join(map(str, result.survivors))
                say(f"{name}: these processes could not be ended: {pids}")
                code = ExitCode.FAILED
        if wants_json(arguments):
            tell_json(
                [
                    {"name": name, "running": result.running, "survivors": list(result.survivors)}
                    for name, result in ended
                ]
            )
        elif not arguments.quiet:
            tell_names(name for name, _ in ended)
        return code

    return perform(arguments, work)


async def _end(host: Host, name: str, grace: float) -> Ended | HoldfastError:
    """End a process; return what became of it, or why it could not be ended."""
    try:
        process = await host.place.find(name)
        return await process.end(grace=grace)
    except LinkLost:
        raise
    except HoldfastError as error:
        return error


def send_signal(arguments: argparse.Namespace) -> int:
    """Send a signal to the process group of a process, or to its whole tree."""

    async def work(host: Host) -> int:
        process = await host.place.find(arguments.name)
        await process.signal(arguments.signal, tree=arguments.tree)
        signal = signal_name(arguments.signal)
        _tell(arguments, {"name": arguments.name, "signal": signal, "tree": arguments.tree})
        return 0

    return perform(arguments, work)


# write and resize.


def write(arguments: argparse.Namespace) -> int:
    """Write to the standard input of a process; return when the server has everything."""

    async def work(host: Host) -> int:
        process = await host.place.find(arguments.name)
        # With an identifier for each write, one that is sent again after a lost connection is not
        # written twice.
        key = uuid4().hex
        number = size = 0
        async for data in _input(arguments):
            number, size = number + 1, size + len(data)
            if await process.write(data, write_id=f"{key}-{number}") is WriteStatus.STDIN_CLOSED:
                raise Failure(
                    f"{arguments.name} takes no input: it was started without -i, has closed it, or has ended"
                )
        if arguments.eof:
            await process.close_stdin(write_id=f"{key}-end")
        _tell(arguments, {"name": arguments.name, "bytes": size, "eof": arguments.eof})
        return 0

    return perform(arguments, work)


async def _input(arguments: argparse.Namespace) -> AsyncIterator[bytes]:
    """Yield the bytes to write: the argument, or our standard input."""
    if arguments.data is not None:
        yield os.fsencode(arguments.data)
    elif is_given(0) or (is_terminal(0) and not arguments.eof):
        reader = DescriptorReader(0, asyncio.get_running_loop())
        while data := await reader.read():
            yield data


def resize(arguments: argparse.Namespace) -> int:
    """Change the size of the terminal of a process."""

    async def work(host: Host) -> int:
        rows, cols = arguments.size
        process = await host.place.find(arguments.name)
        await process.resize(Size(rows, cols))
        _tell(arguments, {"name": arguments.name, "rows": rows, "cols": cols})
        return 0

    return perform(arguments, work)


def _tell(arguments: argparse.Namespace, document: Mapping[str, Any]) -> None:
    """Print what was done, if JSON was asked for.  Otherwise success is silent."""
    if wants_json(arguments):
        tell_json(document)
