"""Copies files and trees from one host to another, in bounded memory.

A tree goes as one archive, which is unpacked while it is packed.  Where a server has no archives it goes file
by file, without what such a server does not tell: modes, and where links lead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.errors import FileRefused, HoldfastError, OutcomeUnknown, Unsupported
from holdfast.files import OMITTED_MOST, Purpose, TreeCount
from holdfast.value import value

from .embedded import files_here

if TYPE_CHECKING:
    from holdfast.files import FileMetadata, Files, OpenFile
    from holdfast.sandbox import Sandbox

_BLOCK = 1 << 20
"""Bytes of one read or write: the most that a server takes."""

_AT_ONCE = 4
"""Blocks that are asked for together, so that the latency of a server is paid once for all of them."""

_TRIES = 3
"""Times that a tree is begun, if connections break in the middle of it."""


@value
class CopySource:
    """What to copy."""

    files: Files
    path: str
    sandbox: Sandbox | None = None


@value
class CopyTarget:
    """Where to copy it to: the path that the copy will have."""

    files: Files
    path: str
    sandbox: Sandbox | None = None
    outside_links: bool = False
    """Whether links in a tree may lead out of it."""


async def upload(
    local: str | os.PathLike[str], target: CopyTarget, advance: Callable[[int], object] | None
) -> TreeCount:
    """Copy from this program's own host; see ``copy``."""
    async with files_here() as here:
        return await copy(CopySource(here, _absolute(local)), target, advance or _ignore)


async def download(
    source: CopySource,
    local: str | os.PathLike[str],
    advance: Callable[[int], object] | None,
    *,
    outside_links: bool,
) -> TreeCount:
    """Copy to this program's own host; see ``copy``."""
    async with files_here() as here:
        target = CopyTarget(here, _absolute(local), outside_links=outside_links)
        return await copy(source, target, advance or _ignore)


def _absolute(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(path)


def _ignore(count: int) -> None:
    """Drop news of progress."""


async def copy(source: CopySource, target: CopyTarget, advance: Callable[[int], object]) -> TreeCount:
    """Copy a file, or a directory with all that is in it, into one that may be there already.

    Args:
        advance: Called with the number of bytes that were transferred since the last call.

    Raises:
        FileFailed: Something could not be read or written; the error names it.
        FileRefused: It is neither a file nor a directory, or a link leads out of the tree.
        OutcomeUnknown: The connection broke again and again; a part of the copy may be there.
    """
    facts = await source.files.metadata(source.path, sandbox=source.sandbox)
    if facts.file:
        return TreeCount(1, await _copy_file(source, target, facts, advance), (), complete=True)
    if not facts.directory:
        raise FileRefused(f"{source.path!r} is neither a file nor a directory")
    for attempt in range(_TRIES):
        try:
            return await _copy_archive(source, target, advance)
        except Unsupported:
            break
        except OutcomeUnknown:
            # The same bytes in the same places: from the beginning, on the next connection.
            if attempt == _TRIES - 1:
                raise
    return await _TreeCopy(source, target, advance).run()


async def _copy_archive(
    source: CopySource, target: CopyTarget, advance: Callable[[int], object]
) -> TreeCount:
    archive = await source.files.archive(source.path, sandbox=source.sandbox)
    try:
        tree = await target.files.extract(
            target.path, outside_links=target.outside_links, sandbox=target.sandbox
        )
        try:
            await pump(archive, tree, advance)
            if tree.count is not None and not tree.count.complete:
                raise FileRefused(f"the archive of {source.path!r} has no end")
            return tree.count or archive.count or TreeCount(0, 0, (), complete=True)
        finally:
            tree.close()
    finally:
        archive.close()


async def _copy_file(
    source: CopySource, target: CopyTarget, facts: FileMetadata, advance: Callable[[int], object]
) -> int:
    reader = await source.files.open(source.path, Purpose.READ, sandbox=source.sandbox)
    try:
        writer = await target.files.open(
            target.path, Purpose.REPLACE, permissions=facts.permissions, sandbox=target.sandbox
        )
        try:
            return await pump(reader, writer, advance)
        except BaseException:
            with contextlib.suppress(HoldfastError):
                await target.files.remove(target.path, recursive=False, force=True, sandbox=target.sandbox)
            raise
        finally:
            writer.close()
    finally:
        reader.close()


async def pump(source: OpenFile, sink: OpenFile, advance: Callable[[int], object]) -> int:
    """Write everything from one open file to another; while some is written, the next is read."""
    offset, blocks = 0, await _read(source, 0)
    while blocks:
        size = sum(map(len, blocks))
        _, following = await asyncio.gather(
            _write(sink, offset, blocks), _read(source, offset + size, more=len(blocks[-1]) == _BLOCK)
        )
        offset, blocks = offset + size, following
        advance(size)
    return offset


async def _read(source: OpenFile, offset: int, *, more: bool = True) -> list[bytes]:
    """Read a few blocks, of which only the last may be short; none if there is no ``more``."""
    if not more:
        return []
    places = range(offset, offset + _AT_ONCE * _BLOCK, _BLOCK)
    blocks = await asyncio.gather(*(source.read(place, _BLOCK) for place in places))
    short = next((index for index, block in enumerate(blocks) if len(block) < _BLOCK), len(blocks))
    return [block for block in blocks[: short + 1] if block]


async def _write(sink: OpenFile, offset: int, blocks: Sequence[bytes]) -> None:
    places = range(offset, offset + len(blocks) * _BLOCK, _BLOCK)
    await asyncio.gather(*map(sink.write, places, blocks))


class _TreeCopy:
    """The copy of a tree, file by file.  Links to files become files, those to directories are left out."""

    def __init__(self, source: CopySource, target: CopyTarget, advance: Callable[[int], object]) -> None:
        self._source = source
        self._target = target
        self._advance = advance
        self._files = 0
        self._bytes = 0
        self._omitted: list[str] = []

    async def run(self) -> TreeCount:
        # A list instead of recursion, which would limit how deep directories may be.
        waiting = [""]
        while waiting:
            below = waiting.pop()
            target, sandbox = self._below(self._target.path, below), self._target.sandbox
            await self._target.files.make_directory(target, recursive=True, sandbox=sandbox)
            source = self._below(self._source.path, below)
            for entry in await self._source.files.list(source, sandbox=self._source.sandbox):
                name = os.path.join(below, entry.name)
                if entry.file:
                    await self._file(name)
                elif entry.directory and not await self._is_link(name, told=entry.link):
                    waiting.append(name)
                elif len(self._omitted) < OMITTED_MOST:
                    self._omitted.append(name)
        return TreeCount(self._files, self._bytes, tuple(self._omitted), complete=True)

    def _below(self, path: str, name: str) -> str:
        return os.path.join(path, name) if name else path

    async def _is_link(self, name: str, *, told: bool | None) -> bool:
        if told is not None:
            return told
        path = self._below(self._source.path, name)
        return (await self._source.files.metadata(path, sandbox=self._source.sandbox)).link

    async def _file(self, name: str) -> None:
        one, other = self._source, self._target
        source = CopySource(one.files, self._below(one.path, name), one.sandbox)
        target = CopyTarget(other.files, self._below(other.path, name), other.sandbox)
        facts = await source.files.metadata(source.path, sandbox=source.sandbox)
        self._bytes += await _copy_file(source, target, facts, self._advance)
        self._files += 1
