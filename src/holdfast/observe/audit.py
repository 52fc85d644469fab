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
import re
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from time import time
from typing import Any

import msgspec

from holdfast.errors import AuditFailed
from holdfast.model import Exit, Spec
from holdfast.principal import Principal
from holdfast.wildcards import STAR, Wildcards

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

    def restarted(self, restarts: int) -> None:
        """Take note that the server before was killed or has crashed, ``restarts`` of them by now.

        Connections are gone without a line of their own; processes go on, and so do their references.
        """
        self._note("restarted", {"restarts": restarts})

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
            "user": None if spec.user is None else self.shown(spec.user.name),
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


# What must not be written down.

HIDDEN = "[redacted]"

SECRET_NAMES = (
    "*key*",
    "*secret*",
    "*token*",
    "*passw*",
    "*passphrase*",
    "*credential*",
    "*auth*",
    "*cookie*",
    "*jwt*",
)
"""Names whose values are secret: of variables, options and headers, in whatever case."""

_LONGEST = 1024
"""Characters of one argument that are written down."""

_MOST = 64
"""Arguments of one command that are written down."""

_USER_INFO = re.compile(r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]*+://)[^/?#\s]*@", re.IGNORECASE)
"""What stands before the host in a URL: a name and a password."""

_NAME = re.compile(r"""(?<![\w.-])([\w.-]++)(\\*+["']?+\s*+[=:]\s*+)""")
"""``TOKEN=``, ``--token=``, ``Authorization:``, ``"password":``, also with its quotes escaped."""

_VALUE = re.compile(
    r"""
    (\\++)(["']) .*? (?:(?<!\\)\1\2|\Z)                         # \"x\": a text in a text
    | (?: "(?:[^"\\]|\\.)*+(?:"|\\?\Z) | '[^']*+(?:'|\Z) )      # "x" or 'x', and what is joined to it
      (?: "(?:[^"\\]|\\.)*+(?:"|\\?\Z) | '[^']*+(?:'|\Z) | [^\s"',;&|)}\]] )*+
    | (?: (?:bearer|basic|digest|token|negotiate|apikey) \s++ )?+
      (?: \\. | "(?:[^"\\]|\\.)*+(?:"|\\?\Z) | '[^']*+(?:'|\Z) | [^\s"'\\] | \\\Z )*+
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""How far a value goes in the middle of a text."""

_CODE = re.compile(r"-[a-z]*c")
"""An option whose value is a program: more than a name and a value, though it may begin like that."""

_OPTION = re.compile(r"--?([\w.-]+)")
"""An option whose value may be the next argument."""


class Redaction:
    """The rules of one log: which parts of arguments are secrets, and are not written down.

    Rules of thumb by nature: a program may be given a secret in a way that nobody can
    tell, such as ``-pSECRET`` or ``curl -u name:SECRET``.  Values of variables are never
    written, so that is the way to hand one over.

    Where it is not clear how far a value goes, too much is hidden rather than too little.
    Every text is gone through once, however it is made up: clients choose them.
    """

    def __init__(self, more: Sequence[str] = ()) -> None:
        """``more`` are further patterns of names: ``*`` is any run of letters, digits, dots and dashes."""
        every = [pattern.lower() for pattern in (*SECRET_NAMES, *more)]
        # Most ask for a word anywhere: those are found without looking at each character.
        self._words = re.compile("|".join(re.escape(each[1:-1]) for each in every if _is_word(each)))
        self._patterns = Wildcards([each for each in every if not _is_word(each)], special=STAR)

    def arguments(self, argv: Sequence[str]) -> list[str]:
        """The arguments of a command, as they may be written down."""
        shown: list[str] = []
        follows = code = False
        for argument in argv[:_MOST]:
            shown.append(HIDDEN if follows else self._text(argument, code=code))
            code = _CODE.fullmatch(argument) is not None
            option = _OPTION.fullmatch(argument[:_LONGEST])
            follows = option is not None and self._is_secret(option[1])
        if len(argv) > _MOST:
            shown.append(f"... {len(argv) - _MOST} more")
        return shown

    def text(self, text: str) -> str:
        """A text, as it may be written down."""
        return self._text(text, code=False)

    def _text(self, text: str, *, code: bool) -> str:
        # Cut first: the rest need not be looked through.
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        return _USER_INFO.sub(rf"\1{HIDDEN}@", self._without_values(short, code=code))

    def _without_values(self, text: str, *, code: bool) -> str:
        parts: list[str] = []
        done = at = 0
        while (found := _NAME.search(text, at)) is not None:
            at = found.end()
            if self._is_secret(found[1].lstrip("-")):
                parts += (text[done:at], HIDDEN)
                done = at = _end_of_value(text, found, code=code)
        return "".join((*parts, text[done:]))

    def _is_secret(self, name: str) -> bool:
        lower = name.lower()
        return self._words.search(lower) is not None or self._patterns.matches(lower)


def _end_of_value(text: str, name: re.Match[str], *, code: bool) -> int:
    """Where the value ends that stands behind a name."""
    begin, end = name.span()
    quote = text[begin - 1 : begin]
    if not begin and not code and not set(name[2]) & {'"', "'"}:
        return len(text)  # Nothing but the name and its value, blanks included.
    if quote in ('"', "'") and quote not in name[2]:
        # Both of them are in quotes.
        close = text.find(quote, end)
        return len(text) if close < 0 else close
    found = _VALUE.match(text, end)
    assert found is not None  # It may be empty.
    return found.end()


def _is_word(pattern: str) -> bool:
    return pattern.count("*") == 2 and pattern.startswith("*") and pattern.endswith("*")
