"""Waits until a port or a URL of a process answers, it has printed a text, or a file is there.

What must hold:

1. A wait ends with its process, and at its deadline, whatever an attempt is waiting for at that moment.
2. What was so before the end counts: output that was printed, a file that was made.
3. Others get their turn while output is searched.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from .conditions import Condition, Waited, WaitEnd, prepared
from .errors import FileFailed, HttpFailed
from .model import Exit, HttpRequest, Stream
from .patterns import Search, SearchPattern

if TYPE_CHECKING:
    from .backend import Backend, Process
    from .model import Chunk, Page

_FIRST_DELAY = 0.02
"""Seconds between the first two attempts.  Each further delay is half as long again."""

_LAST_DELAY = 0.5
"""Seconds between two attempts at the most."""

_LAST_ATTEMPT = 1.0
"""Seconds for an attempt that is made once the process has ended, or the time is over."""

_PAGE = 64 * 1024
"""Bytes of output that are read at once."""

_PIECE = 2048
"""Bytes that are searched before somebody looks at the clock."""

_TURN = 0.001
"""Seconds of searching after which others get their turn."""

_LOOPBACK = ("127.0.0.1", "::1")


class _Turn:
    """Awaited, it lets everybody else have their turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def wait_for(process: Process, condition: Condition, backend: Backend, *, seconds: float) -> Waited:
    """Wait until something is so, the process has ended, or the time is over.  To be called in a task.

    ``backend`` is what the process belongs to, and says what may be asked of the host.

    Raises:
        BadRequest: The condition makes no sense.
        HoldfastError: What has to be asked must not be asked.
    """
    found = prepared(condition)
    deadline = asyncio.get_running_loop().time() + seconds
    if isinstance(found, SearchPattern):
        return await _Printed(process, found).wait(deadline)
    return await _poll(process, _attempt(found, backend), deadline)


# What has to be tried again and again.

_Attempt = Callable[[], Awaitable[Waited]]


def _attempt(condition: Condition, backend: Backend) -> _Attempt:
    if condition.port is not None:
        return partial(_connect, condition.port)
    if condition.url is not None:
        return partial(_request, backend, condition.url)
    return partial(_look, backend, condition.file or "")


class _Ending:
    """Ends what waits under a timeout when a process exits.  Implements ``backend.Watcher``."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit

    def output(self, chunk: Chunk) -> None:
        pass

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        with suppress(RuntimeError):  # It is over already.
            self._limit.reschedule(asyncio.get_running_loop().time())

    def closed(self, seq: int) -> None:
        pass


async def _poll(process: Process, attempt: _Attempt, deadline: float) -> Waited:
    loop = asyncio.get_running_loop()
    delay = _FIRST_DELAY
    last = Waited(WaitEnd.TIMEOUT)
    while True:
        end = process.exit
        over = end is not None or loop.time() >= deadline
        last = await _bounded(process, attempt, last, loop.time() + _LAST_ATTEMPT if over else deadline)
        if last.end is WaitEnd.MET:
            return last
        if over:
            how = WaitEnd.TIMEOUT if end is None else WaitEnd.EXITED
            return Waited(how, status=last.status, exit=end, trouble=last.trouble)
        await process.wait(max(0.0, min(delay, deadline - loop.time())))
        delay = min(delay * 1.5, _LAST_DELAY)


async def _bounded(process: Process, attempt: _Attempt, last: Waited, when: float) -> Waited:
    """One attempt, which ends with the process."""
    limit = asyncio.timeout_at(when)
    watch = process.watch(_Ending(limit)) if process.exit is None else None
    try:
        async with limit:
            return await attempt()
    except TimeoutError:
        return Waited(
            WaitEnd.TIMEOUT, status=last.status, trouble=last.trouble or "there was no answer in time"
        )
    finally:
        if watch is not None:
            watch.stop()


def _failed(trouble: str, status: int | None = None) -> Waited:
    return Waited(WaitEnd.TIMEOUT, status=status, trouble=trouble)


async def _connect(port: int) -> Waited:
    loop = asyncio.get_running_loop()
    trouble = ""
    for host in _LOOPBACK:
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as connection:
                connection.setblocking(False)
                await loop.sock_connect(connection, (host, port))
                return Waited(WaitEnd.MET)
        except OSError as error:
            trouble = trouble or os.strerror(error.errno or errno.EIO)
    return _failed(trouble)


async def _request(backend: Backend, url: str) -> Waited:
    try:
        response = await backend.http.request(HttpRequest("GET", url, follow=False))
    except HttpFailed as error:
        return _failed(str(error))
    try:
        status = response.status
    finally:
        await response.aclose()
    if status < 400:
        return Waited(WaitEnd.MET, status=status)
    return _failed(f"the status is {status}", status)


async def _look(backend: Backend, path: str) -> Waited:
    try:
        await backend.files.metadata(path)
    except FileFailed as error:
        return _failed(str(error))
    return Waited(WaitEnd.MET)


# Output.


class _Printed:
    """Searches the output of a process, what it has printed before included."""

    def __init__(self, process: Process, pattern: SearchPattern) -> None:
        self._process = process
        self._pattern = pattern
        self._searches: dict[Stream, Search] = {}
        self._after = 0
        self._missed = False
        self._turn = 0.0

    async def wait(self, deadline: float) -> Waited:
        loop = asyncio.get_running_loop()
        process = self._process
        last: int | None = None
        while True:
            end, now = process.exit, loop.time()
            if last is None and (end is not None or now >= deadline):
                last = process.next_seq - 1  # Who is left, and goes on printing, is not waited for.
            page = await process.read(
                after=self._after, limit=_PAGE, wait=0.0 if last is not None else deadline - now
            )
            found = await self._search(page)
            if found is not None:
                return found
            if last is not None and (self._after >= last or not page.chunks):
                return self._over(process.exit)

    async def _search(self, page: Page) -> Waited | None:
        if page.gap is not None and self._after:
            self._missed = True
            self._searches.clear()
        for chunk in page.chunks:
            self._after = chunk.seq
            search = self._searches.get(chunk.stream)
            if search is None:
                self._searches[chunk.stream] = search = Search(self._pattern)
            for start in range(0, len(chunk.data), _PIECE):
                line = search.feed(bytes(chunk.data[start : start + _PIECE]))
                if line is not None:
                    return self._met(line, chunk.seq)
                await self._give_turn()
        return None

    async def _give_turn(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._turn > _TURN:
            await _Turn()
            self._turn = asyncio.get_running_loop().time()

    def _met(self, line: bytes, seq: int) -> Waited:
        text = line.decode(errors="replace")
        return Waited(WaitEnd.MET, line=text, seq=seq, exit=self._process.exit, missed=self._missed)

    def _over(self, end: Exit | None) -> Waited:
        if end is None:
            return Waited(WaitEnd.TIMEOUT, missed=self._missed)
        for search in self._searches.values():
            if (line := search.finish()) is not None:
                return self._met(line, self._after)
        return Waited(WaitEnd.EXITED, exit=end, missed=self._missed)
