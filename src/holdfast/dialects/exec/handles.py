"""Open files of one connection: ``fs/open``, ``fs/readBlock``, ``fs/writeBlock``, ``fs/close``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.config import FileLimits
from holdfast.dialects import base64
from holdfast.dialects.shapes import Nothing
from holdfast.errors import FileFailed, FileRefused, HandleTaken, LimitReached, UnknownHandle
from holdfast.files import OpenFile, Purpose

from . import file_messages as m
from .sandboxing import sandbox_of

if TYPE_CHECKING:
    from .conversation import ExecConversation


class Handles:
    """The names that a client gave to its open files."""

    __slots__ = ("_files", "_limits")

    def __init__(self, limits: FileLimits) -> None:
        self._limits = limits
        # None while it is being opened.
        self._files: dict[str, OpenFile | None] = {}

    def __len__(self) -> int:
        return len(self._files)

    def check(self, name: str) -> None:
        """Raise if nobody can have such a name."""
        if len(name.encode()) > self._limits.handle_bytes:
            words = f"file handle ID must not exceed {self._limits.handle_bytes} bytes"
            raise FileRefused(words, bound="file.handle_bytes")

    def reserve(self, name: str) -> None:
        """Take a name for a file that is about to be opened."""
        if name in self._files:
            raise HandleTaken(name)
        if len(self._files) >= self._limits.handles:
            raise LimitReached("file handles of one connection", self._limits.handles, name="file.handles")
        self._files[name] = None

    def put(self, name: str, file: OpenFile) -> None:
        self._files[name] = file

    def get(self, name: str) -> OpenFile:
        file = self._files.get(name)
        if file is None:
            raise UnknownHandle(name)
        return file

    def drop(self, name: str) -> None:
        """Close a file, if there is one, and free its name."""
        file = self._files.pop(name, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        for name in list(self._files):
            self.drop(name)


def key(name: str) -> str:
    """What requests about an open file have in common: no path, so that it overlaps with none."""
    return f"\0{name}\0"


async def open_file(talk: ExecConversation, request: m.Located[m.OpenParams]) -> m.OpenResult:
    """Open a file under a name of the client's choice, which is good on this connection."""
    params, handles = request.params, talk.files.handles
    sandbox = sandbox_of(params.sandbox, None)
    handles.check(params.handle_id)
    path = request.path
    async with talk.files.turns.take(key(params.handle_id), path, changes=True):
        handles.reserve(params.handle_id)
        try:
            purpose = Purpose(params.mode.value)
            file = await talk.backend.files.open(path, purpose, sandbox=sandbox)
        except BaseException:
            handles.drop(params.handle_id)
            raise
        handles.put(params.handle_id, file)
    return m.OpenResult(params.handle_id)


def _no_block(verb: str, length: int, most: int) -> FileRefused:
    bound = "file.block_bytes" if length > most else ""
    return FileRefused(f"file {verb} block length must be between 1 and {most}", bound=bound)


async def read_block(talk: ExecConversation, params: m.ReadBlockParams) -> m.ReadBlockResult:
    """Read bytes at a place of an open file.  If the system refuses, the file is closed."""
    handles, most = talk.files.handles, talk.endpoint.file_limits.block_bytes
    handles.check(params.handle_id)
    if not 1 <= params.len <= most:
        raise _no_block("read", params.len, most)
    async with talk.files.turns.take(key(params.handle_id)):
        file = handles.get(params.handle_id)
        try:
            data = await file.read(params.offset, params.len)
        except FileFailed:
            handles.drop(params.handle_id)
            raise
    return m.ReadBlockResult(base64.encode(data).decode(), len(data) < params.len)


async def write_block(talk: ExecConversation, params: m.WriteBlock) -> Nothing:
    """Write bytes at a place of a file opened to be replaced; what is skipped becomes zeros."""
    handles, most = talk.files.handles, talk.endpoint.file_limits.block_bytes
    handles.check(params.handle_id)
    if not 1 <= len(params.data) <= most:
        raise _no_block("write", len(params.data), most)
    async with talk.files.turns.take(key(params.handle_id), changes=True):
        await handles.get(params.handle_id).write(params.offset, params.data)
    return Nothing()


async def close_file(talk: ExecConversation, params: m.CloseParams) -> Nothing:
    """Close a file; there need not be one."""
    handles = talk.files.handles
    handles.check(params.handle_id)
    async with talk.files.turns.take(key(params.handle_id), changes=True):
        handles.drop(params.handle_id)
    return Nothing()
