"""The files of a server's host.

Whether a request goes out again after a broken connection is decided here, method by method:
if doing it twice is the same as doing it once.  Nobody can keep others from changing the same
file in between; that is so on one host, too.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from holdfast.config import MIB
from holdfast.errors import BadRequest, FileFailed, FileRefused, FileUnsupported, OutcomeUnknown, Unsupported
from holdfast.files import (
    DirEntry,
    FileMetadata,
    FileWatch,
    OpenFile,
    Purpose,
    Walk,
    WalkEntry,
    WalkError,
    WalkTerms,
    watch_callback,
)
from holdfast.protocol import base64
from holdfast.protocol.files import (
    ARCHIVE,
    CANONICALIZE,
    COPY,
    CREATE_DIRECTORY,
    EXTRACT,
    GET_METADATA,
    READ_DIRECTORY,
    READ_FILE,
    REMOVE,
    RENAME,
    WALK,
    WRITE_FILE,
    ArchiveParams,
    CanonicalizeParams,
    CanonicalizeResult,
    CopyParams,
    CreateDirectoryParams,
    DirectoryEntry,
    ExtractParams,
    GetMetadataParams,
    GetMetadataResult,
    OpenFileParams,
    OpenMode,
    ReadDirectoryParams,
    ReadDirectoryResult,
    ReadFileParams,
    ReadFileResult,
    RemoveParams,
    RenameParams,
    WalkKind,
    WalkOptions,
    WalkParams,
    WalkResult,
    WriteFileParams,
)
from holdfast.protocol.paths import path_of, uri_of
from holdfast.protocol.sandbox import SandboxContext, context_of
from holdfast.sandbox import Sandbox

from .link import Link
from .open_file import BLOCK, HeldFile, MissingFiles, RemoteFile
from .open_tree import RemoteTree

_AT_ONCE = 4 * MIB
"""More than this is written in blocks: others get their turn in between."""

_WRITE_MOST = 11 * MIB
"""What fits into one frame that a server takes, in base64."""

_READ_MOST = 48 * MIB
"""What fits into one message that we take, in base64, and may have grown meanwhile."""

_ITEM = 64
"""What each entry of a walk weighs beside its text, as on the host itself."""

_NUMBER = re.compile(r".*\(os error (\d{1,9})\)", re.DOTALL)


class RemoteFiles:
    """Implements ``files.Files``."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._names = itertools.count(1)
        # Others may have handles on the same connection.
        self._nonce = os.urandom(4).hex()
        self._missing = MissingFiles(link)

    # Whole files.

    async def read(
        self, path: str, *, at_once: int, follow: bool = True, sandbox: Sandbox | None = None
    ) -> bytes | OpenFile:
        """See ``files.Files``.

        Raises:
            FileUnsupported: The file is large, and no part of its path may be a link: the
                protocol opens files only the other way.
        """
        while True:
            try:
                found = await self.metadata(path, follow=follow, sandbox=sandbox)
            except (FileFailed, FileRefused):
                found = None  # Reading it fails as well, and says why in its own words.
            if found is not None and found.file and found.size > min(at_once, _READ_MOST):
                if follow:
                    file = await self._open(path, Purpose.READ, sandbox, found)
                    return file if found.size > at_once else await _all_of(file, at_once)
                if found.size > _READ_MOST:
                    raise FileUnsupported("a file of this size cannot be read without following links")
            try:
                # Not repeated as it is: the file may have become too large for a message, and would
                # break one connection after the other.
                params = ReadFileParams(uri_of(path), _following(follow=follow), _inside(sandbox))
                data = await self._link.call(READ_FILE, params, _read_file, repeat=False)
            except OutcomeUnknown:
                continue
            return data if len(data) <= at_once else HeldFile(data)

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        follow: bool = True,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        """See ``files.Files``.

        Raises:
            FileUnsupported: There is more than fits into a message, and the server takes it in no
                other way, or not without following links.
        """
        if len(data) > _AT_ONCE and follow and self._streams(sandbox):
            await self._write_blocks(path, data, permissions, sandbox)
            return
        if len(data) > _WRITE_MOST:
            raise FileUnsupported("a file of this size cannot be written to this server in this way")
        text = base64.encode(data).decode()
        # The same bytes in the same place: may be repeated.
        known = self._permissions(permissions)
        params = WriteFileParams(uri_of(path), text, _following(follow=follow), _inside(sandbox), known)
        await self._link.call(WRITE_FILE, params)

    def _streams(self, sandbox: Sandbox | None) -> bool:
        """Whether the server takes files in blocks."""
        can = None if self._link.info is None else self._link.info.capabilities
        return (
            can is not None and can.file_write_streaming and (sandbox is None or can.sandboxed_file_streaming)
        )

    def _permissions(self, wish: int | None) -> int | None:
        """The member ``permissions``, which other servers need not be sent."""
        return wish if "filePermissions" in self._link.features else None

    async def _write_blocks(
        self, path: str, data: bytes, permissions: int | None, sandbox: Sandbox | None
    ) -> None:
        while True:
            file = await self._open(path, Purpose.REPLACE, sandbox, None, permissions)
            try:
                for offset in range(0, len(data), BLOCK):
                    await file.write(offset, data[offset : offset + BLOCK])
                return
            except OutcomeUnknown:
                # We have all of it: from the beginning, on the next connection.
                continue
            finally:
                file.close()

    # Names.

    async def make_directory(
        self, path: str, *, recursive: bool, follow: bool = True, sandbox: Sandbox | None = None
    ) -> None:
        """See ``files.Files``.

        Raises:
            OutcomeUnknown: The connection broke, and the directory may not be there already.
        """
        params = CreateDirectoryParams(uri_of(path), recursive, _following(follow=follow), _inside(sandbox))
        # Without ``recursive`` the second time fails because of the first.
        await self._link.call(CREATE_DIRECTORY, params, repeat=recursive)

    async def metadata(
        self, path: str, *, follow: bool = True, sandbox: Sandbox | None = None
    ) -> FileMetadata:
        params = GetMetadataParams(uri_of(path), _following(follow=follow), _inside(sandbox))
        return await self._link.call(GET_METADATA, params, _metadata)

    async def canonical(self, path: str, *, sandbox: Sandbox | None = None) -> str:
        params = CanonicalizeParams(uri_of(path), _inside(sandbox))
        return await self._link.call(CANONICALIZE, params, _canonical)

    async def list(
        self, path: str, *, dangling: bool = True, sandbox: Sandbox | None = None
    ) -> Sequence[DirEntry]:
        dangling = dangling and "danglingLinks" in self._link.features
        params = ReadDirectoryParams(uri_of(path), dangling, _inside(sandbox))
        return await self._link.call(READ_DIRECTORY, params, _entries)

    async def walk(self, path: str, terms: WalkTerms, *, sandbox: Sandbox | None = None) -> Walk:
        """See ``files.Files``.  The server has a budget of its own besides that of the terms.

        Raises:
            FileRefused: The terms go further than the server does.
        """
        options = WalkOptions(
            max_depth=terms.depth,
            max_directories=terms.directories,
            max_entries=terms.entries,
            follow_directory_symlinks=terms.follow,
            prune_hidden_directories=terms.prune,
        )
        params = WalkParams(uri_of(path), options, _inside(sandbox))
        return await self._link.call(WALK, params, lambda result: _walk(result, terms))

    async def remove(
        self,
        path: str,
        *,
        recursive: bool,
        force: bool,
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> None:
        """See ``files.Files``.

        Raises:
            OutcomeUnknown: The connection broke, and there must be something.
        """
        params = RemoveParams(uri_of(path), recursive, force, _following(follow=follow), _inside(sandbox))
        # Without ``force`` the second time fails because of the first.
        await self._link.call(REMOVE, params, repeat=force)

    async def copy(
        self, source: str, destination: str, *, recursive: bool, sandbox: Sandbox | None = None
    ) -> None:
        """See ``files.Files``.

        Raises:
            OutcomeUnknown: The connection broke; there may be a copy, or a part of one.
        """
        params = CopyParams(uri_of(source), uri_of(destination), recursive, _inside(sandbox))
        # Not repeated: a copied link is in its own way, and a copied directory is in itself if the
        # second time follows another tree.
        await self._link.call(COPY, params, repeat=False)

    async def rename(self, source: str, destination: str, *, sandbox: Sandbox | None = None) -> None:
        """See ``files.Files``.

        Raises:
            OutcomeUnknown: The connection broke; it may have its new path.
        """
        self._need("fileRename", RENAME.name)
        params = RenameParams(uri_of(source), uri_of(destination), _inside(sandbox))
        # Not repeated: the second time fails because of the first.
        await self._link.call(RENAME, params, repeat=False)

    def _need(self, feature: str, method: str) -> None:
        if feature not in self._link.features:
            raise Unsupported(method)

    # Open files, and those that are not there yet.

    async def open(
        self,
        path: str,
        purpose: Purpose,
        *,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> OpenFile:
        """See ``files.Files``.

        The server forgets what is open when a connection breaks.  A file that is read is opened
        again without a word, as long as it is the same; one that is written fails from then on.
        """
        # Asked for before it is opened: if it is replaced in between, what is known does not fit what
        # is open, and opening it again fails.  The other way round two files could become one.
        known = await self.metadata(path, sandbox=sandbox) if purpose is Purpose.READ else None
        return await self._open(path, purpose, sandbox, known, permissions)

    async def archive(self, path: str, *, sandbox: Sandbox | None = None) -> RemoteTree:
        """See ``files.Files``.  When the connection breaks the archive has to be begun anew."""
        self._need("fileArchives", ARCHIVE.name)
        params = ArchiveParams(self._handle(), uri_of(path), _inside(sandbox))
        return await RemoteTree.open(self._link, ARCHIVE, params)

    async def extract(
        self, path: str, *, outside_links: bool = False, sandbox: Sandbox | None = None
    ) -> RemoteTree:
        """See ``files.Files``.  When the connection breaks the archive has to be begun anew."""
        self._need("fileArchives", EXTRACT.name)
        params = ExtractParams(self._handle(), uri_of(path), outside_links, _inside(sandbox))
        return await RemoteTree.open(self._link, EXTRACT, params)

    def _handle(self) -> str:
        return f"{self._nonce}.{next(self._names)}"

    async def _open(
        self,
        path: str,
        purpose: Purpose,
        sandbox: Sandbox | None,
        known: FileMetadata | None,
        permissions: int | None = None,
    ) -> RemoteFile:
        async def look() -> FileMetadata:
            return await self.metadata(path, sandbox=sandbox)

        mode, wish = OpenMode(purpose.value), self._permissions(permissions)
        params = OpenFileParams(self._handle(), uri_of(path), mode, _inside(sandbox), wish)
        file = RemoteFile(self._link, params, known, look)
        try:
            await file.open()
        except BaseException:
            file.close()
            raise
        return file

    async def watch_missing(
        self,
        missing: Sequence[str],
        present: str | None,
        on_change: Callable[[], None] | None = None,
        *,
        told: Callable[[], None] | None = None,
    ) -> FileWatch | None:
        """See ``files.Files``.

        There is no way to hear of more than one at a time: while there is a watch that is neither
        told nor stopped, the answer to another is None.  When the connection is lost for good
        ``on_change`` is called, since nobody would hear of it otherwise.
        """
        return await self._missing.watch(missing, present, watch_callback(on_change, told))

    # What the link tells, by way of the backend.

    def notified(self, params: msgspec.Raw) -> None:
        """Take ``fs/missingChanged``."""
        self._missing.notified(params)

    def broke(self) -> None:
        """The connection is gone, and with it what the server watched for us."""
        self._missing.broke()


def _following(*, follow: bool) -> bool | None:
    """The member ``followSymlinks``, which is left out where the protocol's default is meant."""
    return None if follow else False


def _inside(sandbox: Sandbox | None) -> SandboxContext | None:
    return None if sandbox is None else context_of(sandbox)


async def _all_of(file: RemoteFile, most: int) -> bytes | OpenFile:
    """All that is in it; if that has become more than ``most``, the open file."""
    pieces, size = [], 0
    try:
        while size <= most and (data := await file.read(size, BLOCK)):
            pieces.append(data)
            size += len(data)
    except BaseException:
        file.close()
        raise
    if size > most:
        return file
    file.close()
    return b"".join(pieces)


# What is answered.


def _read_file(found: ReadFileResult) -> bytes:
    return base64.decode(found.data_base64)


def _metadata(found: GetMetadataResult) -> FileMetadata:
    return FileMetadata(
        directory=found.is_directory,
        file=found.is_file,
        link=found.is_symlink,
        size=found.size,
        created=found.created_at_ms * 10**6,
        modified=found.modified_at_ms * 10**6,
        permissions=None if found.permissions is UNSET else found.permissions,
    )


def _canonical(found: CanonicalizeResult) -> str:
    return path_of(found.path)


def _entries(found: ReadDirectoryResult) -> Sequence[DirEntry]:
    return [_entry(entry) for entry in found.entries]


def _entry(entry: DirectoryEntry) -> DirEntry:
    link = None if entry.is_symlink is UNSET else entry.is_symlink
    return DirEntry(_name(entry), entry.is_directory, entry.is_file, link)


def _name(entry: DirectoryEntry) -> str:
    """The exact name, where the server tells it; never a way to somewhere else."""
    name = entry.file_name if not entry.path else path_of(entry.path).rpartition("/")[2]
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise BadRequest(f"{name!r} is no name in a directory")
    return name


def _walk(found: WalkResult, terms: WalkTerms) -> Walk:
    """What was found, in the words of the terms and within their budget."""
    walk = Walk([], [], found.truncated)
    weight = 0
    for entry in found.entries:
        path = terms.spell(path_of(entry.path))
        weight += _ITEM + len(path)
        if weight > terms.budget:
            walk.truncated = True
            return walk
        walk.entries.append(WalkEntry(path, entry.kind is WalkKind.DIRECTORY))
    for error in found.errors:
        path = terms.spell(path_of(error.path))
        weight += _ITEM + len(path) + len(error.message)
        if weight > terms.budget:
            walk.truncated = True
            return walk
        number = _NUMBER.fullmatch(error.message)
        walk.errors.append(WalkError(path, errno.EIO if number is None else int(number[1])))
    return walk
