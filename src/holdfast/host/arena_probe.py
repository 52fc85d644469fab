"""Whether this host can keep output and input in an arena: found out by doing what is needed."""

from __future__ import annotations

import os
import select
import tty
from contextlib import ExitStack

from holdfast.model import Size

from . import pty
from .arena import BLOCK_SIZE, PAGE, Arena, Damaged, create, create_stage, size_for

_PATIENCE = 1.0
"""Seconds for a byte to go through a terminal, which another thread of the kernel does."""

_WORD = b"word"


def probe(size: int | None = None) -> str | None:
    """Why nothing can outlive the server here, or None if it can.

    ``size`` is that of the arena: the system may limit the size of files.
    """
    try:
        with ExitStack() as stack:
            return _probe(size_for(0) if size is None else size, stack)
    except OSError as error:
        return error.strerror or str(error)
    except Damaged as error:
        return str(error)


def _probe(size: int, stack: ExitStack) -> str | None:
    def own(fd: int) -> int:
        stack.callback(os.close, fd)
        return fd

    out, into = map(own, create_stage())
    fd = own(create(size))
    arena = Arena(fd, (out, into), limit=size)
    stack.callback(arena.close)
    cursor = own(arena.open_cursor())
    far = os.fstat(fd).st_size - BLOCK_SIZE

    os.write(into, _WORD)
    if not _reaches(arena, cursor, far) or not _leaves(cursor, far, into):
        return "the kernel does not pass bytes between pipes and memory as it should"
    # A page that the pipe has must stay as it is when its place is used anew.
    arena.erase(far, BLOCK_SIZE)
    arena.view[far : far + PAGE] = b"n" * PAGE
    if os.read(out, 9) != _WORD:
        return "the kernel does not let go of memory that a pipe has"
    try:
        master, peer = map(own, pty.open_terminal(Size()))
    except OSError:
        return None  # Then there will be no terminals to be read, either.
    tty.setraw(peer)
    os.write(peer, _WORD)
    select.select([master], [], [], _PATIENCE)
    os.splice(master, into, PAGE, flags=os.SPLICE_F_NONBLOCK)
    if not _reaches(arena, cursor, far) or not _leaves(cursor, far, master):
        return "the kernel does not pass bytes between terminals and memory as it should"
    return None


def _reaches(arena: Arena, cursor: int, far: int) -> bool:
    """Whether what is in the stage gets into the arena, and the cursor says how much it was."""
    os.lseek(cursor, far, os.SEEK_SET)
    spliced = os.splice(arena.stage_out, cursor, PAGE, flags=os.SPLICE_F_NONBLOCK)
    moved = os.lseek(cursor, 0, os.SEEK_CUR) - far
    return spliced == moved == len(_WORD) and arena.map[far : far + len(_WORD)] == _WORD


def _leaves(cursor: int, far: int, target: int) -> bool:
    """Whether it gets from the arena into a pipe or a terminal, and the cursor says how much it was."""
    os.lseek(cursor, far, os.SEEK_SET)
    sent = os.sendfile(target, cursor, None, len(_WORD))
    return sent == os.lseek(cursor, 0, os.SEEK_CUR) - far == len(_WORD)
