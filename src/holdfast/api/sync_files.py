"""Files of a host for programs without an event loop: every call waits for its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast import files as asynchronous
from holdfast.files import DirEntry, FileMetadata, Purpose, Walk, WalkTerms

from .thread import LoopThread

if TYPE_CHECKING:
    from holdfast.sandbox import Sandbox

    from .host import Host


class OpenFile:
    """An open file.  The synchronous ``holdfast.files.OpenFile``; close it when you are done."""

    def __init__(self, file: asynchronous.OpenFile, thread: LoopThread) -> None:
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


class Files:
    """The files of a host.  The synchronous ``holdfast.files.Files``, which documents the methods."""

    def __init__(self, host: Host, thread: LoopThread) -> None:
        self._files = host.files
        self._thread = thread

    def read(
        self, path: str, *, at_once: int, follow: bool = True, sandbox: Sandbox | None = None
    ) -> bytes | OpenFile:
        found = self._thread.call(self._files.read(path, at_once=at_once, follow=follow, sandbox=sandbox))
        return found if isinstance(found, bytes) else OpenFile(found, self._thread)

    def write(self, path: str, data: bytes, *, follow: bool = True, sandbox: Sandbox | None = None) -> None:
        self._thread.call(self._files.write(path, data, follow=follow, sandbox=sandbox))

    def make_directory(
        self, path: str, *, recursive: bool, follow: bool = True, sandbox: Sandbox | None = None
    ) -> None:
        making = self._files.make_directory(path, recursive=recursive, follow=follow, sandbox=sandbox)
        self._thread.call(making)

    def metadata(self, path: str, *, follow: bool = True, sandbox: Sandbox | None = None) -> FileMetadata:
        return self._thread.call(self._files.metadata(path, follow=follow, sandbox=sandbox))

    def canonical(self, path: str, *, sandbox: Sandbox | None = None) -> str:
        return self._thread.call(self._files.canonical(path, sandbox=sandbox))

    def list(self, path: str, *, sandbox: Sandbox | None = None) -> Sequence[DirEntry]:
        return self._thread.call(self._files.list(path, sandbox=sandbox))

    def walk(self, path: str, terms: WalkTerms, *, sandbox: Sandbox | None = None) -> Walk:
        return self._thread.call(self._files.walk(path, terms, sandbox=sandbox))

    def remove(
        self,
        path: str,
        *,
        recursive: bool,
        force: bool,
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> None:
        removing = self._files.remove(path, recursive=recursive, force=force, follow=follow, sandbox=sandbox)
        self._thread.call(removing)

    def copy(self, source: str, destination: str, *, recursive: bool, sandbox: Sandbox | None = None) -> None:
        self._thread.call(self._files.copy(source, destination, recursive=recursive, sandbox=sandbox))

    def open(self, path: str, purpose: Purpose, *, sandbox: Sandbox | None = None) -> OpenFile:
        return OpenFile(self._thread.call(self._files.open(path, purpose, sandbox=sandbox)), self._thread)
