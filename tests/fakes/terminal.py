"""A terminal with somebody in front of it: runs a program, types, reads what is shown, changes the size."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.fakes.server import PATIENCE

HOLDFAST = (sys.executable, "-m", "holdfast")

SIZE_TELLER = (
    "import os, select, signal\n"
    "def show(): print('size', *os.get_terminal_size(0), flush=True)\n"
    "woken, wakes = os.pipe()\n"
    "os.set_blocking(wakes, False)\n"
    "signal.set_wakeup_fd(wakes)\n"
    "signal.signal(signal.SIGWINCH, lambda *_: None)\n"
    "show()\n"
    "while True:\n"
    "    if 0 in select.select((0, woken), (), ())[0]:\n"
    "        print('got', input(), flush=True)\n"
    "    else:\n"
    "        os.read(woken, 64)\n"
    "        show()\n"
)
"""A program that tells its size at the start and whenever it changes, and what it is given.

It sleeps in ``select`` and not in ``input``: a signal just before the call would be noticed only after it.
"""

SILENT = {"HOLDFAST_URL": "", "HOLDFAST_TOKEN": "", "HOLDFAST_CONFIG": os.devnull}
"""Variables of a test that must not meet the servers of whoever runs it."""


class Said(NamedTuple):
    """What a command came to that was run in the test's own process."""

    code: int
    out: str
    err: str


Call = Callable[..., Said]
"""Runs a command."""


class Person:
    """A program in a terminal of its own, which is its session's, and whoever sits there."""

    def __init__(
        self, *command: str, rows: int = 24, cols: int = 80, env: Mapping[str, str] | None = None
    ) -> None:
        self._master, self._slave = pty.openpty()
        os.set_blocking(self._master, False)
        self._set_size(rows, cols)
        self.modes_before = self.modes()
        self.shown = b""
        """Everything that was shown."""
        self._seen = 0
        # Whoever draws would believe these rather than the terminal.
        own = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
        self.process = subprocess.Popen(
            command,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={**own, **SILENT, "TERM": "xterm", **(env or {})},
            start_new_session=True,
            # The first terminal that a leader of a session takes becomes the session's.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def type(self, keys: bytes) -> None:
        """Press keys."""
        while keys:
            select.select((), (self._master,), (), PATIENCE)
            keys = keys[os.write(self._master, keys) :]

    def expect(self, text: bytes) -> bytes:
        """Wait until this is shown, behind what was expected before; give all that is shown up to its end."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.shown.find(text, self._seen)) < 0:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} is not shown, but {self.shown[self._seen :]!r}"
            if not self._look(left):
                assert self.process.poll() is None or self._look(0), (
                    f"{text!r} is not shown, but {self.shown[self._seen :]!r}, and the program has ended"
                )
        self._seen = found + len(text)
        return self.shown[: self._seen]

    def insist(self, keys: bytes, text: bytes) -> None:
        """Press keys again and again until this is shown."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown[self._seen :]:
            assert time.monotonic() < deadline, f"{text!r} is not shown, but {self.shown[self._seen :]!r}"
            self.type(keys)
            while self._look(0.1):
                pass
        self.expect(text)

    def resize(self, rows: int, cols: int) -> None:
        """Drag a corner of the window."""
        self._set_size(rows, cols)

    def modes(self) -> list[Any]:
        """How the terminal is set."""
        return termios.tcgetattr(self._slave)

    def wait(self) -> int:
        """Wait for the end; give the exit code.  What was shown up to then is in ``shown``."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still runs; shown: {self.shown!r}"
            self._look(0.01)
        while self._look(0):
            pass
        return self.process.returncode

    def close(self) -> None:
        """Leave, whatever the program thinks of it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def _look(self, seconds: float) -> bool:
        """Read what is shown; False if nothing is within that time."""
        if not select.select((self._master,), (), (), min(seconds, 0.1))[0]:
            return False
        with contextlib.suppress(BlockingIOError):
            self.shown += os.read(self._master, 1 << 16)
        return True

    def _set_size(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


@contextlib.contextmanager
def person_at(
    *arguments: str, rows: int = 24, cols: int = 80, env: Mapping[str, str] | None = None
) -> Iterator[Person]:
    """Somebody who has started ``holdfast`` with these arguments."""
    person = Person(*HOLDFAST, *arguments, rows=rows, cols=cols, env=env)
    try:
        yield person
    finally:
        person.close()


def holdfast(
    *arguments: str,
    data: bytes | None = None,
    env: Mapping[str, str] | None = None,
    within: float = PATIENCE,
    under: Sequence[str] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run ``holdfast`` to its end without any terminal; without ``data`` there is no input.

    ``under`` is a command that runs another one.
    """
    return subprocess.run(
        [*under, *HOLDFAST, *arguments],
        input=data,
        stdin=subprocess.DEVNULL if data is None else None,
        capture_output=True,
        env={**os.environ, **SILENT, **(env or {})},
        timeout=within,
        check=False,
    )
