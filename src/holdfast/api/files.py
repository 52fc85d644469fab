"""The files of a host as Python programs expect them: like ``pathlib``, with ``OSError`` for what fails."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from holdfast.errors import FileFailed, FileRefused, FileUnsupported, TooManyEntries
from holdfast.files import Purpose

from .walking import Level, walk_levels

if TYPE_CHECKING:
    from holdfast.files import (
        DirEntry,
        FileMetadata,
        Files,
        FileWatch,
        OpenFile,
        OpenTree,
        TreeCount,
        Walk,
        WalkTerms,
    )
    from holdfast.sandbox import Sandbox

AnyPath = str | os.PathLike[str]
"""A path on the host; a relative one is relative to the directory in which processes start."""

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class HostFiles:
    """The files of a host.

    A call takes as long as the disk takes, and holds up nobody else.  One that was cancelled may still have
    its effect; what it opened is closed.  With ``follow`` false no part of the path may be a symbolic link.
    With a ``sandbox`` everything behaves as if done by a command inside of it, whatever others do meanwhile.

    Raises:
        FileFailed: The system would not do it, or the sandbox forbids it.  It is a ``FileNotFoundError``,
            ``PermissionError`` or whatever else Python has for it.
        FileRefused: What is there is nothing to which this can be done.
    """

    def __init__(self, files: Files, cwd: str) -> None:
        """
        Args:
            cwd: The directory that relative paths are relative to.
        """
        self._files = files
        self._cwd = cwd

    def _path(self, path: AnyPath) -> str:
        return os.path.normpath(os.path.join(self._cwd, os.fspath(path)))

    # Whole files.

    async def read_bytes(
        self, path: AnyPath, *, follow: bool = True, sandbox: Sandbox | None = None
    ) -> bytes:
        """Return all bytes of a file.

        Raises:
            IsADirectoryError: It is a directory.
        """
        path = self._path(path)
        with naming(path):
            try:
                found = await self._files.read(path, at_once=sys.maxsize, follow=follow, sandbox=sandbox)
            except FileRefused:
                if (await self._files.metadata(path, follow=follow, sandbox=sandbox)).directory:
                    raise FileFailed(errno.EISDIR) from None
                raise
        assert isinstance(found, bytes)
        return found

    async def read_text(
        self,
        path: AnyPath,
        *,
        encoding: str = "utf-8",
        errors: str = "strict",
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> str:
        """Return a file as text, with the ends of its lines as they are."""
        return (await self.read_bytes(path, follow=follow, sandbox=sandbox)).decode(encoding, errors)

    async def write_bytes(
        self,
        path: AnyPath,
        data: bytes,
        *,
        parents: bool = False,
        permissions: int | None = None,
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> int:
        """Make a file of these bytes, or put them into the one that is there; return how many they are.

        Args:
            parents: Make missing directories above it.
            permissions: The permission bits of a file that is made; by default the umask decides.
        """
        path = self._path(path)
        try:
            await self.write(path, data, follow=follow, permissions=permissions, sandbox=sandbox)
        except FileNotFoundError:
            if not parents:
                raise
            await self.mkdir(os.path.dirname(path), parents=True, exist_ok=True, sandbox=sandbox)
            await self.write(path, data, follow=follow, permissions=permissions, sandbox=sandbox)
        return len(data)

    async def write_text(
        self,
        path: AnyPath,
        text: str,
        *,
        encoding: str = "utf-8",
        errors: str = "strict",
        parents: bool = False,
        permissions: int | None = None,
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> int:
        """Do what ``write_bytes`` does with a text; return the number of its characters."""
        data = text.encode(encoding, errors)
        await self.write_bytes(
            path, data, parents=parents, permissions=permissions, follow=follow, sandbox=sandbox
        )
        return len(text)

    async def read(
        self, path: AnyPath, *, at_once: int, follow: bool = True, sandbox: Sandbox | None = None
    ) -> bytes | OpenFile:
        """Return the bytes of a file, or, if there are more than ``at_once``, the open file."""
        path = self._path(path)
        with naming(path):
            return await self._files.read(path, at_once=at_once, follow=follow, sandbox=sandbox)

    async def write(
        self,
        path: AnyPath,
        data: bytes,
        *,
        follow: bool = True,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Do what ``write_bytes`` does, in a directory that is there."""
        path = self._path(path)
        with naming(path):
            await self._files.write(path, data, follow=follow, permissions=permissions, sandbox=sandbox)

    # What is there.

    async def exists(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> bool:
        """Whether there is something at a path; not at a link that leads nowhere."""
        return await self._look(path, sandbox) is not None

    async def is_file(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> bool:
        """Whether there is a regular file, or a link to one."""
        found = await self._look(path, sandbox)
        return found is not None and found.file

    async def is_dir(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> bool:
        """Whether there is a directory, or a link to one."""
        found = await self._look(path, sandbox)
        return found is not None and found.directory

    async def _look(self, path: AnyPath, sandbox: Sandbox | None) -> FileMetadata | None:
        try:
            return await self.metadata(path, sandbox=sandbox)
        except FileFailed as error:
            if error.number in _NOT_THERE:
                return None
            raise

    async def metadata(
        self, path: AnyPath, *, follow: bool = True, sandbox: Sandbox | None = None
    ) -> FileMetadata:
        """Return what is known of a file or directory: its kind, size, times and permissions."""
        path = self._path(path)
        with naming(path):
            return await self._files.metadata(path, follow=follow, sandbox=sandbox)

    async def canonical(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> str:
        """Return the path of something that is there, without symbolic links."""
        path = self._path(path)
        with naming(path):
            return await self._files.canonical(path, sandbox=sandbox)

    # Directories.

    async def list(
        self, path: AnyPath, *, dangling: bool = True, sandbox: Sandbox | None = None
    ) -> Sequence[DirEntry]:
        """Return the entries of a directory, in its own order.

        Args:
            dangling: With links that lead nowhere, which are neither files nor directories.

        Raises:
            TooManyEntries: There are more than 50,000.
        """
        path = self._path(path)
        with naming(path):
            return await self._files.list(path, dangling=dangling, sandbox=sandbox)

    @overload
    def walk(
        self, path: AnyPath, terms: WalkTerms, *, sandbox: Sandbox | None = None
    ) -> Coroutine[Any, Any, Walk]: ...
    @overload
    def walk(
        self,
        path: AnyPath,
        terms: None = None,
        *,
        follow: bool = False,
        on_error: Callable[[OSError], object] | None = None,
        sandbox: Sandbox | None = None,
    ) -> AsyncIterator[Level]: ...
    def walk(
        self,
        path: AnyPath,
        terms: WalkTerms | None = None,
        *,
        follow: bool = False,
        on_error: Callable[[OSError], object] | None = None,
        sandbox: Sandbox | None = None,
    ) -> Coroutine[Any, Any, Walk] | AsyncIterator[Level]:
        """Go through a directory and all below it, as ``os.walk``: ``async for path, dirs, files in ...``.

        Every name is in one of the two lists, in order; links are with what they lead to, those that lead
        nowhere with the files.  What is removed from ``dirs`` is not entered.  A directory that is gone
        by then is passed over.  With ``terms`` it is one request, to be awaited, that gives a ``Walk``.

        Args:
            follow: Enter directories through links, each directory once.
            on_error: Called with the error of a directory that cannot be read; by default that is raised.
        """
        if terms is not None:
            return self._files.walk(self._path(path), terms, sandbox=sandbox)
        return walk_levels(self, self._path(path), follow=follow, on_error=on_error, sandbox=sandbox)

    async def mkdir(
        self,
        path: AnyPath,
        *,
        parents: bool = False,
        exist_ok: bool = False,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Make a directory.

        Args:
            parents: Make missing directories above it.
            exist_ok: It may be there already.
        """
        path = self._path(path)
        if parents and exist_ok:
            await self.make_directory(path, recursive=True, sandbox=sandbox)
            return
        if parents:
            await self.make_directory(os.path.dirname(path), recursive=True, sandbox=sandbox)
        try:
            await self.make_directory(path, recursive=False, sandbox=sandbox)
        except FileExistsError:
            if not exist_ok or not await self.is_dir(path, sandbox=sandbox):
                raise

    async def make_directory(
        self, path: AnyPath, *, recursive: bool, follow: bool = True, sandbox: Sandbox | None = None
    ) -> None:
        """Make a directory; if ``recursive`` with all above it, and it may be there already."""
        path = self._path(path)
        with naming(path):
            await self._files.make_directory(path, recursive=recursive, follow=follow, sandbox=sandbox)

    # Changes.

    async def remove(
        self,
        path: AnyPath,
        *,
        recursive: bool = False,
        force: bool = False,
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Remove a file, a link or an empty directory.

        Args:
            recursive: Also a directory with all that is in it.
            force: There need not be anything.
        """
        path = self._path(path)
        with naming(path):
            await self._files.remove(path, recursive=recursive, force=force, follow=follow, sandbox=sandbox)

    async def rename(self, source: AnyPath, destination: AnyPath, *, sandbox: Sandbox | None = None) -> None:
        """Give something another path on the same file system; a file that has it is replaced, at once.

        Raises:
            Unsupported: The server cannot do it: copy it, and remove the original.
        """
        path = self._path(source)
        with naming(path):
            await self._files.rename(path, self._path(destination), sandbox=sandbox)

    async def copy(
        self,
        source: AnyPath,
        destination: AnyPath,
        *,
        recursive: bool = False,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Copy a file with its mode, a link as it is, or, if ``recursive``, a directory with all in it.

        Both are on the host.  For copies from and to this program's own host there are ``upload`` and
        ``download``.
        """
        path, to = self._path(source), self._path(destination)
        with naming(path):
            await self._files.copy(path, to, recursive=recursive, sandbox=sandbox)

    # Open files, trees and news.

    async def open(
        self,
        path: AnyPath,
        purpose: Purpose = Purpose.READ,
        *,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> OpenFile:
        """Return an open file, to be read or written piece by piece; close it when you are done."""
        path = self._path(path)
        with naming(path):
            return await self._files.open(path, purpose, permissions=permissions, sandbox=sandbox)

    async def archive(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> OpenTree:
        """Return a directory with all below it as one tar archive, to be read from its beginning to its end.

        Raises:
            Unsupported: The server cannot do it.
        """
        path = self._path(path)
        with naming(path):
            return await self._files.archive(path, sandbox=sandbox)

    async def extract(
        self, path: AnyPath, *, outside_links: bool = False, sandbox: Sandbox | None = None
    ) -> OpenTree:
        """Return somewhere to write a tar archive to, from its beginning to its end; it is unpacked at once.

        What leads out of the tree is refused, links too, unless ``outside_links`` allows those.

        Raises:
            Unsupported: The server cannot do it.
        """
        path = self._path(path)
        with naming(path):
            return await self._files.extract(path, outside_links=outside_links, sandbox=sandbox)

    async def upload(
        self,
        local: AnyPath,
        remote: AnyPath,
        *,
        outside_links: bool = True,
        on_progress: Callable[[int], object] | None = None,
        sandbox: Sandbox | None = None,
    ) -> TreeCount:
        """Copy a file or a directory of this program's own host to ``remote``, the path of the copy.

        A directory is copied into one that may be there already, as one stream; permission bits and links are
        kept.  Files that are in the way are replaced.  A server without archives gets it file by file,
        without links to directories.

        Args:
            outside_links: Keep links that lead out of the tree; otherwise they are refused.
            on_progress: Called with the number of bytes that were sent since the last call.
            sandbox: What may be written on the host.
        """
        from .transfer import CopyTarget, upload  # Here: a client of a server has no engine otherwise.

        target = CopyTarget(self._files, self._path(remote), sandbox, outside_links=outside_links)
        return await upload(local, target, on_progress)

    async def download(
        self,
        remote: AnyPath,
        local: AnyPath,
        *,
        outside_links: bool = False,
        on_progress: Callable[[int], object] | None = None,
        sandbox: Sandbox | None = None,
    ) -> TreeCount:
        """Copy a file or a directory of the host to this program's own; ``local`` is the path of the copy.

        It is the reverse of ``upload``.  A server can make nothing beside ``local``, whatever it sends.

        Args:
            outside_links: Keep links that lead out of the tree, as ``python -> /usr/bin/python3`` does; by
                default they are refused, because another program could be led astray by them.
            on_progress: Called with the number of bytes that came since the last call.
            sandbox: What may be read on the host.
        """
        from .transfer import CopySource, download  # Here: a client of a server has no engine otherwise.

        source = CopySource(self._files, self._path(remote), sandbox)
        return await download(source, local, on_progress, outside_links=outside_links)

    async def watch_missing(
        self, missing: Sequence[str], present: str | None, on_change: Callable[[], None]
    ) -> FileWatch | None:
        """Have ``on_change`` called once, when one of the missing paths, or a missing parent of one, appears.

        Also when ``present``, or a directory above any of them, goes.  None if there is nothing to wait for,
        or no way to hear of it.
        """
        return await self._files.watch_missing(missing, present, on_change)


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Have an error about a file name its path."""
    try:
        yield
    except (FileFailed, FileRefused, FileUnsupported, TooManyEntries) as error:
        if error.filename is None:
            error.filename = path
        raise
