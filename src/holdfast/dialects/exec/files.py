"""The methods about files: as wholes, open ones by their handles, and those that are still missing."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial

from msgspec import UNSET

from holdfast.config import FileLimits
from holdfast.dialects.dialect import LongResult
from holdfast.errors import BadRequest, FileFailed, FileRefused
from holdfast.files import DirEntry, Files, OpenFile, Purpose, WalkTerms
from holdfast.protocol import base64, paths
from holdfast.protocol.files import (
    ArchiveParams,
    CanonicalizeParams,
    CanonicalizeResult,
    CloseFileParams,
    CopyParams,
    CreateDirectoryParams,
    DirectoryEntry,
    ExtractParams,
    FoundEntry,
    FoundError,
    GetMetadataParams,
    GetMetadataResult,
    OpenFileParams,
    OpenFileResult,
    ReadBlockParams,
    ReadBlockResult,
    ReadDirectoryParams,
    ReadDirectoryResult,
    ReadFileParams,
    RemoveParams,
    RenameParams,
    WalkKind,
    WalkOptions,
    WalkParams,
    WalkResult,
    WatchMissingResult,
    WriteFileParams,
)
from holdfast.protocol.sandbox import SandboxContext, sandbox_of
from holdfast.protocol.shapes import Nothing
from holdfast.sandbox import Sandbox
from holdfast.wire.jsonrpc import JsonParts

from .conversation import ExecConversation
from .decoding import DecodedWatch, DecodedWriteBlock, Located, local
from .explain import file_text
from .path_locks import PathLock


def _follows(wish: bool | None) -> bool:  # noqa: FBT001
    return wish is not False


async def read_file(talk: ExecConversation, request: Located[ReadFileParams]) -> JsonParts | LongResult:
    """Read a regular file."""
    params, limits = request.params, talk.endpoint.file_limits
    sandbox = sandbox_of(params.sandbox, None, talk.endpoint.sandbox_limits)
    path = request.path
    lock = talk.files.locks.join(path)
    await lock.acquire()
    try:
        found = await _files(talk).read(
            path, at_once=limits.at_once_bytes, follow=_follows(params.follow_symlinks), sandbox=sandbox
        )
    except BaseException:
        lock.release()
        raise
    if not isinstance(found, bytes):
        return _long(found, lock, limits)
    lock.release()
    return JsonParts((b'{"dataBase64":"', base64.encode(found), b'"}'))


def _long(file: OpenFile, lock: PathLock, limits: FileLimits) -> LongResult:
    """An answer that never is in memory as a whole."""

    def close() -> None:
        file.close()
        lock.release()

    return LongResult(b'{"dataBase64":"', _pieces(file, limits), b'"}', close)


async def _pieces(file: OpenFile, limits: FileLimits) -> AsyncGenerator[bytes, None]:
    # A multiple of 3, so that the texts of the pieces are the text of the whole.
    step = max(3, limits.at_once_bytes - limits.at_once_bytes % 3)
    offset = 0
    while data := await file.read(offset, step):
        offset += len(data)
        if offset > limits.read_bytes:
            # It has grown meanwhile.  A part of it must not look like all of it.
            words = f"file is too large to read: limit is {limits.read_bytes} bytes"
            raise FileRefused(words, bound="file.read_bytes")
        yield base64.encode(data)
        if len(data) < step:
            return


async def write_file(talk: ExecConversation, request: Located[WriteFileParams]) -> Nothing:
    """Make a file of these bytes, or put them into the one that is there, in place."""
    params = request.params
    sandbox = sandbox_of(params.sandbox, None, talk.endpoint.sandbox_limits)
    try:
        data = base64.decode(params.data_base64)
    except BadRequest as bad:
        raise FileRefused(f"fs/writeFile requires valid base64 dataBase64: {bad}") from None
    path = request.path
    params.data_base64 = ""  # Not twice in memory while it waits.
    async with talk.files.locks.hold(path, changes=True):
        follow = _follows(params.follow_symlinks)
        await _files(talk).write(path, data, follow=follow, permissions=params.permissions, sandbox=sandbox)
    return Nothing()


async def create_directory(talk: ExecConversation, request: Located[CreateDirectoryParams]) -> Nothing:
    """Create a directory, with missing parents unless ``recursive`` is false."""
    params = request.params
    sandbox = sandbox_of(params.sandbox, None, talk.endpoint.sandbox_limits)
    path = request.path
    async with talk.files.locks.hold(path, changes=True):
        await _files(talk).make_directory(
            path,
            recursive=params.recursive is not False,
            follow=_follows(params.follow_symlinks),
            sandbox=sandbox,
        )
    return Nothing()


async def get_metadata(talk: ExecConversation, request: Located[GetMetadataParams]) -> GetMetadataResult:
    """Return facts about what is at a path."""
    params = request.params
    sandbox = sandbox_of(params.sandbox, None, talk.endpoint.sandbox_limits)
    path = request.path
    async with talk.files.locks.hold(path):
        facts = await _files(talk).metadata(path, follow=_follows(params.follow_symlinks), sandbox=sandbox)
    return GetMetadataResult(
        is_directory=facts.directory,
        is_file=facts.file,
        is_symlink=facts.link,
        size=facts.size,
        created_at_ms=max(0, facts.created // 10**6),
        modified_at_ms=max(0, facts.modified // 10**6),
        permissions=UNSET if facts.permissions is None or not talk.session.extended else facts.permissions,
    )


async def canonicalize(talk: ExecConversation, request: Located[CanonicalizeParams]) -> CanonicalizeResult:
    """Return the path of an existing file or directory, without symbolic links."""
    sandbox = sandbox_of(request.params.sandbox, None, talk.endpoint.sandbox_limits)
    path = request.path
    async with talk.files.locks.hold(path):
        return CanonicalizeResult(paths.to_uri(await _files(talk).canonical(path, sandbox=sandbox)))


async def read_directory(
    talk: ExecConversation, request: Located[ReadDirectoryParams]
) -> ReadDirectoryResult:
    """List a directory."""
    sandbox = sandbox_of(request.params.sandbox, None, talk.endpoint.sandbox_limits)
    path, dangling = request.path, request.params.dangling_links
    async with talk.files.locks.hold(path):
        entries = await _files(talk).list(path, dangling=dangling, sandbox=sandbox)
    return ReadDirectoryResult([_entry(path, entry, tells_links=dangling) for entry in entries])


def _entry(directory: str, entry: DirEntry, *, tells_links: bool) -> DirectoryEntry:
    name, link = entry.name, entry.link is True if tells_links else UNSET
    if name.isascii() or (shown := _shown(name)) == name:
        return DirectoryEntry(name, entry.directory, entry.file, is_symlink=link)
    uri = paths.to_uri(os.path.join(directory, name))
    return DirectoryEntry(shown, entry.directory, entry.file, uri, link)


def _shown(name: str) -> str:
    """A name as text, as far as it is text."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


