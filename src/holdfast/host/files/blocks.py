"""Pieces of an open file, by their place in it."""

from __future__ import annotations

import errno
import os

from holdfast.errors import FileRefused

from .paths import failure

_END = 2**63 - 1
"""The kernel counts bytes of files with a sign."""


def read(fd: int, offset: int, length: int) -> bytes:
    """The bytes from there on; fewer than asked for only at the end of the file."""
    if offset + length > _END:
        raise failure(errno.EINVAL)
    data = os.pread(fd, length, offset)
    if not data or len(data) == length:
        return data
    pieces = [data]
    # A file of the kernel's, or of a network, may give less than there is.
    while data and sum(map(len, pieces)) < length:
        done = sum(map(len, pieces))
        data = os.pread(fd, length - done, offset + done)
        pieces.append(data)
    return b"".join(pieces)


def write(fd: int, offset: int, data: bytes) -> None:
    """Write all of it there."""
    if offset + len(data) > _END:
        raise FileRefused("file write range exceeds the signed 64-bit file offset limit")
    rest = memoryview(data)
    while rest:
        count = os.pwrite(fd, rest, offset)
        rest = rest[count:]
        offset += count
