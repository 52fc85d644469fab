"""The processes below a process, as ``/proc`` shows them: who they are, what they use, and signals to them.

A client decides how many processes, threads and descriptors there are to look at.  So each look is bounded.
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
from holdfast.reports import Load

_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the system says of descriptors or memory that are used up."""

_FIX = "without our own no process could be ended: mount -t proc proc"

_GLANCE = 32
"""Entries of ``/proc`` in a look that the event loop waits for: each takes about ten microseconds."""

_ENTRIES = 1 << 20
"""Entries of ``/proc`` in a look that is made in a thread."""

_SECONDS = 1.0
"""Seconds that a look in a thread may take: others wait for the thread."""

_MOST = 4096
"""Processes of one tree that are looked at."""

_READ = 4096
"""Bytes of a list of children that the kernel returns from one read."""

_WHOLE_HOST = 64
"""How many entries a list of all processes counts for: more than a glance may look at."""

_STARTED_AT = 19
"""The index of the start time among the fields of ``/proc/PID/stat`` that follow the name."""

_SENT = 4
"""How many entries a signal counts for."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")


# Whether ``/proc`` can be trusted.


def check_proc(place: str = "/proc") -> None:
    """Check that ``/proc`` shows our own process, under the pid that we know it by.

    An empty ``/proc`` shows nobody, and that of another PID namespace has the pids of that namespace.  A
    tree would seem to have ended, or a stranger to belong to it.

    Raises:
        HostUnfit: ``/proc`` is missing, or another namespace's.
        OSError: The host is short of descriptors or memory, so that this cannot be told now.
    """
    try:
        number = os.readlink(f"{place}/self")
        with open(f"{place}/self/status", "rb") as file:
            status = dict(line.split(b":", 1) for line in file if b":" in line)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        raise HostUnfit(f"{place} cannot be read: {error.strerror}; {_FIX} {place}") from error
    # NSpid has one pid for each namespace from that of the mount down to ours: ours must be the first.
    numbers = status.get(b"NSpid", number.encode()).split()
    if number != str(os.getpid()) or len(numbers) != 1:
        raise HostUnfit(f"{place} is that of another PID namespace; {_FIX} {place}")


# The bounds of a look.


class Look:
    """How far one look at processes may go.  One thread looks, and another may call ``give_up``."""

    __slots__ = ("_deadline", "_left", "_seconds", "cut", "given_up")

    def __init__(self, entries: int = _ENTRIES, seconds: float = _SECONDS) -> None:
        self._left = entries
        self._seconds = seconds
        self._deadline: float | None = None
        self.cut = False
        """Whether the look ended before everything was seen."""
        self.given_up = False
        """Whether the result is no longer wanted."""

    def take(self, entries: int = 1) -> bool:
        """Count further entries.  Return whether they may be looked at."""
        now = time.monotonic()
        if self._deadline is None:
            # The time begins here, because the look may have waited for a thread until now.
            self._deadline = now + self._seconds
        self._left -= entries
        if self._left < 0 or now >= self._deadline or self.given_up:
            self.cut = True
        return not self.cut

    def failed(self, error: OSError) -> None:
        """Note that an entry could not be read.

        A process that has ended, or belongs to another user, is simply not there.  If the host is short of
        descriptors or memory, the look is cut.
        """
        if error.errno in _NO_ROOM:
            self.cut = True

    @property
    def took(self) -> float:
        """Seconds since the first entry was looked at."""
        return 0.0 if self._deadline is None else time.monotonic() - self._deadline + self._seconds

    def give_up(self) -> None:
        """Make the look end soon.  May be called twice, and after the end of the look."""
        self.given_up = True


def glance() -> Look:
    """Return the bounds of a look that takes a fraction of a millisecond, however large the tree is."""
    return Look(_GLANCE)


# The processes of a tree, and what they use.


def below(root: int, look: Look | None = None) -> list[int]:
    """Return the pids of all processes below ``root``, without ``root`` itself; parents come first."""
    return [pid for pid, _ in family(root, look or Look())]


def family(root: int, look: Look) -> list[tuple[int, int]]:
    """Return the pids of all processes below ``root``, each with that of its parent; parents come first."""
    if root <= 0:
        return []  # A process whose parent is outside of our namespace says that its parent is 0.
    children = _children if _is_told_children() else _by_parents(look)
    found = [(pid, root) for pid in children(root, look)]
    for pid, _ in found:  # The list grows while the loop goes along it.
        if len(found) >= _MOST:
            return found[:_MOST]
        found += [(child, pid) for child in children(pid, look)]
    return found


def _children(pid: int, look: Look) -> Iterator[int]:
    """Yield the children of a process.  The kernel lists them by the thread that made them."""
    for thread in threads_of(pid, look):
        try:
            yield from _numbers(f"/proc/{pid}/task/{thread}/children", look)
        except OSError as error:
            look.failed(error)  # If the thread has ended, another thread has inherited its children.


def _numbers(path: str, look: Look) -> Iterator[int]:
    """Yield the numbers in a file, each of which is followed by a space, as far as ``look`` allows."""
    rest = b""
    with open(path, "rb", buffering=0) as file:
        while data := file.read(_READ):
            *words, rest = (rest + data).split(b" ")
            for word in words:
                if not look.take():
                    return
                yield int(word)


def threads_of(pid: int, look: Look) -> list[int]:
    """Return the threads of a process; none if there are more than ``look`` allows."""
    try:
        # The directory has one link for each thread, and two of its own.
        if not look.take(max(1, os.stat(f"/proc/{pid}/task").st_nlink - 2)):
            return []
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError as error:
        look.failed(error)
        return []


@cache
def _is_told_children() -> bool:
    """Whether the kernel lists the children of a thread.  Some kernels are built without that."""
    try:
        with open("/proc/thread-self/children", "rb"):
            return True
    except OSError:
        return False


def _by_parents(look: Look) -> Callable[[int, Look], Iterable[int]]:
    """Return a function that finds children, for kernels that list none: made from all parents there are."""
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
    """Return the fields of ``/proc/PID/stat`` that follow the name; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return (file.read() or b"").rpartition(b")")[2].split() or None
    except OSError:
        return None


