"""Which processes hold the other end of our pipes and terminals open, and whether they are at work."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
from collections.abc import Iterable, Iterator, Sequence

from holdfast.reports import Ends, Pulse

from .tree import Look, family, stat_of, threads_of

_MOST_HOLDERS = 64
"""The most processes that are named as holders of an output."""

_STANDARD = ("1", "2", "0")
"""The descriptors under which a holder nearly always has it open."""

_UNKNOWN = 64
"""How many descriptors a process counts for if the kernel does not say: more than a glance may look at."""

_TIOCGPTN = 0x80045430
_PTS = 136
"""The major device number of terminals."""

_STATE = re.compile(rb"^State:\t(.)", re.MULTILINE)
_SWITCHES = re.compile(rb"^(?:non)?voluntary_ctxt_switches:\t(\d+)", re.MULTILINE)

_AT_WORK = b"RD"
"""States of a thread that runs or waits for a processor (R), or waits for a disk (D)."""


def ends_of(files: Iterable[int]) -> Ends:
    """Return what a process has open that holds the other end of one of our ``files``."""
    names, terminals = set(), set()
    for fd in files:
        number = terminal_number(fd)
        if number is None:
            with contextlib.suppress(OSError):  # Who holds it is good to know, but nothing depends on it.
                names.add(os.readlink(f"/proc/self/fd/{fd}"))
        else:
            names.add(f"/dev/pts/{number}")
            terminals.add(os.makedev(_PTS, number))
    return Ends(frozenset(names), frozenset(terminals))


def terminal_number(fd: int) -> int | None:
    """Return the number of a terminal, given the descriptor of its master side; None for anything else."""
    with contextlib.suppress(OSError):
        number: int = struct.unpack("i", fcntl.ioctl(fd, _TIOCGPTN, bytes(4)))[0]
        return number
    return None


# The processes that hold an end.


def holders(pids: Sequence[int], ends: Ends, look: Look | None = None) -> list[int]:
    """Return which of the processes ``pids`` have one of ``ends`` open, as far as ``look`` allows."""
    look = look or Look()
    found: set[int] = set()
    # First look at the standard files of all processes, where it costs least.
    for files in (_standard_files, _other_files):
        for pid in pids:
            if len(found) < _MOST_HOLDERS and pid not in found and _holds(pid, files(pid, look), ends):
                found.add(pid)
    return [pid for pid in pids if pid in found]


def _holds(pid: int, files: Iterable[str], ends: Ends) -> bool:
    """Whether one of the open files of a process is one of ``ends``."""
    for name in files:
        if name in ends.names:
            return True
        if name == "/dev/tty" and ends.terminals:
            stat = stat_of(pid)
            if stat is not None and int(stat[4]) in ends.terminals:
                return True
    return False


def _standard_files(pid: int, look: Look) -> Iterator[str]:
    """Yield the names of a process's standard files."""
    for number in _STANDARD:
        if look.take():
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{number}")


def _other_files(pid: int, look: Look) -> Iterator[str]:
    """Yield the names of all files of a process but the standard ones."""
    try:
        # The size is the number of descriptors.  Kernels before 6.2 say 0.
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
    """Yield the names of all open files of a process, the standard ones first."""
    yield from _standard_files(pid, look)
    yield from _other_files(pid, look)


# Whether those processes are at work.


def pulse(root: int, ends: Ends, look: Look | None = None) -> Pulse:
    """Return what processes below ``root`` do that have one of ``ends`` open, and those below such processes.

    The latter count because a shell that waits for a command may write when the command has ended.
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
    """Return the state of a thread, and how often it was taken from a processor."""
    try:
        with open(f"/proc/{pid}/task/{thread}/status", "rb", buffering=0) as file:
            text = file.read() or b""
    except OSError as error:
        look.failed(error)
        return b"X", 0  # The thread has ended, unless the host is short of descriptors.
    state = _STATE.search(text)
    return state[1] if state else b"X", sum(map(int, _SWITCHES.findall(text)))
