"""The files of a host for programs without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, overload

from holdfast.files import Purpose

if TYPE_CHECKING:
    from holdfast import files
    from holdfast.files import DirEntry, FileMetadata, TreeCount, Walk, WalkTerms
    from holdfast.sandbox import Sandbox

    from . import host as asynchronous
    from .files import AnyPath
    from .thread import LoopThread
    from .walking import Level


class OpenFile:
    """An open file.  The synchronous ``holdfast.files.OpenFile``; close it when you are done."""

    def __init__(self, file: files.OpenFile, thread: LoopThread) -> None:
        self._file = file
        self._thread = thread

    def read(self, offset: int, length: int) -> bytes:
        return self._thread.call(self._file.read(offset, length))

    def write(self, offset: int, data: bytes) -> None:
        self._thread.call(self._file.write(offset, data))

    def close(self) -> None:
        self._thread.call(self._close())

    async def _close(self) -> None:
        self._file.close()


class OpenTree(OpenFile):
    """A tree as an archive.  The synchronous ``holdfast.files.OpenTree``; close it when you are done."""

    def __init__(self, tree: files.OpenTree, thread: LoopThread) -> None:
        super().__init__(tree, thread)
        self._tree = tree

    @property
    def count(self) -> TreeCount | None:
        return self._tree.count


class Files:
    """The files of a host.  The synchronous twin of ``HostFiles``, which documents the methods."""

    def __init__(self, host: asynchronous.Host, thread: LoopThread) -> None:
        self._files = host.files
        self._thread = thread

    # Whole files.

    def read_bytes(self, path: AnyPath, *, follow: bool = True, sandbox: Sandbox | None = None) -> bytes:
        return self._thread.call(self._files.read_bytes(path, follow=follow, sandbox=sandbox))

    def read_text(
        self,
        path: AnyPath,
        *,
        encoding: str = "utf-8",
        errors: str = "strict",
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> str:
        reading = self._files.read_text(
            path, encoding=encoding, errors=errors, follow=follow, sandbox=sandbox
        )
        return self._thread.call(reading)

    def write_bytes(
        self,
        path: AnyPath,
        data: bytes,
        *,
        parents: bool = False,
        permissions: int | None = None,
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> int:
        writing = self._files.write_bytes(
            path, data, parents=parents, permissions=permissions, follow=follow, sandbox=sandbox
        )
        return self._thread.call(writing)

    def write_text(
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
        writing = self._files.write_text(
            path,
            text,
            encoding=encoding,
            errors=errors,
            parents=parents,
            permissions=permissions,
            follow=follow,
            sandbox=sandbox,
        )
        return self._thread.call(writing)

    def read(
        self, path: AnyPath, *, at_once: int, follow: bool = True, sandbox: Sandbox | None = None
    ) -> bytes | OpenFile:
        found = self._thread.call(self._files.read(path, at_once=at_once, follow=follow, sandbox=sandbox))
        return found if isinstance(found, bytes) else OpenFile(found, self._thread)

    def write(
        self,
        path: AnyPath,
        data: bytes,
        *,
        follow: bool = True,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        writing = self._files.write(path, data, follow=follow, permissions=permissions, sandbox=sandbox)
        self._thread.call(writing)

    # What is there.

    def exists(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> bool:
        return self._thread.call(self._files.exists(path, sandbox=sandbox))

    def is_file(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> bool:
        return self._thread.call(self._files.is_file(path, sandbox=sandbox))

    def is_dir(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> bool:
        return self._thread.call(self._files.is_dir(path, sandbox=sandbox))

    def metadata(self, path: AnyPath, *, follow: bool = True, sandbox: Sandbox | None = None) -> FileMetadata:
        return self._thread.call(self._files.metadata(path, follow=follow, sandbox=sandbox))

    def canonical(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> str:
        return self._thread.call(self._files.canonical(path, sandbox=sandbox))

    # Directories.

    def list(
        self, path: AnyPath, *, dangling: bool = True, sandbox: Sandbox | None = None
    ) -> Sequence[DirEntry]:
        return self._thread.call(self._files.list(path, dangling=dangling, sandbox=sandbox))

    @overload
    def walk(self, path: AnyPath, terms: WalkTerms, *, sandbox: Sandbox | None = None) -> Walk: ...
    @overload
    def walk(
        self,
        path: AnyPath,
        terms: None = None,
        *,
        follow: bool = False,
        on_error: Callable[[OSError], object] | None = None,
        sandbox: Sandbox | None = None,
    ) -> Iterator[Level]: ...
    def walk(
        self,
        path: AnyPath,
        terms: WalkTerms | None = None,
        *,
        follow: bool = False,
        on_error: Callable[[OSError], object] | None = None,
        sandbox: Sandbox | None = None,
    ) -> Walk | Iterator[Level]:
        if terms is not None:
            return self._thread.call(self._files.walk(path, terms, sandbox=sandbox))
        return self._levels(path, follow, on_error, sandbox)

    def _levels(
        self,
        path: AnyPath,
        follow: bool,  # noqa: FBT001
        on_error: Callable[[OSError], object] | None,
        sandbox: Sandbox | None,
    ) -> Iterator[Level]:
        walking = self._files.walk(path, follow=follow, on_error=on_error, sandbox=sandbox)

        async def following() -> Level | None:
            return await anext(walking, None)

        while (level := self._thread.call(following())) is not None:
            yield level

    def mkdir(
        self,
        path: AnyPath,
        *,
        parents: bool = False,
        exist_ok: bool = False,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._thread.call(self._files.mkdir(path, parents=parents, exist_ok=exist_ok, sandbox=sandbox))

    def make_directory(
        self, path: AnyPath, *, recursive: bool, follow: bool = True, sandbox: Sandbox | None = None
    ) -> None:
        making = self._files.make_directory(path, recursive=recursive, follow=follow, sandbox=sandbox)
        self._thread.call(making)

    # Changes.

    def remove(
        self,
        path: AnyPath,
        *,
        recursive: bool = False,
        force: bool = False,
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> None:
        removing = self._files.remove(path, recursive=recursive, force=force, follow=follow, sandbox=sandbox)
        self._thread.call(removing)

    def rename(self, source: AnyPath, destination: AnyPath, *, sandbox: Sandbox | None = None) -> None:
        self._thread.call(self._files.rename(source, destination, sandbox=sandbox))

    def copy(
        self,
        source: AnyPath,
        destination: AnyPath,
        *,
        recursive: bool = False,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._thread.call(self._files.copy(source, destination, recursive=recursive, sandbox=sandbox))

    # Open files and trees.

    def open(
        self,
        path: AnyPath,
        purpose: Purpose = Purpose.READ,
        *,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> OpenFile:
        opening = self._files.open(path, purpose, permissions=permissions, sandbox=sandbox)
        return OpenFile(self._thread.call(opening), self._thread)

    def archive(self, path: AnyPath, *, sandbox: Sandbox | None = None) -> OpenTree:
        return OpenTree(self._thread.call(self._files.archive(path, sandbox=sandbox)), self._thread)

    def extract(
        self, path: AnyPath, *, outside_links: bool = False, sandbox: Sandbox | None = None
    ) -> OpenTree:
        opening = self._files.extract(path, outside_links=outside_links, sandbox=sandbox)
        return OpenTree(self._thread.call(opening), self._thread)

    def upload(
        self,
        local: AnyPath,
        remote: AnyPath,
        *,
        outside_links: bool = True,
        on_progress: Callable[[int], object] | None = None,
        sandbox: Sandbox | None = None,
    ) -> TreeCount:
        """See ``HostFiles.upload``; ``on_progress`` is called in another thread."""
        copying = self._files.upload(
            local, remote, outside_links=outside_links, on_progress=on_progress, sandbox=sandbox
        )
        return self._thread.call(copying)

    def download(
        self,
        remote: AnyPath,
        local: AnyPath,
        *,
        outside_links: bool = False,
        on_progress: Callable[[int], object] | None = None,
        sandbox: Sandbox | None = None,
    ) -> TreeCount:
        """See ``HostFiles.download``; ``on_progress`` is called in another thread."""
        copying = self._files.download(
            remote, local, outside_links=outside_links, on_progress=on_progress, sandbox=sandbox
        )
        return self._thread.call(copying)
