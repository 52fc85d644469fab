"""The interface of everything that has files: values, and what may be asked (pure).

Paths are absolute, without dots and without a slash at the end.  Bytes outside
UTF-8 are carried as lone surrogates, so every name can be told and used again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from . import old_names
from .sandbox import Sandbox
from .value import record, value

MOST_MISSING = 64
"""Missing paths of one watch, as in the reference."""

MOST_MISSING_BYTES = 256 << 10
"""Bytes of the missing paths of one watch, as they are sent: they are read on the loop."""


@value
class FileMetadata:
    """What is known of a file or directory without opening it."""

    directory: bool
    """Whether it is a directory."""
    file: bool
    """Whether it is a regular file: neither a directory nor a device, a pipe or a socket."""
    link: bool
    """Whether the path itself is a symbolic link; the rest is about what it leads to."""
    size: int
    """Bytes."""
    created: int
    """Nanoseconds since 1970; 0 if the file system does not tell."""
    modified: int
    """When its contents were last changed, in nanoseconds since 1970."""
    permissions: int | None = None
    """The permission bits, such as 0o644; None if the server does not tell them."""


@record
class DirEntry:
    """A name in a directory, with the kind of what it leads to."""

    name: str
    """The last part of its path."""
    directory: bool
    """Whether it is a directory, or a link to one."""
    file: bool
    """Whether it is a regular file, or a link to one."""
    link: bool | None = None
    """Whether the name itself is a symbolic link; None if that was not asked, or the server does not tell."""


@value
class WalkTerms:
    """How far a walk goes."""

    depth: int
    """Directories that are so many levels below the first are entered, those further below are not."""
    directories: int
    """Directories to enter."""
    entries: int
    """Names to look at, also those that are left out of the answer."""
    follow: bool
    """Enter directories through symbolic links, each directory once."""
    prune: bool
    """Do not enter hidden directories."""
    budget: int
    """How long the texts of all entries and errors may be together, with something for each of them."""
    spell: Callable[[str], str]
    """How a path is told.  Called in whatever thread does the work, because there may be many."""


@record
class WalkEntry:
    path: str
    """As the terms spell it."""
    directory: bool


@record
class WalkError:
    """Something that could not be looked at."""

    path: str
    """As the terms spell it."""
    number: int
    """The system's error number."""


@record
class Walk:
    """What a walk has found, level by level and in the order of the names."""

    entries: list[WalkEntry]
    errors: list[WalkError]
    truncated: bool
    """Whether the terms kept it from finding more.  Depth does not count."""


class Purpose(Enum):
    """What a file is opened for."""

    READ = "read"
    REPLACE = "replace"
    """To write it from its beginning: it is made, or emptied, at once."""


class OpenFile(Protocol):
    """A file that was opened.  The caller has to close it."""

    async def read(self, offset: int, length: int) -> bytes:
        """The bytes from there on; fewer than asked for only at the end of the file.

        Raises:
            FileFailed: The system would not read it.
        """

    async def write(self, offset: int, data: bytes) -> None:
        """Write all of ``data`` there.  A gap before it is filled with zeros."""

    def close(self) -> None:
        """Let go of it, at once or when the calls that are under way are over.  May be called twice."""


OMITTED_MOST = 1000
"""Paths of what is left out of a tree that are kept, to be told."""


@value
class TreeCount:
    """How much of a tree has been packed, or unpacked."""

    files: int
    """The number of files."""
    bytes: int
    """The bytes that they have together."""
    omitted: tuple[str, ...]
    """The first thousand paths, below the top, of what is neither file, directory nor link, and left out."""
    complete: bool
    """Whether the whole tree has been packed or unpacked."""


class OpenTree(OpenFile, Protocol):
    """A tree that is read, or written, as one tar archive, from its beginning to its end."""

    @property
    def count(self) -> TreeCount | None:
        """What has come so far; None if that is on another host."""


class FileWatch(Protocol):
    """A watch for paths that do not exist yet."""

    def stop(self) -> None:
        """End the watch.  May be called twice."""


