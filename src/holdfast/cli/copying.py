"""Copies files and directories from one side to another, block by block, in bounded memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from .failure import Failure
from .sides import Kind, Side

BLOCK = 1 << 20
"""What a server reads or writes at once, at the most."""

_AT_ONCE = 4
"""Blocks that are on their way together, so that a far server is not waited for block by block."""


class Copying:
    """One copy, of a file or of everything below a directory."""

    def __init__(
        self,
        source: Side,
        target: Side,
        *,
        begin: Callable[[str, int | None], None],
        advance: Callable[[int], None],
        skip: Callable[[str], None],
    ) -> None:
        """``begin`` and ``advance`` are told how far it is, ``skip`` of what is left out, and why."""
        self._source = source
        self._target = target
        self._begin = begin
        self._advance = advance
        self._skip = skip
        self.files = 0
        self.bytes = 0

    async def copy(self, path: str, to: str, *, recursive: bool) -> None:
        """Copy it to ``to``, or into that if it is a directory, as ``cp`` does.

        Raises:
            Failure: It cannot be copied.
            HoldfastError, OSError: The same, of one of the files.
        """
        path = path or "."
        source, target = self._source.absolute(path), self._target.absolute(to)
        kind = await self._source.kind(source)
        if kind == Kind.MISSING:
            raise Failure(f"there is no file {path}")
        if kind == Kind.OTHER:
            raise Failure(f"{path} is neither a file nor a directory")
        there = await self._target.kind(target)
        if there == Kind.DIRECTORY:
            target = os.path.join(target, os.path.basename(source) or "root")
            there = await self._target.kind(target)
        elif to.endswith("/") and kind == Kind.FILE:
            raise Failure(f"there is no directory {to}")
        if self._source is self._target and target == source:
            raise Failure(f"{path} and {to} are the same file")
        if kind == Kind.DIRECTORY:
            if not recursive:
                raise Failure(f"{path} is a directory; copy it with -r")
            if there not in (Kind.DIRECTORY, Kind.MISSING):
                raise Failure(f"{to} is there already and is not a directory")
            if self._source is self._target and target.startswith(os.path.join(source, "")):
                raise Failure(f"cannot copy {path} into itself")
            await self._directory(source, target)
        elif there == Kind.DIRECTORY:
            raise Failure(f"{target} is there already and is a directory")
        else:
            await self._file(source, target)

    async def _directory(self, source: str, target: str) -> None:
        # Without recursion: how deep it goes is not for us to limit.
        waiting = [(source, target)]
        while waiting:
            source, target = waiting.pop()
            await self._target.make_directory(target)
            for name in await self._source.names(source):
                one, to = os.path.join(source, name), os.path.join(target, name)
                kind = await self._source.kind(one)
                if kind == Kind.FILE:
                    await self._file(one, to)
                elif kind != Kind.DIRECTORY:
                    self._skip(f"{one} is left out: it is neither a file nor a directory")
                elif await self._source.is_link(one):
                    self._skip(f"{one} is left out: it is a link to a directory")
                else:
                    waiting.append((one, to))

    async def _file(self, source: str, target: str) -> None:
        size = await self._source.size(source)
        self._begin(os.path.basename(source), size)
        reader = await self._source.reader(source)
        try:
            writer = await self._target.writer(target, await self._source.mode(source))
            try:
                offset = 0
                while True:
                    places = range(offset, offset + _AT_ONCE * BLOCK, BLOCK)
                    blocks = await asyncio.gather(*(reader.read(place, BLOCK) for place in places))
                    # A block that is not full is the last one; what comes behind it was written meanwhile.
                    last = next((n for n, block in enumerate(blocks) if len(block) < BLOCK), None)
                    used = [block for block in blocks[: None if last is None else last + 1] if block]
                    await asyncio.gather(
                        *(writer.write(place, block) for place, block in zip(places, used, strict=False))
                    )
                    count = sum(map(len, used))
                    self.bytes += count
                    self._advance(count)
                    offset += count
                    if last is not None:
                        break
                await writer.complete()
            except BaseException:
                await writer.give_up()
                raise
        finally:
            reader.close()
        self.files += 1
