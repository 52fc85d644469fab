"""Open files, and one to come: ``fs/open``, ``readBlock``, ``writeBlock``, ``close``, ``watchMissing``."""

from __future__ import annotations

from holdfast.errors import FileFailed, FileRefused
from holdfast.files import Purpose
from holdfast.protocol import base64
from holdfast.protocol.files import (
    CloseFileParams,
    OpenFileParams,
    OpenFileResult,
    ReadBlockParams,
    ReadBlockResult,
    WatchMissingResult,
)
from holdfast.protocol.sandbox import sandbox_of
from holdfast.protocol.shapes import Nothing

from .conversation import ExecConversation
from .decoding import DecodedWatch, DecodedWriteBlock, Located


def key(name: str) -> str:
    """What requests about an open file have in common: no path, so that it overlaps with none."""
    return f"\0{name}\0"


async def open_file(talk: ExecConversation, request: Located[OpenFileParams]) -> OpenFileResult:
    """Open a file under a name of the client's choice, which is good on this connection."""
    params, handles = request.params, talk.files.handles
    sandbox = sandbox_of(params.sandbox, None, talk.endpoint.sandbox_limits)
    handles.check(params.handle_id)
    path = request.path
    async with talk.files.locks.hold(key(params.handle_id), path, changes=True):
        handles.reserve(params.handle_id)
        try:
            purpose = Purpose(params.mode.value)
            file = await talk.backend.files.open(path, purpose, sandbox=sandbox)
        except BaseException:
            handles.drop(params.handle_id)
            raise
        handles.put(params.handle_id, file)
    return OpenFileResult(params.handle_id)


def _no_block(verb: str, length: int, most: int) -> FileRefused:
    bound = "file.block_bytes" if length > most else ""
    return FileRefused(f"file {verb} block length must be between 1 and {most}", bound=bound)


async def read_block(talk: ExecConversation, params: ReadBlockParams) -> ReadBlockResult:
    """Read bytes at a place of an open file.  If the system refuses, the file is closed."""
    handles, most = talk.files.handles, talk.endpoint.file_limits.block_bytes
    handles.check(params.handle_id)
    if not 1 <= params.len <= most:
        raise _no_block("read", params.len, most)
    async with talk.files.locks.hold(key(params.handle_id)):
        file = handles.get(params.handle_id)
        try:
            data = await file.read(params.offset, params.len)
        except FileFailed:
            handles.drop(params.handle_id)
            raise
    return ReadBlockResult(base64.encode(data).decode(), len(data) < params.len)


async def write_block(talk: ExecConversation, params: DecodedWriteBlock) -> Nothing:
    """Write bytes at an offset of a file that was opened with ``replace``; a gap is filled with zeros."""
    handles, most = talk.files.handles, talk.endpoint.file_limits.block_bytes
    handles.check(params.handle_id)
    if not 1 <= len(params.data) <= most:
        raise _no_block("write", len(params.data), most)
    async with talk.files.locks.hold(key(params.handle_id), changes=True):
        await handles.get(params.handle_id).write(params.offset, params.data)
    return Nothing()


async def close_file(talk: ExecConversation, params: CloseFileParams) -> Nothing:
    """Close a file; there need not be one."""
    handles = talk.files.handles
    handles.check(params.handle_id)
    async with talk.files.locks.hold(key(params.handle_id), changes=True):
        handles.drop(params.handle_id)
    return Nothing()


async def watch_missing(talk: ExecConversation, params: DecodedWatch) -> WatchMissingResult:
    """Get one notification when one of these paths, or a missing parent of one, appears."""
    state = talk.files.missing
    if not state.begin(params.watch_id) or not params.missing:
        return WatchMissingResult(watching=False)
    news = _News(talk, params.watch_id)
    watch = await talk.backend.files.watch_missing(params.missing, params.present, news.on_change)
    if watch is None:
        return WatchMissingResult(watching=False)
    if news.early or not state.is_latest(params.watch_id):
        # It has come while we were getting ready, or a newer watch has: the client has to look again.
        watch.stop()
        return WatchMissingResult(watching=False)
    news.ready = True
    state.put(watch)
    return WatchMissingResult(watching=True)


class _News:
    """What a watch tells: nothing before the answer that there is one."""

    __slots__ = ("_number", "_talk", "early", "ready")

    def __init__(self, talk: ExecConversation, number: int) -> None:
        self._talk = talk
        self._number = number
        self.early = False
        self.ready = False

    def on_change(self) -> None:
        if self.ready:
            self._talk.client.send(b'{"method":"fs/missingChanged","params":{"watchId":%d}}' % self._number)
        else:
            self.early = True