class Files(Protocol):
    """Files on the host of a backend.

    A call takes as long as the disk takes, and holds up nobody else.  One that was
    cancelled may still have its effect; what it opened is closed.  With ``follow``
    false no part of the path may be a symbolic link.  With a ``sandbox`` everything
    behaves as if done by a command inside of it, whatever others do to links and
    names meanwhile.

    Raises:
        FileFailed: The system would not do it, or the sandbox forbids it.
        FileRefused: What is there is nothing to which this can be done.
    """

    async def read(
        self, path: str, *, at_once: int, follow: bool = True, sandbox: Sandbox | None = None
    ) -> bytes | OpenFile:
        """A regular file: its bytes, or, if there are more than ``at_once``, the open file."""

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        follow: bool = True,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Make a file of these bytes, or put them into the one that is there.

        ``permissions`` are the permission bits of a file that is made, as far as the server can set them; by
        default its umask decides.
        """

    async def make_directory(
        self, path: str, *, recursive: bool, follow: bool = True, sandbox: Sandbox | None = None
    ) -> None:
        """Make a directory; if ``recursive`` with all above it, and it may be there already."""

    async def metadata(
        self, path: str, *, follow: bool = True, sandbox: Sandbox | None = None
    ) -> FileMetadata: ...

    async def canonical(self, path: str, *, sandbox: Sandbox | None = None) -> str:
        """The path of something that is there, without symbolic links."""

    async def list(
        self, path: str, *, dangling: bool = True, sandbox: Sandbox | None = None
    ) -> Sequence[DirEntry]:
        """List a directory, in its own order.

        With ``dangling``, links that lead nowhere, or to where the sandbox does not look, are listed, too, as
        neither file nor directory; a server that does not know this leaves them out.

        Raises:
            TooManyEntries: There are more than can be told.
        """

    async def walk(self, path: str, terms: WalkTerms, *, sandbox: Sandbox | None = None) -> Walk:
        """List what is below a directory; nothing if the path is not a directory."""

    async def remove(
        self,
        path: str,
        *,
        recursive: bool,
        force: bool,
        follow: bool = True,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Remove a file, a link or a directory; with ``force`` there need not be anything."""

    async def copy(
        self, source: str, destination: str, *, recursive: bool, sandbox: Sandbox | None = None
    ) -> None:
        """Copy a file with its mode, a link as it is, or a directory with all that is in it."""

    async def rename(self, source: str, destination: str, *, sandbox: Sandbox | None = None) -> None:
        """Give something another path on the same file system; a file that has it is replaced.

        Raises:
            Unsupported: The server cannot do it.
        """

    async def open(
        self,
        path: str,
        purpose: Purpose,
        *,
        permissions: int | None = None,
        sandbox: Sandbox | None = None,
    ) -> OpenFile:
        """A regular file, to be used piece by piece; ``permissions`` are as with ``write``."""

    async def archive(self, path: str, *, sandbox: Sandbox | None = None) -> OpenTree:
        """A directory and all below it as one tar archive, to be read from its beginning to its end.

        Links are packed as links.  What is neither file, directory nor link is left out.

        Raises:
            Unsupported: The server cannot do it.
        """

    async def extract(
        self, path: str, *, outside_links: bool = False, sandbox: Sandbox | None = None
    ) -> OpenTree:
        """Somewhere to write a tar archive to, from its beginning to its end; it is unpacked below ``path``.

        A member that is not simply a file, a directory or a link below ``path`` is refused, when it arrives.
        So is a link that leads out of the tree, unless ``outside_links`` allows it.  Files and links that are
        in the way are replaced.  When the last byte is written, everything is there.

        Raises:
            Unsupported: The server cannot do it.
        """

    async def watch_missing(
        self, missing: Sequence[str], present: str | None, on_change: Callable[[], None]
    ) -> FileWatch | None:
        """Have ``on_change`` called once, when one of the missing paths, or a missing parent of one, appears.

        Also when ``present``, or a directory above any of them, goes.  None if there is
        nothing to wait for, or no way to hear of it: one of the paths is there, a link is
        on the way, ``present`` is missing.
        """


def watch_callback(
    on_change: Callable[[], None] | None, told: Callable[[], None] | None
) -> Callable[[], None]:
    """The callback of ``watch_missing``; whoever has given it by its old name is warned."""
    if told is not None:
        warnings.warn("told is now called on_change", DeprecationWarning, stacklevel=3)
    found = on_change or told
    if found is None:
        raise TypeError("watch_missing needs on_change")
    return found


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"Metadata": "FileMetadata"})
