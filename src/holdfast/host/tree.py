"""Everybody below a process, as ``/proc`` shows it: who they are, what they use, and signals to them.

How many there are is theirs to decide: each look has its bounds, and goes no further.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal as signals
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from holdfast.errors import HostUnfit
from holdfast.value import value

_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the system says of descriptors or memory that are used up."""

_FIX = "without our own no process could be ended: mount -t proc proc"

_GLANCE = 32
"""Entries of a look that somebody waits for: each takes about ten microseconds."""

_ENTRIES = 1 << 20
"""Entries of a look that nobody waits for."""

_SECONDS = 1.0
"""What such a look may take: others wait for its thread."""

_MOST = 4096
"""Processes of one tree that are looked at."""

_READ = 4096
"""Bytes that the kernel writes at once of a list of children."""

_WHOLE_HOST = 64
"""What it costs to list all processes, in entries that are looked at: more than a glance may."""

_STARTED_AT = 19
"""Where the fields of a process, after its name, have the time of its start."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")


# Whether there is anything to look at.


def check_proc(place: str = "/proc") -> None:
    """See that our own process is there, under the number that we know it by.

    In an empty ``/proc`` nobody is to be found, and in that of another PID namespace
    the numbers are those of others: a tree would look as if it had ended, or a
    stranger as if it were of the tree.

    Raises:
        HostUnfit: It is not so.
        OSError: That cannot be seen now.
    """
    try:
        number = os.readlink(f"{place}/self")
        with open(f"{place}/self/status", "rb") as file:
            status = dict(line.split(b":", 1) for line in file if b":" in line)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        raise HostUnfit(f"{place} cannot be read: {error.strerror}; {_FIX} {place}") from error
    # One number for each namespace from that of the mount down to ours: ours must be the first.
    numbers = status.get(b"NSpid", number.encode()).split()
    if number != str(os.getpid()) or len(numbers) != 1:
        raise HostUnfit(f"{place} is that of another PID namespace; {_FIX} {place}")


# How far one look may go.


class Look:
    """The bounds of one look.  One thread looks, and another may call ``give_up``."""

    __slots__ = ("_deadline", "_left", "_seconds", "cut", "given_up")

    def __init__(self, entries: int = _ENTRIES, seconds: float = _SECONDS) -> None:
        self._left = entries
        self._seconds = seconds
        self._deadline: float | None = None
        self.cut = False
        """Whether there was more than may be looked at."""
        self.given_up = False
        """Whether nobody wants to know any more."""

    def take(self, entries: int = 1) -> bool:
        """Whether so many more entries may be looked at."""
        now = time.monotonic()
        if self._deadline is None:
            # Now, and not when it was asked for: until here it may have waited for a thread.
            self._deadline = now + self._seconds
        self._left -= entries
        if self._left < 0 or now >= self._deadline or self.given_up:
            self.cut = True
        return not self.cut

    def failed(self, error: OSError) -> None:
        """Something could not be looked at: it has ended, is another user's, or there was no room for it."""
        if error.errno in _NO_ROOM:
            self.cut = True

    @property
    def took(self) -> float:
        """Seconds since the first entry."""
        return 0.0 if self._deadline is None else time.monotonic() - self._deadline + self._seconds

    def give_up(self) -> None:
        """Have it end soon.  May be called twice, also after its end."""
        self.given_up = True


def glance() -> Look:
    """A look that takes a fraction of a millisecond, whoever is looked at."""
    return Look(_GLANCE)


# Who is there, and what they use.


@value
class Load:
    """What a tree uses at this moment."""

    processes: int
    memory: int
    """Bytes resident."""
    cpu_us: int
    """Since its beginning, also by those who have ended."""


def below(root: int, look: Look | None = None) -> list[int]:
    """Everybody below ``root``, which is not one of them; parents before their children."""
    return [pid for pid, _ in family(root, look or Look())]


def family(root: int, look: Look) -> list[tuple[int, int]]:
    """Everybody below ``root``, each with its parent; parents before their children."""
    if root <= 0:
        return []  # Whoever has no parent in sight says that it is 0.
    children = _children if _is_told_children() else _by_parents(look)
    found = [(pid, root) for pid in children(root, look)]
    for pid, _ in found:  # It grows while we go along it.
        if len(found) >= _MOST:
            return found[:_MOST]
        found += [(child, pid) for child in children(pid, look)]
    return found


