"""``holdfast cp`` with ``-``: a file from our standard input, or to our standard output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .copy_sides import CopySide, PathKind
from .report import Failure
from .streams import DescriptorReader, DescriptorWriter

_BLOCK = 1 << 20
"""Bytes of one read or write: the most that a server takes."""


async def copy_from_input(fd: int, side: CopySide, path: str, advance: Callable[[int], object]) -> int:
    """Copy what comes from a descriptor, to its end, to a file; return the number of bytes.

    Raises:
        Failure: The path is that of a directory.
    """
    target = side.absolute(path)
    if path.endswith("/") or await side.kind(target) is PathKind.DIRECTORY:
        raise Failure(f"{path or '.'} is a directory; give the copy of the standard input a name in it")
    reader = DescriptorReader(fd, asyncio.get_running_loop())
    writer = await side.writer(target)
    offset = 0
    try:
        while block := await _full_block(reader):
            await writer.write(offset, block)
            offset += len(block)
            advance(len(block))
        await writer.complete(offset)
    except BaseException:
        await writer.discard()
        raise
    return offset


async def _full_block(reader: DescriptorReader) -> bytes:
    """Read a whole block; less only at the end.  A pipe gives little at a time."""
    pieces, size = [], 0
    while size < _BLOCK and (piece := await reader.read()):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


async def copy_to_output(side: CopySide, path: str, fd: int, advance: Callable[[int], object]) -> int:
    """Copy a file, to its end, to a descriptor; return the number of bytes.

    Raises:
        Failure: There is no file at the path.
        BrokenPipeError: Nobody reads.
    """
    source = side.absolute(path)
    kind = await side.kind(source)
    if kind is PathKind.MISSING:
        raise Failure(f"there is no file {path}")
    if kind is not PathKind.FILE:
        raise Failure(f"{path or '.'} is not a file, and only files can be written to the standard output")
    writer = DescriptorWriter(fd, asyncio.get_running_loop())
    reader = await side.reader(source)
    try:
        offset, block = 0, await reader.read(0, _BLOCK)
        while block:
            size = len(block)
            # While it is written the next is on its way.
            _, block = await asyncio.gather(writer.write(block), reader.read(offset + size, _BLOCK))
            offset += size
            advance(size)
        return offset
    finally:
        reader.close()
        writer.close()
