"""Whether a process is blocked reading a certain pipe or terminal, as ``/proc`` shows it.

What must hold:

1. A process is said to wait only if a thread of it sleeps in a call that reads our pipe or terminal, or that
   waits for it together with others, and input would wake it.
2. What the kernel does not tell is unknown.  Nothing is concluded from names or from how long it is quiet.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
import struct
import termios
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from holdfast.inspection import Inspection
from holdfast.value import value

from .holding import terminal_number
from .tree import Look, stat_of, threads_of

_TIOCGSID = 0x5429

Answer = bool | None
"""Whether something waits for input; None if the kernel does not tell."""


@value
class InputEnd:
    """What a command has open to read its input, and the facts of the terminal if it is one."""

    place: tuple[int, int]
    """Device and inode of the pipe, or of the terminal's slave side."""
    session: int = 0
    """The session whose controlling terminal it is; 0 for none, and for a pipe."""
    foreground: int = 0
    """The process group that may read the terminal; 0 for none."""
    echo: bool | None = None
    canonical: bool | None = None

    def told(self, waiting: Answer) -> Inspection:
        """Return what is told of a process that reads this."""
        return Inspection(waiting, self.echo, self.canonical)


def pipe_end(fd: int) -> InputEnd:
    """Return the reading end of a pipe, given the writing end: they have one inode."""
    status = os.fstat(fd)
    return InputEnd((status.st_dev, status.st_ino))


def terminal_end(fd: int) -> InputEnd:
    """Return the slave side of a terminal, given the master side.

    Raises:
        OSError: It is no terminal, or has gone.
    """
    status = os.stat(f"/dev/pts/{terminal_number(fd)}")
    session = foreground = 0
    with contextlib.suppress(OSError, termios.error):  # It is nobody's controlling terminal.
        (session,) = struct.unpack("i", fcntl.ioctl(fd, _TIOCGSID, bytes(4)))
        foreground = os.tcgetpgrp(fd)
    flags = echo = canonical = None
    with contextlib.suppress(OSError, termios.error):
        flags = termios.tcgetattr(fd)[3]
        echo, canonical = bool(flags & termios.ECHO), bool(flags & termios.ICANON)
    return InputEnd((status.st_dev, status.st_ino), session, foreground, echo, canonical)


def waits_for_input(pids: Sequence[int], end: InputEnd, look: Look) -> Answer:
    """Return whether one of the processes ``pids`` waits for input at ``end``, as far as ``look`` allows."""
    if not _calls() or not _is_told_calls():
        return None
    is_known = True
    for pid in pids:
        found = _Reader(pid, end, look).waits()
        if found:
            return True
        is_known = is_known and found is not None
    return False if is_known and not look.cut else None


# The calls in which a thread can wait for input.

_Waits = Callable[["_Reader", Sequence[int]], Answer]


@cache
def _calls() -> dict[int, _Waits]:
    """Return what the calls mean in which a thread may wait for input, by their numbers on this machine."""
    numbers = _NUMBERS.get(os.uname().machine, {})
    return {number: kind for kind, all_of_them in numbers.items() for number in all_of_them}


@cache
def _is_told_calls() -> bool:
    """Whether the kernel tells in which call a thread is.  Some are built without that."""
    return os.path.exists("/proc/self/syscall")


_MOST_POLLED = 4096
"""Descriptors in one set; a set that is larger is not read."""

_NESTED = 5
"""How deep the kernel lets one epoll be in another."""

_POLLED = struct.Struct("ihh")
_READABLE = select.POLLIN | select.POLLRDNORM
"""What to be woken for: the same bits for poll and for epoll."""


