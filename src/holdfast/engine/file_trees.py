"""Archives of trees on this host, while they are made and unpacked: in threads, one piece after the other."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from holdfast.errors import FileFailed, HoldfastError
from holdfast.files import TreeCount
from holdfast.host.files.packing import TreeArchive
from holdfast.host.files.unpacking import TreeExtraction

from .workers import Workers

T = TypeVar("T")


class LocalTree:
    """A tree of this host that is read, or written, as an archive.  Implements ``files.OpenTree``.

    Calls are done in the order in which they were made, one at a time, also after one that was cancelled: a
    thread cannot be stopped.
    """

    __slots__ = ("_closed", "_idle", "_tree", "_turn", "_workers")

    def __init__(self, tree: TreeArchive | TreeExtraction, workers: Workers) -> None:
        self._tree: TreeArchive | TreeExtraction = tree
        self._workers = workers
        self._turn = asyncio.Lock()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @property
    def count(self) -> TreeCount:
        return self._tree.count

    async def read(self, offset: int, length: int) -> bytes:
        return await self._use(partial(self._tree.read, offset, length))

    async def write(self, offset: int, data: bytes) -> None:
        await self._use(partial(self._tree.write, offset, data))

    async def _use(self, work: Callable[[], T]) -> T:
        async with self._turn:
            await self._idle.wait()
            if self._closed:
                raise FileFailed(errno.EBADF)
            self._idle.clear()
            return await run(self._workers, work, over=self._on_over)

    def _on_over(self) -> None:
        self._idle.set()
        if self._closed:
            self._workers.post(self._tree.close)

    def close(self) -> None:
        closed, self._closed = self._closed, True
        if not closed and self._idle.is_set():
            self._workers.post(self._tree.close)


async def run(
    workers: Workers,
    work: Callable[[], T],
    *,
    undo: Callable[[T], None] | None = None,
    over: Callable[[], None] | None = None,
) -> T:
    """The result of something that the system may not want to do."""
    try:
        return await workers.run(work, undo=undo, over=over)
    except HoldfastError:
        raise  # Some of them are errors of the system, too.
    except OSError as error:
        raise FileFailed(error.errno or 0) from error
