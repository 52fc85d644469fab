"""The process that ends our children when we are killed before we can do it ourselves.

A server that gets SIGKILL cannot clean up, and a parent-death signal follows the
*thread* that spawned, reaches one process only and can be ignored.  So a small
process is forked before anything else is set up.  It shares a table of pids with
us and waits for our end on a descriptor of our process.  (Not for the end of a
pipe: a child that is just being started holds copies of all our pipes.)  Noting
a child costs one store into shared memory.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import signal as signals
import threading

_SLOTS = 1 << 17
"""More children than a host can run; an unused slot costs no memory."""

_MOST_DESCRIPTORS = 1024
"""Descriptors that a server can have been started with and that the guardian lets go of."""


class Guardian:
    """Our side: notes which children are alive."""

    def __init__(self) -> None:
        """Fork the guardian.  Call this before threads and event loops exist."""
        self._table = mmap.mmap(-1, _SLOTS * 4)
        self._pids = memoryview(self._table).cast("i")
        self._slot_of: dict[int, int] = {}
        self._free: list[int] = []
        self._next = 0
        self._lock = threading.Lock()  # Starts come from several threads.
        owner = os.pidfd_open(os.getpid())
        self._pid = os.fork()
        if self._pid == 0:
            _guard(owner, self._pids)
        os.close(owner)

    def note(self, pid: int) -> None:
        """A child was started."""
        with self._lock:
            if self._free:
                slot = self._free.pop()
            else:
                slot = self._next
                self._next += 1
            self._slot_of[pid] = slot
            self._pids[slot] = pid

    def forget(self, pid: int) -> None:
        """A child has ended and is about to be reaped.

        In this order, because after the reaping its number may be another's.
        """
        with self._lock:
            slot = self._slot_of.pop(pid)
            self._pids[slot] = 0
            self._free.append(slot)

    def close(self) -> None:
        """Kill the children that are left, also those that no start has finished with; end the guardian."""
        _kill_all(self._pids)
        for pid in _own_children():
            with contextlib.suppress(OSError):
                os.kill(pid, signals.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _guard(owner: int, pids: memoryview) -> None:
    """The guardian's whole life; never returns."""
    try:
        # Out of reach of signals to the server's group or terminal; deaf to the rest.
        os.setsid()
        for number in (signals.SIGINT, signals.SIGTERM, signals.SIGHUP, signals.SIGQUIT):
            signals.signal(number, signals.SIG_IGN)
        # Whoever reads the server's output must see it end with the server.
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.closerange(3, owner)
        os.closerange(owner + 1, _MOST_DESCRIPTORS)
        end = select.poll()
        end.register(owner, select.POLLIN)
        end.poll()
        _kill_all(pids)
    finally:
        os._exit(0)


def _own_children() -> list[int]:
    """Our children, whichever thread started them."""
    children: list[int] = []
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/children") as file:
            children += map(int, file.read().split())
    return children


def _kill_all(pids: memoryview) -> None:
    for pid in pids:
        if pid:
            with contextlib.suppress(OSError):
                os.killpg(pid, signals.SIGKILL)