async def walk(talk: ExecConversation, request: Located[WalkParams]) -> WalkResult:
    """List what is below a directory, level by level."""
    sandbox = sandbox_of(request.params.sandbox, None, talk.endpoint.sandbox_limits)
    path = request.path
    terms = _terms(request.params.options, talk.endpoint.file_limits)
    async with talk.files.locks.hold(path):
        found = await _files(talk).walk(path, terms, sandbox=sandbox)
    return WalkResult(
        [FoundEntry(entry.path, _KINDS[entry.directory]) for entry in found.entries],
        [FoundError(error.path, file_text(error.number)) for error in found.errors],
        found.truncated,
    )


_KINDS = {True: WalkKind.DIRECTORY, False: WalkKind.FILE}


def _terms(options: WalkOptions, limits: FileLimits) -> WalkTerms:
    most = (limits.walk_depth, limits.walk_directories, limits.walk_entries)
    if not options.max_directories or not options.max_entries:
        raise FileRefused("filesystem walk limits must be greater than zero")
    asked = (options.max_depth, options.max_directories, options.max_entries)
    for name, wish, limit in zip(("depth", "directories", "entries"), asked, most, strict=True):
        if wish > limit:
            raise FileRefused(
                "filesystem walk limits exceed maximums: "
                f"depth={most[0]}, directories={most[1]}, entries={most[2]}",
                bound=f"file.walk_{name}",
            )
    return WalkTerms(
        depth=options.max_depth,
        directories=options.max_directories,
        entries=options.max_entries,
        follow=options.follow_directory_symlinks,
        prune=options.prune_hidden_directories,
        budget=limits.walk_bytes,
        spell=paths.to_uri,
    )


async def remove(talk: ExecConversation, request: Located[RemoveParams]) -> Nothing:
    """Remove a file, a link or a directory."""
    params = request.params
    sandbox = sandbox_of(params.sandbox, None, talk.endpoint.sandbox_limits)
    path = request.path
    async with talk.files.locks.hold(path, changes=True):
        await _files(talk).remove(
            path,
            recursive=params.recursive is not False,
            force=params.force is not False,
            follow=_follows(params.follow_symlinks),
            sandbox=sandbox,
        )
    return Nothing()


