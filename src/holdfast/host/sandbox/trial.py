"""Runs a program for a trial, to find out whether it works on this host."""

from __future__ import annotations

import contextlib
import os
import select
import signal as signals
import threading
import time

PATIENCE = 5.0
"""Seconds that a program has by default.  It takes milliseconds, unless a disk or a mount hangs."""

_END = 1.0
"""Seconds to wait for the end of a killed program.  After that it hangs in the kernel."""

_SAID_MOST = 500
"""Bytes of the program's standard error that are passed on."""


class Trial:
    """One run of a program that is tried out.  May be used in any thread."""

    def __init__(self, argv: list[str], *, within: float = PATIENCE) -> None:
        """Start the program, which has to end ``within`` so many seconds.  Does not wait."""
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
            # It gets a group of its own, so that everything it has started can be killed with it.
            self._pid = os.posix_spawn(
                argv[0],
                argv,
                {},
                file_actions=actions,
                setpgroup=0,
                setsigmask=[],
                setsigdef=[signals.SIGCHLD],  # It waits for its children, though we may ignore ours.
            )
            self._pidfd = os.pidfd_open(self._pid)
        except ProcessLookupError:
            # It has ended.  Where SIGCHLD is ignored its pid may be another process's by now.
            self._pid = 0
            self._finish(self._unknown())
        except OSError as error:
            self._finish(f"{argv[0]}: {error.strerror}")

    @property
    def over(self) -> bool:
        """Whether ``failure`` would answer at once."""
        return self._result is not None or self._ends_within(0)

    def failure(self) -> str:
        """Wait for the end of the program, or of its time.  Return what was wrong; empty if nothing was."""
        with self._lock:
            if self._result is None:
                self._finish(self._outcome())
            assert self._result is not None
            return self._result

    def stop(self) -> None:
        """Kill the program, if it still runs.  May be called twice, and after its end."""
        with self._lock:
            if self._result is None:
                self._finish(f"{self._name} was stopped while it was tried out")

    def _outcome(self) -> str:
        """Wait as ``failure`` does, and return the same."""
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
        """Wait so long for the end of the program, without reaping it.  Return whether it has ended."""
        if self._pidfd < 0:
            return True  # Another thread has reaped it meanwhile.
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))

    def _reap(self) -> int | None:
        """Reap the program; return its exit code, or None if other code of this process has reaped it."""
        pid, self._pid = self._pid, 0
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:
            return None

    def _finish(self, result: str) -> None:
        """Note the result, kill the program if it still runs, and release everything."""
        self._result = result
        os.close(self._said)
        if self._pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signals.SIGKILL)
            if self._ends_within(_END) and self._pidfd >= 0:
                self._reap()
            else:
                # A program that hangs in the kernel cannot be killed.  Only this thread waits for it.
                threading.Thread(target=self._reap, name="holdfast-trial", daemon=True).start()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
