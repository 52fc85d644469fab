"""The server's log on standard error: as text or as JSON, and never in the way of the server."""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

_AT_ONCE = select.PIPE_BUF
"""Bytes that a pipe takes without making us wait, once it says that it takes any."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""What every record has; everything else was put there to be told."""

_QUIET = 60.0
"""Seconds in which the same complaint is not repeated."""


class JsonLines(logging.Formatter):
    """One object per record; ``extra`` becomes members of it."""

    def format(self, record: logging.LogRecord) -> str:
        # Here: a log as text, which is the rule, is set up sooner without them.
        import json
        from datetime import UTC, datetime

        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "timestamp": when.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for key, value in vars(record).items():
            if key not in _STANDARD:
                line.setdefault(key, value)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line, default=str, separators=(",", ":"))


class NonBlockingHandler(logging.Handler):
    """Writes lines to a descriptor, as far as that takes them now.

    Nobody may be reading, or the disk be full: then lines are lost, and the next
    one that gets through is preceded by how many.
    """

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._lost = 0
        self._torn = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
            if self._lost:
                notice = logging.makeLogRecord(
                    {
                        "name": __name__,
                        "levelno": logging.WARNING,
                        "levelname": "WARNING",
                        "msg": "%d lines of this log were lost",
                        "args": (self._lost,),
                    }
                )
                line = f"{self.format(notice)}\n{line}"
        except Exception:  # noqa: BLE001  (a record that cannot be shown is no reason to fail)
            line = f"{record.levelname} {record.name}: {record.msg!r} (with arguments that do not fit)"
        if self._write(line):
            self._lost = 0
        else:
            self._lost += 1

    def _write(self, line: str) -> bool:
        # A line that was cut off is ended first.
        data = (b"\n" if self._torn else b"") + line.encode("utf-8", "backslashreplace") + b"\n"
        left = memoryview(data)
        while left:
            try:
                if not self._takes_some():
                    break
                left = left[os.write(self._fd, left[:_AT_ONCE]) :]
            except OSError:
                break
        if len(left) < len(data):
            self._torn = bool(left)
        return not left

    def _takes_some(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return any(events & select.POLLOUT for _, events in poll.poll(0))


def set_up(level: str, form: str, *, fd: int = 2) -> None:
    """Log what is at least of this level: ours, and of libraries only what is worth a warning.

    At lower levels these would tell URLs and headers, in which there may be secrets.
    """
    handler = NonBlockingHandler(fd)
    text = logging.Formatter("%(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else text)
    root = logging.getLogger()
    for older in root.handlers[:]:
        root.removeHandler(older)
    root.addHandler(handler)
    root.setLevel(max(LEVELS[level], logging.WARNING))
    logging.getLogger("holdfast").setLevel(LEVELS[level])


class Sparse(logging.Filter):
    """Lets the same complaint through once in a while: a collector may be away for days."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        if now - self._said.get(str(record.msg), -_QUIET) < _QUIET:
            return False
        self._said[str(record.msg)] = now
        return True
