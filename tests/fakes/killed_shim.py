"""What outlives servers that are killed: arena, pipes, terminal, cursors, as keeper and shim hold them."""

from __future__ import annotations

import array
import fcntl
import marshal
import os
import pty
import select
import socket
import struct
import termios
import traceback
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from holdfast.host import arena as arenas
from tests.fakes.killed_ledger import Script, content

FRAME = struct.Struct("<I")
"""In front of each thing that a server tells: its length."""

_F_SETPIPE_SZ = 1031
_SIZE = 1 << 28
FIRST_CELL = 3 << arenas.SHIFT
"""Behind the blocks of the table, of the facts and of the slots."""


@dataclass
class Image:
    """What a server that went through a long prologue has left: the arena, its cursor, what was told."""

    extents: list[tuple[int, bytes]]
    position: int
    told: list[Any] = field(default_factory=list)


@dataclass
class Shim:
    """What outlives every server, and what the child at the other ends wrote and read."""

    script: Script
    stack: ExitStack
    cursors: list[int] = field(default_factory=list)
    read: bytes = b""
    servers: int = 0
    has_ended: bool = False
    """Whether everything was reported, and what follows is only to be forgotten."""

    def __post_init__(self) -> None:
        own = self.own
        self.arena = own(arenas.create(_SIZE))
        out, into = arenas.create_stage()
        self.stage = own(out), own(into)
        self.cursor = own(os.open(f"/proc/self/fd/{self.arena}", os.O_RDWR))
        if self.script.is_stale:
            os.lseek(self.cursor, FIRST_CELL + 2000, os.SEEK_SET)
        sizes = (*self.script.pipes, *self.script.late)
        self.pipes = [self._filled(content(f"pipe {number}", size)) for number, size in enumerate(sizes)]
        self.prologue = own(self._pipe()[0])
        self.terminal, self.peer = map(own, pty.openpty())
        tty.setraw(self.peer)
        os.set_blocking(self.terminal, False)
        os.write(self.peer, content("terminal", self.script.terminal))
        while self._waiting(self.terminal) < self.script.terminal:
            select.select([self.terminal], [], [])
        self.stdin_out, self.stdin_in = map(own, os.pipe())
        os.set_blocking(self.stdin_out, False)
        ours, theirs = socket.socketpair()
        self.orders, self.server_end = self.stack.enter_context(ours), self.stack.enter_context(theirs)
        self.orders.setblocking(False)

    def own(self, fd: int) -> int:
        self.stack.callback(os.close, fd)
        return fd

    def image(self) -> Image:
        """What the arena holds now.  Only for a script that has written nothing to stdin yet."""
        assert not self.cursors
        extents: list[tuple[int, bytes]] = []
        end = 0
        with suppress(OSError):  # ENXIO: no more data.
            while True:
                start = os.lseek(self.arena, end, os.SEEK_DATA)
                end = os.lseek(self.arena, start, os.SEEK_HOLE)
                extents.append((start, os.pread(self.arena, end - start, start)))
        return Image(extents, os.lseek(self.cursor, 0, os.SEEK_CUR))

    def restore(self, image: Image) -> None:
        """Have a new arena hold what another one held."""
        for start, data in image.extents:
            assert os.pwrite(self.arena, data, start) == len(data)
        os.lseek(self.cursor, image.position, os.SEEK_SET)

    def _pipe(self) -> tuple[int, int]:
        out, into = os.pipe()
        self.into = into
        self.own(into)
        return out, into

    def _filled(self, data: bytes) -> int:
        out, into = os.pipe()
        fcntl.fcntl(into, _F_SETPIPE_SZ, 1 << 20)
        os.write(into, data)
        os.close(into)
        os.set_blocking(out, False)
        return self.own(out)

    @staticmethod
    def _waiting(fd: int) -> int:
        count = array.array("i", [0])
        fcntl.ioctl(fd, termios.FIONREAD, count)
        return count[0]

    def run(self, serve: Callable[[int], None]) -> tuple[bool, list[Any]]:
        """Run one server, which tells through a descriptor; whether it was killed, and what it told."""
        out, into = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                os.close(out)
                serve(into)
                os._exit(0)
            except BaseException:  # noqa: BLE001 (it must not go on as its parent)
                traceback.print_exc()
                os._exit(3)
        os.close(into)
        told = b""
        ends = [out, self.stdin_out]
        while out in ends:
            ready, _, _ = select.select(ends, [], [])
            if out in ready:
                piece = os.read(out, 1 << 20)
                told += piece
                if not piece:
                    ends.remove(out)
            if self.stdin_out in ready and not self._read():
                ends.remove(self.stdin_out)
        os.close(out)
        _, status = os.waitpid(pid, 0)
        while self._read():
            pass
        self._hear()
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise RuntimeError("a server failed")
        return os.WIFSIGNALED(status), list(_frames(told))

    def _read(self) -> bool:
        try:
            piece = os.read(self.stdin_out, 1 << 20)
        except BlockingIOError:
            return False
        self.read += piece
        return bool(piece)

    def _hear(self) -> None:
        """Hold the cursor that a server has sent, or drop it."""
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.orders, 1, 1)
            except BlockingIOError:
                return
            if data == b"H":
                self.cursors = [self.own(fd) for fd in fds]
            else:
                self.cursors = []


def _frames(told: bytes) -> Iterator[Any]:
    while len(told) >= FRAME.size:
        (size,) = FRAME.unpack_from(told)
        if len(told) < FRAME.size + size:
            return
        yield marshal.loads(told[FRAME.size : FRAME.size + size])  # noqa: S302 (our own child's)
        told = told[FRAME.size + size :]
