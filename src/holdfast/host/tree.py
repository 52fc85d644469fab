"""Everybody below a process, as the kernel shows it: who they are, what they hold, what they use."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal as signals
import struct
from collections.abc import Iterator, Sequence

from holdfast.value import value

_MOST = 4096
"""Processes of one tree that are looked at."""

_MOST_HOLDERS = 64
"""Processes that are named as holders of an output."""

_TIOCGPTN = 0x80045430
_PTS = 136
"""The device number, the first part of it, of terminals."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")


@value
class Load:
    """What a tree uses at this moment."""

    processes: int
    memory: int
    """Bytes resident."""
    cpu_us: int
    """Since its beginning, also by those who have ended."""


def below(root: int) -> list[int]:
    """Everybody below ``root``, which is not one of them; parents before their children."""
    found: list[int] = []
    for pid in _children(root):
        _gather(pid, found)
    return found


def _gather(top: int, found: list[int]) -> None:
    line = [top]
    while line and len(found) < _MOST:
        pid = line.pop(0)
        found.append(pid)
        line += _children(pid)


def _children(pid: int) -> list[int]:
    """The children of a process, whichever of its threads made them."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        # A thread that has ended meanwhile has left its children to another one.
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
            found += map(int, file.read().split())
    return found


def _stat(pid: int) -> list[bytes] | None:
    """The fields of a process after its name; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return (file.read() or b"").rpartition(b")")[2].split() or None
    except OSError:
        return None


def is_alive(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    stat = _stat(pid)
    return stat is not None and stat[0] not in b"ZX"


def parent(pid: int) -> int | None:
    """The parent of a process; None if there is no such process."""
    stat = _stat(pid)
    return None if stat is None else int(stat[1])


def signal_all(root: int, number: int) -> None:
    """Send a signal to everybody below ``root``, once.

    A number that was somebody's below ``root`` a moment ago may be a stranger's
    by now: it is held first, and then seen to have the parent it had.
    """
    known = {root}
    for pid in below(root):
        with contextlib.suppress(OSError):
            holder = os.pidfd_open(pid)
            try:
                stat = _stat(pid)
                if stat is not None and int(stat[1]) in known:
                    known.add(pid)
                    signals.pidfd_send_signal(holder, number)
            finally:
                os.close(holder)


def holders(pids: Sequence[int], files: Sequence[int]) -> list[int]:
    """Who of ``pids`` has the other end of one of our ``files`` open."""
    wanted, terminals = set(), set()
    for fd in files:
        number = _terminal_number(fd)
        if number is None:
            with contextlib.suppress(OSError):  # Who holds it is good to know, and no more.
                wanted.add(os.readlink(f"/proc/self/fd/{fd}"))
        else:
            wanted.add(f"/dev/pts/{number}")
            terminals.add(os.makedev(_PTS, number))
    return [pid for pid in pids if _holds(pid, wanted, terminals)][:_MOST_HOLDERS]


def _terminal_number(fd: int) -> int | None:
    """The number of the terminal whose far side ``fd`` is, if it is one."""
    with contextlib.suppress(OSError):
        number: int = struct.unpack("i", fcntl.ioctl(fd, _TIOCGPTN, bytes(4)))[0]
        return number
    return None


def _holds(pid: int, wanted: set[str], terminals: set[int]) -> bool:
    for name in _open_files(pid):
        if name in wanted:
            return True
        if name == "/dev/tty" and terminals:
            stat = _stat(pid)
            if stat is not None and int(stat[4]) in terminals:
                return True
    return False


def _open_files(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{number}")


def waited_us(root: int) -> int:
    """The processor time of those whom ``root`` has waited for; its own work is not counted."""
    stat = _stat(root)
    return 0 if stat is None else (int(stat[13]) + int(stat[14])) * _TICK_US


def load(root: int, *, before_us: int = 0) -> Load:
    """What everybody below ``root`` uses.

    Args:
        before_us: What ``root`` had waited for before: a warden has had other commands.
    """
    processes = memory = ticks = 0
    waited = waited_us(root)
    for pid in below(root):
        stat = _stat(pid)
        if stat is None or stat[0] in b"X":
            continue
        ticks += sum(map(int, stat[11:15]))
        if stat[0] != b"Z":
            processes += 1
            memory += int(stat[21]) * _PAGE
    return Load(processes, memory, ticks * _TICK_US + max(0, waited - before_us))
