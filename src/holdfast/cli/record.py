"""``--record FILE``: what our terminal shows while a process is followed, as a recording.

It is made here and not by the server: the file belongs to whoever watches, who need not trust the server
with a path, and the times are those at which it was shown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from holdfast.model import Size
from holdfast.terminal.asciicast import Recording

from .report import Failure, say

_MODE = 0o600
"""What a terminal shows may be secret."""


class CastWriter:
    """Writes a recording.  A disk that is full ends the recording, and not what is recorded."""

    def __init__(self, path: str, *, with_input: bool) -> None:
        """
        Raises:
            Failure: There is such a file, or it cannot be written.
        """
        self._path = path
        self._with_input = with_input
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
        except FileExistsError:
            raise Failure(f"--record: {path} exists; take another name, or remove it first") from None
        except OSError as error:
            raise Failure(f"--record: cannot write {path}: {error.strerror}") from None
        self._recording = Recording(0.0)
        self._size = Size()

    def begin(self, size: Size, *, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Write the header; the time begins."""
        self._size = size
        self._recording = Recording(time.monotonic())
        self._write(self._recording.header(size, timestamp=time.time(), command=command, env=env))

    def output(self, data: bytes) -> None:
        self._write(self._recording.output(time.monotonic(), data))

    def input(self, data: bytes) -> None:
        if self._with_input:
            self._write(self._recording.input(time.monotonic(), data))

    def resized(self, size: Size) -> None:
        if size != self._size:
            self._size = size
            self._write(self._recording.resized(time.monotonic(), size))

    def end(self, code: int) -> None:
        """The process has ended, or was left: close the file."""
        self._write(self._recording.ended(time.monotonic(), code))
        self.close()

    def close(self) -> None:
        """Write no more.  May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _write(self, line: str) -> None:
        data = line.encode()
        try:
            while data and self._fd >= 0:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            self.close()
            say(f"--record: {self._path} ends here: {error.strerror}")
