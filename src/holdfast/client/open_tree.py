"""Trees of a server's host that are read, or written, as archives."""

from __future__ import annotations

import errno
from typing import TypeVar

from holdfast.errors import FileFailed, OutcomeUnknown, UnknownHandle
from holdfast.protocol import base64
from holdfast.protocol.files import (
    CLOSE_FILE,
    READ_BLOCK,
    WRITE_BLOCK,
    ArchiveParams,
    CloseFileParams,
    ExtractParams,
    OpenFileResult,
    ReadBlockParams,
    ReadBlockResult,
    WriteBlockParams,
)
from holdfast.protocol.shapes import Signature

from .link import Link
from .open_file import BLOCK, read_range

P = TypeVar("P", ArchiveParams, ExtractParams)


class RemoteTree:
    """A tree on a server as an archive that is read or written in order.  Implements ``files.OpenTree``.

    It ends with the connection on which it was opened: nobody could go on in the middle of an archive.  Then
    every call raises ``OutcomeUnknown``, and whoever wants the tree begins anew.
    """

    def __init__(self, link: Link, handle: str, method: str) -> None:
        self._link = link
        self._handle = handle
        self._method = method
        self._connection = link.connections
        self._closed = False
        self._is_lost = False

    @classmethod
    async def open(cls, link: Link, signature: Signature[P, OpenFileResult], params: P) -> RemoteTree:
        """Return the tree, opened as ``params`` say."""
        tree = cls(link, params.handle_id, signature.name)
        try:
            # Not repeated: it would be open on a connection on which nobody uses it.
            await link.call(signature, params, repeat=False)
        except BaseException:
            tree.close()
            raise
        tree._connection = link.connections
        return tree

    @property
    def count(self) -> None:
        """None: only the server knows."""

    async def read(self, offset: int, length: int) -> bytes:
        """See ``files.OpenFile``."""
        return await read_range(self._read_block, offset, length)

    async def _read_block(self, offset: int, length: int) -> tuple[bytes, bool]:
        def block(found: ReadBlockResult) -> tuple[bytes, bool]:
            data = base64.decode(found.chunk)
            if len(data) > length:
                raise ValueError("more than was asked for")
            return data, found.eof

        self._check()
        try:
            params = ReadBlockParams(self._handle, offset, length)
            return await self._link.call(READ_BLOCK, params, block, repeat=False)
        except (OutcomeUnknown, UnknownHandle) as error:
            raise self._lost(error) from error

    async def write(self, offset: int, data: bytes) -> None:
        """See ``files.OpenFile``."""
        for start in range(0, len(data), BLOCK):
            text = base64.encode(data[start : start + BLOCK]).decode()
            self._check()
            try:
                params = WriteBlockParams(self._handle, offset + start, text)
                await self._link.call(WRITE_BLOCK, params, repeat=False)
            except (OutcomeUnknown, UnknownHandle) as error:
                raise self._lost(error) from error

    def _lost(self, error: OutcomeUnknown | UnknownHandle) -> OutcomeUnknown | UnknownHandle:
        """What a failed call means: on another connection there is no such handle."""
        if isinstance(error, UnknownHandle) and self._connection == self._link.connections:
            return error
        self._is_lost = True
        return OutcomeUnknown(self._method)

    def _check(self) -> None:
        if self._closed:
            raise FileFailed(errno.EBADF)
        if self._is_lost:
            raise OutcomeUnknown(self._method)

    def close(self) -> None:
        """See ``files.OpenFile``."""
        if not self._closed:
            self._closed = True
            self._link.post(CLOSE_FILE, CloseFileParams(self._handle))
