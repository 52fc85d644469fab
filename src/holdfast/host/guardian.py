"""The process that ends our children when we are killed before we can do it ourselves.

A server that gets SIGKILL cannot clean up, and a parent-death signal follows the
*thread* that spawned, reaches one process only and can be ignored.  So a small
process is forked before anything else is set up.  It shares one page table of
pids with us and waits for the end of a pipe that only we hold open.  Noting a
child costs one store into shared memory.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal as signals
import threading

_SLOTS = 1 << 17
"""More children than a host can run; an unused slot costs no memory."""


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
        alive, self._hold = os.pipe2(os.O_CLOEXEC)
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._hold)
            _guard(alive, self._pids)
        os.close(alive)

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
        """End the guardian.  Children that are still noted are killed."""
        os.close(self._hold)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _guard(alive: int, pids: memoryview) -> None:
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
        os.closerange(3, alive)
        os.closerange(alive + 1, 256)
        os.read(alive, 1)
        for pid in pids:
            if pid:
                with contextlib.suppress(OSError):
                    os.killpg(pid, signals.SIGKILL)
    finally:
        os._exit(0)
