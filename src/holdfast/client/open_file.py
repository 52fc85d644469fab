"""Files that are open on a server, and the watch for files that are missing there.

What must hold: what is read through one of these comes from one file, over any number of
connections; what is written is all there, or whoever writes is told.

A server has one watch per connection, and forgets it with the connection.  So there is one at a time, and it
is asked for again on the next connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from holdfast.config import MIB
from holdfast.errors import FileFailed, FileRefused, HandleTaken, HoldfastError, OutcomeUnknown, UnknownHandle
from holdfast.files import FileMetadata
from holdfast.protocol import base64
from holdfast.protocol.files import (
    CLOSE_FILE,
    OPEN_FILE,
    READ_BLOCK,
    WATCH_MISSING,
    WRITE_BLOCK,
    CloseFileParams,
    MissingChanged,
    OpenFileParams,
    ReadBlockParams,
    ReadBlockResult,
    WatchMissingParams,
    WriteBlockParams,
)
from holdfast.protocol.paths import uri_of
from holdfast.protocol.shapes import reader
from holdfast.value import replace

from .calls import Answer
from .link import Link

BLOCK = MIB
"""The most that the protocol reads or writes at once."""

_END = 2**63 - 1
"""Systems count the bytes of a file with a sign."""


async def read_range(
    read_block: Callable[[int, int], Awaitable[tuple[bytes, bool]]], offset: int, length: int
) -> bytes:
    """Return the bytes of a range, block by block; fewer than ``length`` at the end.

    Args:
        read_block: Returns bytes of a block, and whether they are the last ones.
    """
    pieces, done = [], 0
    while done < length:
        data, last = await read_block(offset + done, min(length - done, BLOCK))
        pieces.append(data)
        done += len(data)
        if last or not data:
            break
    return b"".join(pieces)


class RemoteFile:
    """A file that is open on a server.  Implements ``files.OpenFile``.

    The server closes it with the connection on which it was opened.
    """

    def __init__(
        self,
        link: Link,
        params: OpenFileParams,
        known: FileMetadata | None,
        look: Callable[[], Awaitable[FileMetadata]],
    ) -> None:
        """
        Args:
            params: How to open it.
            known: What it was like before it was opened; None if it is written.
            look: What it is like now.
        """
        self._link = link
        self._params = params
        self._handle = params.handle_id
        self._known = known
        self._look = look
        self._connection = 0
        self._error = 0  # Why it cannot be used any more, as the system's number.
        self._torn = False  # Whether a part of what was written may be missing.

    async def open(self) -> None:
        # May be repeated, also to replace a file: a new connection has no such handle, and before the
        # answer nothing was written.
        with contextlib.suppress(HandleTaken):  # Somebody else who reads this file has opened it again.
            await self._link.call(OPEN_FILE, self._params)
        self._connection = self._link.connections

    # Implements ``files.OpenFile``.

    async def read(self, offset: int, length: int) -> bytes:
        """See ``files.OpenFile``.

        Raises:
            FileFailed: With ESTALE, if the connection was lost and the file is not what it was.
        """
        self._check(reading=True)
        if offset < 0 or offset + length > _END:
            raise FileFailed(errno.EINVAL)
        return await read_range(self._read_block, offset, length)

    async def _read_block(self, offset: int, length: int) -> tuple[bytes, bool]:
        """Bytes, and whether they are the last ones."""
        params = ReadBlockParams(self._handle, offset, length)

        def block(found: ReadBlockResult) -> tuple[bytes, bool]:
            data = base64.decode(found.chunk)
            if len(data) > length:
                raise ValueError("more than was asked for")
            return data, found.eof

        fresh = 0
        while True:
            try:
                # Never repeated as it is: on another connection there is no such handle.
                return await self._link.call(READ_BLOCK, params, block, repeat=False)
            except OutcomeUnknown:
                pass
            except UnknownHandle:
                # Either of another connection, or closed by the server because the system would not
                # read some other part.
                if fresh == self._link.connections:
                    raise
            self._check(reading=True)
            await self._open_again()
            fresh = self._connection

    async def _open_again(self) -> None:
        await self.open()
        # Behind the opening, for the reason that the first look was before it.
        if _content(await self._look()) != _content(self._known):
            # Another file in its place, or another content: the rest would belong to another beginning.
            # A file that has only grown is refused as well, because it cannot be told from those.
            self._shut(errno.ESTALE)
        elif self._error:
            self._link.post(CLOSE_FILE, CloseFileParams(self._handle))  # It was closed meanwhile.
        self._check(reading=True)

    async def write(self, offset: int, data: bytes) -> None:
        """See ``files.OpenFile``.

        Raises:
            OutcomeUnknown: The connection was lost since the file was opened: a part of what was
                written may be missing, and nothing more is.
        """
        self._check(reading=False)
        if offset + len(data) > _END:
            raise FileRefused("file write range exceeds the signed 64-bit file offset limit")
        for start in range(0, len(data), BLOCK):
            text = base64.encode(data[start : start + BLOCK]).decode()
            params = WriteBlockParams(self._handle, offset + start, text)
            try:
                await self._link.call(WRITE_BLOCK, params, repeat=False)
            except OutcomeUnknown:
                self._torn = True
            except UnknownHandle:
                if self._connection == self._link.connections:
                    raise
                self._torn = True
            self._check(reading=False)

    def close(self) -> None:
        if not self._error:
            self._shut(errno.EBADF)

    def _shut(self, number: int) -> None:
        self._error = number
        # Behind all that was asked before; the server takes them in turn.
        self._link.post(CLOSE_FILE, CloseFileParams(self._handle))

    def _check(self, *, reading: bool) -> None:
        if self._torn:
            raise OutcomeUnknown("fs/writeBlock")
        if self._error or reading is (self._known is None):
            raise FileFailed(self._error or errno.EBADF)


def _content(known: FileMetadata | None) -> FileMetadata | None:
    """What is known of a file, without what may change while its content is the same."""
    return None if known is None else replace(known, permissions=None)


class HeldFile:
    """A file that came as a whole.  Implements ``files.OpenFile``."""

    def __init__(self, data: bytes) -> None:
        self._data: bytes | None = data

    async def read(self, offset: int, length: int) -> bytes:
        if self._data is None:
            raise FileFailed(errno.EBADF)
        if offset < 0 or offset + length > _END:
            raise FileFailed(errno.EINVAL)
        return self._data[offset : offset + length]

    async def write(self, offset: int, data: bytes) -> None:
        raise FileFailed(errno.EBADF)  # It was opened to be read.

    def close(self) -> None:
        self._data = None


class MissingFiles:
    """The watch of one client, if there is one."""

    def __init__(self, link: Link) -> None:
        self._link = link
        # Never the same again, so that late news of an old watch are told apart.
        self._numbers = itertools.count(1)
        self._watch: RemoteFileWatch | None = None

    async def watch(
        self, missing: Sequence[str], present: str | None, on_change: Callable[[], None]
    ) -> RemoteFileWatch | None:
        """See ``files.Files.watch_missing``."""
        if self._watch is not None:
            return None
        watch = self._watch = RemoteFileWatch(self, missing, present, on_change)
        self._ask(watch)
        try:
            watching = await watch.answered
        except BaseException:
            watch.stop()
            raise
        return watch if watching else None

    def _ask(self, watch: RemoteFileWatch) -> None:
        watch.number, watch.asking = next(self._numbers), True
        params = WatchMissingParams(watch.number, watch.missing, watch.present)
        watch.call = self._link.ask(WATCH_MISSING, params, watch.take)

    def notified(self, params: msgspec.Raw) -> None:
        number = _changed(params).watch_id
        if self._watch is not None and self._watch.number == number:
            self._watch.tell()

    def broke(self) -> None:
        # While it is asked for, that goes out again by itself.
        if self._watch is not None and not self._watch.asking:
            self._ask(self._watch)

    def over(self, watch: RemoteFileWatch) -> None:
        """Forget a watch that was stopped."""
        if self._watch is watch:
            self._watch = None
            self._link.forget(watch.call)

    def end(self, watch: RemoteFileWatch) -> None:
        """The server need not look any more: a newer watch, of nothing, takes the place of the last."""
        if self._watch is watch:
            self.over(watch)
            self._link.post(WATCH_MISSING, WatchMissingParams(next(self._numbers), []))


class RemoteFileWatch:
    """A watch on the server.  Implements ``files.FileWatch``."""

    def __init__(
        self, owner: MissingFiles, missing: Sequence[str], present: str | None, on_change: Callable[[], None]
    ) -> None:
        self._owner = owner
        self._on_change = on_change
        self.missing = [uri_of(path) for path in missing]
        self.present = None if present is None else uri_of(present)
        self.number = 0
        self.call = 0
        self.asking = False
        self.answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether there is something to wait for."""

    def take(self, answer: Answer) -> None:
        """The server has it, or says that there is nothing to wait for."""
        self.asking = False
        if isinstance(answer, HoldfastError):
            self._fail(answer)
            return
        try:
            watching = WATCH_MISSING.read(answer).watching
        except msgspec.DecodeError:
            watching = False
        if self.answered.done():
            if not watching:
                self.tell()  # It has come, or gone, while there was no connection.
            return
        self.answered.set_result(watching)
        if not watching:
            self._owner.over(self)

    def _fail(self, error: HoldfastError) -> None:
        if self.answered.done():
            self.tell()
        else:
            self._owner.over(self)
            self.answered.set_exception(error)

    def tell(self) -> None:
        """Once, and then never again."""
        self._owner.over(self)
        self._on_change()

    def stop(self) -> None:
        self._owner.end(self)


_changed = reader(MissingChanged)
