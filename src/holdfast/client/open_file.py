"""A file that is open on a server.

What must hold: what is read through one of these comes from one file, over any number of
connections; what is written is all there, or whoever writes is told.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Awaitable, Callable

from holdfast.config import MIB
from holdfast.errors import FileFailed, FileRefused, HandleTaken, OutcomeUnknown, UnknownHandle
from holdfast.files import FileMetadata
from holdfast.protocol import base64
from holdfast.protocol.files import (
    CLOSE_FILE,
    OPEN_FILE,
    READ_BLOCK,
    WRITE_BLOCK,
    CloseFileParams,
    OpenFileParams,
    ReadBlockParams,
    ReadBlockResult,
    WriteBlockParams,
)

from .link import Link

BLOCK = MIB
"""The most that the protocol reads or writes at once."""

_END = 2**63 - 1
"""Systems count the bytes of a file with a sign."""


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
        pieces, done = [], 0
        while done < length:
            data, last = await self._read_block(offset + done, min(length - done, BLOCK))
            pieces.append(data)
            done += len(data)
            if last or not data:
                break
        return b"".join(pieces)

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
        if await self._look() != self._known:
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