def _children(pid: int, look: Look) -> Iterator[int]:
    """The children of a process, whichever of its threads made them."""
    for thread in threads_of(pid, look):
        try:
            yield from _numbers(f"/proc/{pid}/task/{thread}/children", look)
        except OSError as error:
            look.failed(error)  # A thread that has ended meanwhile has left its children to another one.


def _numbers(path: str, look: Look) -> Iterator[int]:
    """The numbers in a file, each followed by a space, as many as may be looked at."""
    rest = b""
    with open(path, "rb", buffering=0) as file:
        while data := file.read(_READ):
            *words, rest = (rest + data).split(b" ")
            for word in words:
                if not look.take():
                    return
                yield int(word)


def threads_of(pid: int, look: Look) -> list[int]:
    """The threads of a process, if there are not too many to look at."""
    try:
        # The directory has a link for each, and two of its own.
        if not look.take(max(1, os.stat(f"/proc/{pid}/task").st_nlink - 2)):
            return []
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError as error:
        look.failed(error)
        return []


@cache
def _is_told_children() -> bool:
    """Whether the kernel lists the children of a thread: some are built without."""
    try:
        with open("/proc/thread-self/children", "rb"):
            return True
    except OSError:
        return False


def _by_parents(look: Look) -> Callable[[int, Look], Iterable[int]]:
    """Find children by their parents, for kernels that list no children."""
    found: dict[int, list[int]] = {}
    names: list[str] = []
    if look.take(_WHOLE_HOST):
        try:
            names = os.listdir("/proc")
        except OSError as error:
            look.failed(error)
    for name in names:
        if name.isdecimal() and look.take():
            stat = stat_of(int(name))
            if stat is not None:
                found.setdefault(int(stat[1]), []).append(int(name))
    return lambda pid, look: found.get(pid, ())


def stat_of(pid: int) -> list[bytes] | None:
    """The fields of a process after its name; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return (file.read() or b"").rpartition(b")")[2].split() or None
    except OSError:
        return None


def is_alive(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    stat = stat_of(pid)
    return stat is not None and stat[0] not in b"ZX"


_SENT = 4
"""What it costs to send a signal, in entries that are looked at."""


def signal_all(
    root: int, number: int, is_there: Callable[[], bool], look: Look | None = None, *, partly: bool = True
) -> bool:
    """Send a signal to everybody below ``root``, once; return whether that was done.

    A number that was somebody's below ``root`` a moment ago may be a stranger's
    by now: it is held first, and then seen to have the parent it had.  That parent
    is known by the time of its start as well as by its number; whether ``root`` is
    still who it was is what ``is_there`` says.

    Args:
        partly: Send it to those who were found if there are too many; else to nobody then.
    """
    look, known = look or Look(), dict[int, bytes]()
    pids = below(root, look)
    if not (look.take(_SENT * len(pids)) or partly):
        return False
    for pid in pids:
        if look.given_up:
            break  # Nobody waits for it any more.
        with contextlib.suppress(OSError):
            holder = os.pidfd_open(pid)
            try:
                stat = stat_of(pid)
                if (
                    stat is not None
                    and (int(stat[1]) == root or _is_known(int(stat[1]), known))
                    and is_there()
                ):
                    known[pid] = stat[_STARTED_AT]
                    signals.pidfd_send_signal(holder, number)
            finally:
                os.close(holder)
    return True


def _is_known(pid: int, known: Mapping[int, bytes]) -> bool:
    stat = stat_of(pid)
    return stat is not None and known.get(pid) == stat[_STARTED_AT]


def waited_us(root: int) -> int:
    """The processor time of those whom ``root`` has waited for; its own work is not counted."""
    stat = stat_of(root)
    return 0 if stat is None else (int(stat[13]) + int(stat[14])) * _TICK_US


def load(root: int, look: Look | None = None, *, before_us: int = 0) -> Load:
    """What everybody below ``root`` uses, as far as ``look`` goes.

    Args:
        before_us: What ``root`` had waited for before: a shim has had other commands.
    """
    processes = memory = ticks = 0
    look = look or Look()
    waited = waited_us(root)
    for pid in below(root, look):
        if not look.take():
            break
        stat = stat_of(pid)
        if stat is None or stat[0] in b"X":
            continue
        ticks += sum(map(int, stat[11:15]))
        if stat[0] != b"Z":
            processes += 1
            memory += int(stat[21]) * _PAGE
    return Load(processes, memory, ticks * _TICK_US + max(0, waited - before_us))
