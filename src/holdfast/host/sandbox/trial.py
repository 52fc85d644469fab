"""Programs that are run to see whether they can be."""

from __future__ import annotations

import contextlib
import os
import select
import signal as signals
import threading
import time

PATIENCE = 5.0
"""Seconds for a program to be tried out; it takes milliseconds, unless a disk or a mount hangs."""

_END = 1.0
"""Seconds in which a killed program is gone, unless it hangs in the kernel."""

_SAID_MOST = 500
"""Bytes of what it says that are passed on."""


class Trial:
    """A program that is run to see whether it can be.  It may be asked in any thread."""

    def __init__(self, argv: list[str], *, within: float = PATIENCE) -> None:
        """It runs from now on; ``within`` so many seconds it has to end."""
        self._name = argv[0]
        self._within = within
        self._deadline = time.monotonic() + within
        self._pid = 0
        self._pidfd = -1
        self._lock = threading.Lock()
        self._result: str | None = None
        self._said = os.memfd_create("holdfast-trial")
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
        actions = [*nowhere, (os.POSIX_SPAWN_DUP2, self._said, 2)]
        try:
            # In a group of its own, so that nothing that it has started is left when it is killed.
            self._pid = os.posix_spawn(
                argv[0],
                argv,
                {},
                file_actions=actions,
                setpgroup=0,
                setsigmask=[],
                setsigdef=[signals.SIGCHLD],  # It waits for what it has started itself, though we may not.
            )
            self._pidfd = os.pidfd_open(self._pid)
        except ProcessLookupError:
            # It has ended, and where SIGCHLD is ignored nobody keeps its number: it may be another's by now.
            self._pid = 0
            self._finish(self._unknown())
        except OSError as error:
            self._finish(f"{argv[0]}: {error.strerror}")

    @property
    def over(self) -> bool:
        """Whether ``failure`` would answer at once."""
        return self._result is not None or self._ends_within(0)

    def failure(self) -> str:
        """Wait for its end, or for the end of its time.  What was wrong; empty if nothing was."""
        with self._lock:
            if self._result is None:
                self._finish(self._outcome())
            assert self._result is not None
            return self._result

    def stop(self) -> None:
        """Wait for it no longer.  May be called twice, also after its end."""
        with self._lock:
            if self._result is None:
                self._finish(f"{self._name} was stopped while it was tried out")

    def _outcome(self) -> str:
        if not self._ends_within(self._deadline - time.monotonic()):
            return f"{self._name} hangs: it did not end within {self._within:g} s"
        code = self._reap()
        if code == 0:
            return ""
        text = os.pread(self._said, _SAID_MOST, 0).decode(errors="replace").strip()
        return text or (self._unknown() if code is None else f"{self._name} ended with {code}")

    def _unknown(self) -> str:
        return f"{self._name} ended with an unknown code"

    def _ends_within(self, seconds: float) -> bool:
        """Whether it ends in this time.  It is not reaped by that."""
        if self._pidfd < 0:
            return True  # Another thread has seen to it meanwhile.
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))

    def _reap(self) -> int | None:
        """Its exit code; None if somebody else has taken it."""
        pid, self._pid = self._pid, 0
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:
            return None

    def _finish(self, result: str) -> None:
        """Give everything back; what still runs is ended."""
        self._result = result
        os.close(self._said)
        if self._pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signals.SIGKILL)
            if self._ends_within(_END) and self._pidfd >= 0:
                self._reap()
            else:
                # What hangs in the kernel cannot even be killed.  Nobody waits for it but this thread.
                threading.Thread(target=self._reap, name="holdfast-trial", daemon=True).start()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