def is_alive(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    stat = stat_of(pid)
    return stat is not None and stat[0] not in b"ZX"


def signal_all(
    root: int, number: int, is_there: Callable[[], bool], look: Look | None = None, *, partly: bool = True
) -> bool:
    """Send a signal once to every process below ``root``.  Return whether it was sent.

    A pid that was below ``root`` a moment ago may be a stranger's by now.  So each process is first held by
    a descriptor, and gets the signal only if its parent is ``root`` or a process that got the signal
    before.  Such a parent is recognized by its pid and its start time.

    Args:
        is_there: Whether ``root`` is still the process that it was.
        partly: If there are more processes than ``look`` allows, send the signal to those that were found.
            Otherwise nobody gets it then.
    """
    look, known = look or Look(), dict[int, bytes]()
    pids = below(root, look)
    if not (look.take(_SENT * len(pids)) or partly):
        return False
    for pid in pids:
        if look.given_up:
            break  # The result is no longer wanted.
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
    """Whether a pid still belongs to the process that had it when ``known`` got its start time."""
    stat = stat_of(pid)
    return stat is not None and known.get(pid) == stat[_STARTED_AT]


def waited_us(root: int) -> int:
    """Return the processor time, in microseconds, of the processes that ``root`` has waited for."""
    stat = stat_of(root)
    return 0 if stat is None else (int(stat[13]) + int(stat[14])) * _TICK_US


def load(root: int, look: Look | None = None, *, before_us: int = 0) -> Load:
    """Return what the processes below ``root`` use, as far as ``look`` allows.

    Args:
        before_us: What ``waited_us`` returned when the tree began: a shim has had other commands before.
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


# Orphans.

_ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT
"""Options of ``waitid`` that find an ended child without reaping it."""


def reap_orphans(fork_server: int) -> bool:
    """Reap ended processes that have become our children; return whether the fork server is the next to reap.

    None of them is in our session, because they or a process above them made a session of their own.  Our
    own children are in our session, except for the fork server, and are left to whoever waits for them.
    """
    with contextlib.suppress(ChildProcessError, ProcessLookupError):
        while (ended := os.waitid(os.P_ALL, 0, _ENDED)) is not None:
            if ended.si_pid == fork_server:
                return True
            if os.getsid(ended.si_pid) == os.getsid(0):
                _reap_listed(fork_server)
                break
            os.waitpid(ended.si_pid, os.WNOHANG)
    return False


def _reap_listed(fork_server: int) -> None:
    """Reap orphans by a list of children: an ended child of our own hides them from ``waitid``."""
    with contextlib.suppress(OSError), open("/proc/thread-self/children", "rb") as file:
        for pid in map(int, file.read().split()):
            with contextlib.suppress(ChildProcessError, ProcessLookupError):
                if pid != fork_server and os.getsid(pid) != os.getsid(0):
                    os.waitpid(pid, os.WNOHANG)
