"""Reading and writing files, as a whole or piece by piece, and facts about them."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from holdfast.errors import FileRefused
from holdfast.files import FileMetadata, Purpose

from .paths import failure, real_path
from .resolver import Resolver

_STEP = 1 << 20
"""Bytes of one read of a file whose size is not known."""

_END = 2**63 - 1
"""The largest position in a file: the kernel's counter is signed."""

_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
_STATX = struct.Struct("I76xqI")
"""``stx_mask``, and seconds and nanoseconds of ``stx_btime`` at byte 80."""

_libc = ctypes.CDLL(None, use_errno=True)


# Whole files.


def read(resolver: Resolver, path: bytes, *, at_once: int, limit: int) -> bytes | int:
    """Return the bytes of a regular file; if there are more than ``at_once``, an open descriptor of it."""
    fd = open_regular(resolver, path)
    try:
        size = os.fstat(fd).st_size
        if size > limit:
            raise FileRefused(f"file is too large to read: limit is {limit} bytes", bound="file.read_bytes")
        # It may grow meanwhile, and some files of the kernel say that their size is 0.
        data = _read_all(fd, at_once, size) if size <= at_once else None
    except BaseException:
        os.close(fd)
        raise
    if data is None:
        return fd
    os.close(fd)
    return data


def _read_all(fd: int, most: int, expected: int) -> bytes | None:
    """Return the rest of a file; None if it has more than ``most`` bytes."""
    pieces = [os.read(fd, expected + 1)]
    count = len(pieces[0])
    while pieces[-1] and count <= most:
        pieces.append(os.read(fd, _STEP))
        count += len(pieces[-1])
    return b"".join(pieces) if count <= most else None


def open_regular(resolver: Resolver, path: bytes) -> int:
    """Open a regular file for reading.  Anything else is refused without being opened."""
    if path == b"/" and not resolver.follow:
        raise FileRefused("path must name an entry")
    with resolver.find(path) as found:
        mode = os.fstat(found).st_mode
        if stat.S_ISLNK(mode):
            raise failure(errno.ELOOP)
        if stat.S_ISSOCK(mode):
            raise failure(errno.ENXIO)  # The error with which the kernel refuses to open a socket.
        if not stat.S_ISREG(mode):
            raise resolver.not_a_file(path)
        return resolver.reopen(found, os.O_RDONLY)


def write(resolver: Resolver, path: bytes, data: bytes, *, permissions: int | None = None) -> None:
    """Write a whole file.  It is made, with these permission bits, if it does not exist, or else emptied."""
    fd = create(resolver, path, permissions)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def create(resolver: Resolver, path: bytes, permissions: int | None = None) -> int:
    """Open a regular file for writing, and empty it.  Anything else is refused without being opened.

    Args:
        permissions: The permission bits of a file that is made; by default the umask decides.
    """
    if path == b"/" and not resolver.follow:
        raise FileRefused("path must name an entry")
    if permissions is None:
        return resolver.create(path)
    return resolver.create(path, permissions & 0o777, is_exact=True)


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes at the current position of an open file."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def open_for(resolver: Resolver, path: bytes, purpose: Purpose, permissions: int | None = None) -> int:
    """Open a file that a client reads or writes piece by piece."""
    if purpose is Purpose.READ:
        return open_regular(resolver, path)
    return create(resolver, path, permissions)


# Pieces of an open file, by their place in it.


def read_block(fd: int, offset: int, length: int) -> bytes:
    """Return ``length`` bytes from a position on; fewer only at the end of the file."""
    if offset + length > _END:
        raise failure(errno.EINVAL)
    data = os.pread(fd, length, offset)
    if not data or len(data) == length:
        return data
    pieces = [data]
    # A file of the kernel, or on a network, may return less than it has.
    while data and sum(map(len, pieces)) < length:
        done = sum(map(len, pieces))
        data = os.pread(fd, length - done, offset + done)
        pieces.append(data)
    return b"".join(pieces)


def write_block(fd: int, offset: int, data: bytes) -> None:
    """Write all bytes at a position of an open file."""
    if offset + len(data) > _END:
        raise FileRefused("file write range exceeds the signed 64-bit file offset limit")
    rest = memoryview(data)
    while rest:
        count = os.pwrite(fd, rest, offset)
        rest = rest[count:]
        offset += count


# What is known of a file.


def metadata(resolver: Resolver, path: bytes) -> FileMetadata:
    """Return facts about what is at a path.  A link is followed, and noted, if links are followed."""
    with resolver.find(path, last=False) as found:
        facts = os.fstat(found)
        if not stat.S_ISLNK(facts.st_mode):
            return _metadata(found, facts, link=False)
    if not resolver.follow:
        raise FileRefused("path contains a symbolic link")
    with resolver.find(path) as found:
        return _metadata(found, os.fstat(found), link=True)


def _metadata(fd: int, facts: os.stat_result, *, link: bool) -> FileMetadata:
    return FileMetadata(
        directory=stat.S_ISDIR(facts.st_mode),
        file=stat.S_ISREG(facts.st_mode),
        link=link,
        size=facts.st_size,
        created=birth_time(fd),
        modified=facts.st_mtime_ns,
        permissions=facts.st_mode & 0o777,
    )


def birth_time(fd: int) -> int:
    """Return when a file was made, in nanoseconds since 1970; 0 if the file system does not know."""
    buffer = ctypes.create_string_buffer(256)
    try:
        failed = _libc.statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer)
    except AttributeError:  # An old C library.
        return 0
    if failed:
        return 0
    mask, seconds, nanoseconds = _STATX.unpack_from(buffer)
    return seconds * 10**9 + nanoseconds if mask & _STATX_BTIME else 0


def canonical(resolver: Resolver, path: bytes) -> bytes:
    """Return the path of an existing file without symbolic links."""
    with resolver.find(path) as found:
        return real_path(found)