async def copy(talk: ExecConversation, request: Located[CopyParams]) -> Nothing:
    """Copy a file with its mode, a link as it is, or a directory with all that is in it."""
    sandbox = sandbox_of(request.params.sandbox, None, talk.endpoint.sandbox_limits)
    source, destination = (local(uri) for uri in request.uris)
    async with talk.files.locks.hold(source, destination, changes=True):
        await _files(talk).copy(source, destination, recursive=request.params.recursive, sandbox=sandbox)
    return Nothing()


async def rename(talk: ExecConversation, request: Located[RenameParams]) -> Nothing:
    """Give something another path on the same file system."""
    sandbox = sandbox_of(request.params.sandbox, None, talk.endpoint.sandbox_limits)
    source, destination = (local(uri) for uri in request.uris)
    async with talk.files.locks.hold(source, destination, changes=True):
        await _files(talk).rename(source, destination, sandbox=sandbox)
    return Nothing()


def _files(talk: ExecConversation) -> Files:
    return talk.backend.files


# Open files, and those to come.


def _handle_key(name: str) -> str:
    """What requests about an open file have in common: no path, so that it overlaps with none."""
    return f"\0{name}\0"


async def open_file(talk: ExecConversation, request: Located[OpenFileParams]) -> OpenFileResult:
    """Open a file under a name of the client's choice, which is good on this connection."""
    params, sandbox = request.params, _sandbox(talk, request.params.sandbox)
    purpose = Purpose(params.mode.value)
    opening = partial(_files(talk).open, purpose=purpose, permissions=params.permissions, sandbox=sandbox)
    return await _open(talk, params.handle_id, request.path, opening)


async def archive(talk: ExecConversation, request: Located[ArchiveParams]) -> OpenFileResult:
    """Open a directory, with all that is in it, as a tar archive that is read block by block."""
    params, sandbox = request.params, _sandbox(talk, request.params.sandbox)
    return await _open(talk, params.handle_id, request.path, partial(_files(talk).archive, sandbox=sandbox))


async def extract(talk: ExecConversation, request: Located[ExtractParams]) -> OpenFileResult:
    """Open a directory for a tar archive that is written block by block, and unpacked as it arrives."""
    params, sandbox = request.params, _sandbox(talk, request.params.sandbox)
    opening = partial(_files(talk).extract, outside_links=params.outside_links, sandbox=sandbox)
    return await _open(talk, params.handle_id, request.path, opening)


def _sandbox(talk: ExecConversation, context: SandboxContext | None) -> Sandbox | None:
    return sandbox_of(context, None, talk.endpoint.sandbox_limits)


async def _open(
    talk: ExecConversation, name: str, path: str, opening: Callable[[str], Awaitable[OpenFile]]
) -> OpenFileResult:
    """Put what ``opening`` gives for a path under a name."""
    handles = talk.files.handles
    handles.check(name)
    async with talk.files.locks.hold(_handle_key(name), path, changes=True):
        handles.reserve(name)
        try:
            file = await opening(path)
        except BaseException:
            handles.drop(name)
            raise
        handles.put(name, file)
    return OpenFileResult(name)


def _no_block(verb: str, length: int, most: int) -> FileRefused:
    bound = "file.block_bytes" if length > most else ""
    return FileRefused(f"file {verb} block length must be between 1 and {most}", bound=bound)


async def read_block(talk: ExecConversation, params: ReadBlockParams) -> ReadBlockResult:
    """Read bytes at a place of an open file.  If the system refuses, the file is closed."""
    handles, most = talk.files.handles, talk.endpoint.file_limits.block_bytes
    handles.check(params.handle_id)
    if not 1 <= params.len <= most:
        raise _no_block("read", params.len, most)
    async with talk.files.locks.hold(_handle_key(params.handle_id)):
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
    async with talk.files.locks.hold(_handle_key(params.handle_id), changes=True):
        await handles.get(params.handle_id).write(params.offset, params.data)
    return Nothing()


async def close_file(talk: ExecConversation, params: CloseFileParams) -> Nothing:
    """Close a file; there need not be one."""
    handles = talk.files.handles
    handles.check(params.handle_id)
    async with talk.files.locks.hold(_handle_key(params.handle_id), changes=True):
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
