"""The audit log: a line of JSON for everything that a client does, only ever appended to.

What must hold:

1. A process that is started has its line before it runs.  If that line cannot be
   written there is no process.
2. A line is written as a whole or, if the disk is full, not at all: what got half of it
   is cut off again, or where that cannot be done, as in a pipe, completed before anything else.
3. What happened anyway and cannot be written, such as an end, is kept and written later;
   if there is too much of it, it is counted, and the count is written.
4. Values of variables are never written, and arguments only after redaction.
5. Clients do not decide how long a line gets.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from time import time
from typing import Any

import msgspec

from holdfast.errors import AuditFailed
from holdfast.model import Exit, Spec
from holdfast.principal import Principal

from .redact import Redaction

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode

_WAITING_MOST = 1024
"""Lines that are kept while the disk is full."""

_MOST_NAMES = 256
"""Names of variables in a line."""

_MODE = 0o600


class AuditLog:
    """Implements ``audit.Audit``."""

    def __init__(
        self,
        path: str,
        redaction: Redaction,
        *,
        failed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time,
    ) -> None:
        """
        Args:
            failed: Called for each line that could not be written when its time was.

        Raises:
            OSError: The file cannot be opened.
        """
        self._path = path
        self._redaction = redaction
        self._failed = failed
        self._clock = clock
        self._fd = _open(path)
        self._waiting: deque[bytes] = deque()
        self._torn = b""
        """What is missing of the last line."""
        self._broken = False
        self._lost = 0
        self._numbers = count(1)
        self._run = os.urandom(6).hex()
        """Tells two runs of the server apart."""

    # Who comes and goes.

    def refused(self, peer: str, reason: str) -> None:
        self._note("refused", {"peer": peer, "reason": reason})

    def connected(self, principal: Principal, peer: str) -> None:
        self._note("connected", _who(principal, peer))

    def gone(self, principal: Principal, peer: str) -> None:
        self._note("disconnected", _who(principal, peer))

    def forbidden(self, principal: Principal, peer: str, what: str, subject: str) -> None:
        self._note("forbidden", {**_who(principal, peer), what: self.shown(subject)})

    # Processes.

    def start(self, principal: Principal, peer: str, spec: Spec) -> AuditEntry:
        ref = f"{self._run}-{next(self._numbers)}"
        facts = {
            "ref": ref,
            **_who(principal, peer),
            "name": self.shown(spec.name),
            "argv": [_shown(each) for each in self._redaction.arguments(spec.argv)],
            "cwd": self.shown(spec.cwd),
            "env": self._variables(spec),
            "inherit": None if spec.env_policy is None else spec.env_policy.inherit.value,
            "tty": spec.terminal is not None,
            "sandboxed": spec.sandbox is not None,
        }
        reason = self._try(self._line("start", facts))
        if reason is None and self._torn:
            reason = "only a part of the line could be written"
            self._wait(self._line("failed", {"ref": ref, "reason": reason}))
        if reason is not None:
            raise AuditFailed(reason)
        return AuditEntry(self, ref)

    def resume(self, ref: str, pid: int) -> AuditEntry:
        return AuditEntry(self, ref, pid)

    def _variables(self, spec: Spec) -> list[str]:
        names = {name for name, value in spec.env.items() if value is not None}
        if spec.env_policy is not None:
            names |= {name for name, _ in spec.env_policy.set}
        shown = [self.shown(name) for name in sorted(names)[:_MOST_NAMES]]
        return shown if len(names) <= _MOST_NAMES else [*shown, f"... {len(names) - _MOST_NAMES} more"]

    def shown(self, text: str) -> str:
        """A text of a client, as it may be written down."""
        return _shown(self._redaction.text(text))

    def note(self, event: str, facts: dict[str, Any]) -> None:
        """Write a line on behalf of an entry; see ``_note``."""
        self._note(event, facts)

    # Writing.

    def _note(self, event: str, facts: dict[str, Any]) -> None:
        """Write down what has happened already, now or when there is room."""
        line = self._line(event, facts)
        if self._try(line) is not None:
            self._wait(line)

    def _try(self, line: bytes) -> str | None:
        """Write a line behind those that wait; give the reason if that cannot be done."""
        try:
            self._write(line)
        except OSError as error:
            reason = error.strerror or str(error)
            self._failed()
            if not self._broken:  # Once, until it works again.
                _log.error("the audit log cannot be written: %s", reason)
            self._broken = True
            return reason
        self._broken = False
        return None

    def _wait(self, line: bytes) -> None:
        if len(self._waiting) < _WAITING_MOST:
            self._waiting.append(line)
        else:
            self._lost += 1

    def _line(self, event: str, facts: dict[str, Any]) -> bytes:
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="microseconds")
        return _encode({"time": at, "event": event, **facts}) + b"\n"

    def _write(self, line: bytes) -> None:
        while self._waiting:
            self._append(self._waiting[0])
            self._waiting.popleft()
        if self._lost:
            self._append(self._line("lost", {"lines": self._lost}))
            self._lost = 0
        self._append(line)

    def _append(self, line: bytes) -> None:
        """Write a line as a whole, or raise and leave nothing of it behind, if that can be."""
        while self._torn:
            self._torn = self._torn[os.write(self._fd, self._torn) :]
        written = os.write(self._fd, line)
        if written == len(line):
            return
        try:
            while written < len(line):
                written += os.write(self._fd, line[written:])
        except OSError:
            try:
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
            except OSError:
                self._torn = line[written:]
                return
            raise

    def reopen(self) -> None:
        """Continue in a new file, after the old one was moved away."""
        try:
            fd = _open(self._path)
        except OSError as error:
            _log.error("the audit log cannot be opened again: %s", error.strerror or error)
            return
        os.close(self._fd)
        self._fd = fd
        self._torn = b""

    def close(self) -> None:
        """Write what is left, as far as that is possible."""
        if self._waiting or self._lost or self._torn:
            self._note("stopped", {})
        if self._waiting:
            _log.error("lines of the audit log that were never written: %d", len(self._waiting) + self._lost)
        os.close(self._fd)


class AuditEntry:
    """One process in the log.  Implements ``telemetry.AuditRecord``."""

    __slots__ = ("_log", "_pid", "ref")

    def __init__(self, log: AuditLog, ref: str, pid: int = 0) -> None:
        self._log = log
        self.ref = ref
        self._pid = pid

    def running(self, pid: int) -> None:
        self._pid = pid
        self._log.note("running", {"ref": self.ref, "pid": pid})

    def failed(self, reason: str) -> None:
        self._log.note("failed", {"ref": self.ref, "reason": self._log.shown(reason)})

    def ended(self, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        outcome, usage = exit.outcome, exit.usage
        facts: dict[str, Any] = {
            "ref": self.ref,
            "pid": self._pid,
            "exitCode": exit.code,
            "outcome": outcome.kind.value,
            "signal": outcome.signal,
            "by": outcome.by,
        }
        if usage is not None:
            facts["userMs"] = usage.user_us // 1000
            facts["systemMs"] = usage.system_us // 1000
            facts["maxRssBytes"] = usage.peak_bytes
        self._log.note("end", facts)


def _open(path: str) -> int:
    # Nobody may hold us up: not a pipe that has no reader, and not one that has a slow one.
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, _MODE)


def _who(principal: Principal, peer: str) -> dict[str, Any]:
    issuer = {"issuer": _shown(principal.issuer)} if principal.issuer else {}
    return {"principal": _shown(principal.name), **issuer, "peer": peer}


def _shown(text: str) -> str:
    """What stands for bytes that are not UTF-8 cannot be told in JSON."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
