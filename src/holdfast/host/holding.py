"""Who holds our files open at their other end, and whether they are at work."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
from collections.abc import Iterable, Iterator, Sequence

from holdfast.value import value

from .tree import Look, family, stat_of, threads_of

_MOST_HOLDERS = 64
"""Processes that are named as holders of an output."""

_STANDARD = ("1", "2", "0")
"""Where a holder nearly always has it open."""

_UNKNOWN = 64
"""Descriptors of a process that nobody knows the number of: more than a glance may look at."""

_TIOCGPTN = 0x80045430
_PTS = 136
"""The device number, the first part of it, of terminals."""

_STATE = re.compile(rb"^State:\t(.)", re.MULTILINE)
_SWITCHES = re.compile(rb"^(?:non)?voluntary_ctxt_switches:\t(\d+)", re.MULTILINE)

_AT_WORK = b"RD"
"""States of a thread that runs, waits for a processor, or waits for a disk."""


@value
class Ends:
    """The other ends of some of our files, as the kernel names them."""

    names: frozenset[str]
    terminals: frozenset[int]


def ends_of(files: Iterable[int]) -> Ends:
    """What others have open who hold the other ends of ``files``."""
    names, terminals = set(), set()
    for fd in files:
        number = _terminal_number(fd)
        if number is None:
            with contextlib.suppress(OSError):  # Who holds it is good to know, and no more.
                names.add(os.readlink(f"/proc/self/fd/{fd}"))
        else:
            names.add(f"/dev/pts/{number}")
            terminals.add(os.makedev(_PTS, number))
    return Ends(frozenset(names), frozenset(terminals))


def _terminal_number(fd: int) -> int | None:
    """The number of the terminal whose far side ``fd`` is, if it is one."""
    with contextlib.suppress(OSError):
        number: int = struct.unpack("i", fcntl.ioctl(fd, _TIOCGPTN, bytes(4)))[0]
        return number
    return None


# Who holds them.


def holders(pids: Sequence[int], ends: Ends, look: Look | None = None) -> list[int]:
    """Who of ``pids`` has one of ``ends`` open, as far as ``look`` goes."""
    look = look or Look()
    found: set[int] = set()
    # First for all of them where it costs least.
    for files in (_standard_files, _other_files):
        for pid in pids:
            if len(found) < _MOST_HOLDERS and pid not in found and _holds(pid, files(pid, look), ends):
                found.add(pid)
    return [pid for pid in pids if pid in found]


def _holds(pid: int, files: Iterable[str], ends: Ends) -> bool:
    for name in files:
        if name in ends.names:
            return True
        if name == "/dev/tty" and ends.terminals:
            stat = stat_of(pid)
            if stat is not None and int(stat[4]) in ends.terminals:
                return True
    return False


def _standard_files(pid: int, look: Look) -> Iterator[str]:
    for number in _STANDARD:
        if look.take():
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{number}")


def _other_files(pid: int, look: Look) -> Iterator[str]:
    try:
        # Kernels before 6.2 do not say how many there are.
        if not look.take(os.stat(f"/proc/{pid}/fd").st_size or _UNKNOWN):
            return
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError as error:
        look.failed(error)
        return
    for number in numbers:
        if number not in _STANDARD and look.take(0):
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{number}")


def _files(pid: int, look: Look) -> Iterator[str]:
    yield from _standard_files(pid, look)
    yield from _other_files(pid, look)


# Whether they are at work.


@value
class Pulse:
    """What those who hold an output open were doing at one moment."""

    at_work: bool
    """Whether one of them runs, or would if it had a processor or a disk had answered."""
    switches: dict[int, int]
    """How often each thread of them was taken from a processor."""
    known: bool
    """Whether all of them were looked at."""

    def is_quiet_since(self, before: Pulse | None) -> bool:
        """Whether none of them is at work or was since ``before``."""
        if not self.known or self.at_work:
            return False
        return not self.switches or (before is not None and self.switches == before.switches)


def pulse(root: int, ends: Ends, look: Look | None = None) -> Pulse:
    """What those below ``root`` do who have one of ``ends`` open, and everybody below them.

    A shell that waits for a command says something when that has ended, so it is as
    quiet as the command.
    """
    look = look or Look()
    concerned: set[int] = set()
    switches: dict[int, int] = {}
    at_work = False
    for pid, parent in family(root, look):
        if parent not in concerned and not _holds(pid, _files(pid, look), ends):
            continue
        concerned.add(pid)
        for thread in threads_of(pid, look):
            state, count = _thread(pid, thread, look)
            at_work = at_work or state in _AT_WORK
            switches[thread] = count
    return Pulse(at_work, switches, known=not look.cut)


def _thread(pid: int, thread: int, look: Look) -> tuple[bytes, int]:
    """The state of a thread, and how often it was taken from a processor."""
    try:
        with open(f"/proc/{pid}/task/{thread}/status", "rb", buffering=0) as file:
            text = file.read() or b""
    except OSError as error:
        look.failed(error)
        return b"X", 0  # It has ended meanwhile, unless there was no room for a look.
    state = _STATE.search(text)
    return state[1] if state else b"X", sum(map(int, _SWITCHES.findall(text)))