class _Reader:
    """A process that may wait for input."""

    def __init__(self, pid: int, end: InputEnd, look: Look) -> None:
        self._pid = pid
        self._end = end
        self._look = look

    def waits(self) -> Answer:
        """Return whether one of its threads waits for input."""
        is_known: Answer = True
        for thread in threads_of(self._pid, self._look):
            try:
                found = self._thread_waits(thread)
            except (FileNotFoundError, ProcessLookupError):
                continue  # The thread has ended, or what it had open was closed: it does not sleep.
            except OSError as error:
                self._look.failed(error)
                found = None
            if found:
                return True
            is_known = is_known and found is not None
        return False if is_known else None

    def _thread_waits(self, thread: int) -> Answer:
        before = self._call(thread)
        if not before:
            return False
        # Another program has other numbers for its calls, and what they mean here means something else there.
        found = self._meaning(before) if self._is_native() else None
        if found is False:
            return False
        # Now as before: what was looked at meanwhile is what the thread sleeps on.
        sleeps = self._state(thread) == b"S" and self._call(thread) == before
        return found if sleeps else False

    def _call(self, thread: int) -> bytes:
        """Return the number and the arguments of the call that a thread sleeps in; empty if in none."""
        if not self._look.take():
            return b""
        with open(f"/proc/{self._pid}/task/{thread}/syscall", "rb", buffering=0) as file:
            text = file.read() or b""
        return b"" if text.startswith((b"running", b"-1")) else text

    def _state(self, thread: int) -> bytes:
        """Return the state of a thread: ``S`` if a signal or what it waits for would wake it."""
        with open(f"/proc/{self._pid}/task/{thread}/stat", "rb", buffering=0) as file:
            return (file.read() or b"").rpartition(b") ")[2][:1]

    def _is_native(self) -> bool:
        """Whether its calls have the numbers of this machine, and not those of one with 32 bits."""
        with open(f"/proc/{self._pid}/exe", "rb", buffering=0) as file:
            return (file.read(5) or b"") == b"\x7fELF\x02"

    def _meaning(self, text: bytes) -> Answer:
        number, *arguments = text.split()
        kind = _calls().get(int(number))
        return False if kind is None else kind(self, [int(word, 16) for word in arguments])

    # What calls mean.

    def reads(self, arguments: Sequence[int]) -> Answer:
        """It reads one descriptor."""
        return self._is_input(_descriptor(arguments[0]))

    def polls(self, arguments: Sequence[int]) -> Answer:
        """It waits for a list of descriptors."""
        count = arguments[1] & 0xFFFF_FFFF
        if count > _MOST_POLLED:
            return None
        data = self._memory(arguments[0], _POLLED.size * count)
        asked = ((fd, events) for fd, events, _ in _POLLED.iter_unpack(data))
        return self._any_is_input(fd for fd, events in asked if fd >= 0 and events & _READABLE)

    def selects(self, arguments: Sequence[int]) -> Answer:
        """It waits for a set of descriptors, which is a row of bits."""
        count, place = _descriptor(arguments[0]), arguments[1]
        if not place or count <= 0:
            return False
        if count > _MOST_POLLED:
            return None
        bits = int.from_bytes(self._memory(place, (count + 7) // 8), "little")
        return self._any_is_input(fd for fd in range(count) if bits >> fd & 1)

    def polls_epoll(self, arguments: Sequence[int]) -> Answer:
        """It waits for an epoll."""
        return self._any_is_input(self._watched_by(_descriptor(arguments[0])))

    def is_unknown(self, arguments: Sequence[int]) -> Answer:
        """It does what it was told to earlier, which the kernel does not show."""
        return None

    # What descriptors are.

    def _any_is_input(self, fds: Iterable[int], depth: int = 0) -> Answer:
        is_known = True
        for fd in fds:
            found = self._is_input(fd, depth)
            if found:
                return True
            is_known = is_known and found is not None
        return False if is_known else None

    def _is_input(self, fd: int, depth: int = 0) -> Answer:
        """Return whether a descriptor is our pipe or terminal, or an epoll that waits for it."""
        if not self._look.take():
            return None
        path = f"/proc/{self._pid}/fd/{fd}"
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return False  # It waits for a descriptor that it does not have, which is legal.
        if (found.st_dev, found.st_ino) == self._end.place:
            return self._may_read()
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == _OWN_TERMINAL:
            return self._is_in_session() and self._may_read()
        if stat.S_IFMT(found.st_mode):
            return False
        name = os.readlink(path)
        if name == "anon_inode:[eventpoll]":
            return self._any_is_input(self._watched_by(fd), depth + 1) if depth < _NESTED else None
        return None if name == "anon_inode:[io_uring]" else False

    def _watched_by(self, fd: int) -> Iterator[int]:
        """Yield the descriptors that an epoll watches for something to read."""
        with open(f"/proc/{self._pid}/fdinfo/{fd}", "rb") as file:
            for line in file:
                words = line.split()
                if words[:1] == [b"tfd:"] and int(words[3], 16) & _READABLE:
                    watched = int(words[1])
                    # It may watch a file of which a descriptor with another number is left.
                    inode = next((word[4:] for word in words if word.startswith(b"ino:")), b"")
                    with contextlib.suppress(FileNotFoundError):
                        if not inode or os.stat(f"/proc/{self._pid}/fd/{watched}").st_ino == int(inode, 16):
                            yield watched

    def _memory(self, place: int, size: int) -> bytes:
        with open(f"/proc/{self._pid}/mem", "rb", buffering=0) as file:
            file.seek(place)
            data = file.read(size) or b""
        if len(data) < size:
            raise OSError("the memory of a process was cut short")
        return data

    # Terminals.

    def _is_in_session(self) -> bool:
        """Whether our terminal is the one that ``/dev/tty`` means for this process: a session has one."""
        status = stat_of(self._pid)
        return status is not None and 0 < self._end.session == int(status[3])

    def _may_read(self) -> bool:
        """Whether what is typed is for this process: one in the background is stopped if it reads."""
        if not self._end.session:
            return True
        status = stat_of(self._pid)
        if status is None:
            return False
        return int(status[3]) != self._end.session or int(status[2]) == self._end.foreground


_OWN_TERMINAL = os.makedev(5, 0)
"""The number of ``/dev/tty``, which is another terminal for each session."""


def _descriptor(argument: int) -> int:
    """Return the descriptor that an argument of 64 bits means."""
    fd = argument & 0xFFFF_FFFF
    return fd - 2**32 if fd >= 2**31 else fd


_Numbers = dict[_Waits, tuple[int, ...]]

_NUMBERS: dict[str, _Numbers] = {
    "x86_64": {
        _Reader.reads: (0, 19, 275, 276, 327),  # read readv splice tee preadv2
        _Reader.polls: (7, 271),  # poll ppoll
        _Reader.selects: (23, 270),  # select pselect6
        _Reader.polls_epoll: (232, 281, 441),  # epoll_wait epoll_pwait epoll_pwait2
        _Reader.is_unknown: (219, 426),  # restart_syscall io_uring_enter
    },
    "aarch64": {
        _Reader.reads: (63, 65, 76, 77, 286),
        _Reader.polls: (73,),
        _Reader.selects: (72,),
        _Reader.polls_epoll: (22, 441),
        _Reader.is_unknown: (128, 426),
    },
}
"""What each call means, by the name of the machine."""
