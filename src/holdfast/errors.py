"""Every error that crosses a layer, as one tree (pure).

The first question an error answers is whose move it is: a ``Refused`` is the
caller's to fix, a ``SpawnFailed`` the system's, a ``LimitReached`` names one of
our own bounds.  Facts are attributes; the sentence is made in ``__str__``.
Codes and wire texts belong to the dialects, which translate with ``explain``.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from . import old_names
from .faults import PYTHONS_OWN, _SystemFault
from .faults import Fault as Fault
from .faults import HeaderFault as HeaderFault
from .faults import HttpFault as HttpFault
from .faults import LinkFault as LinkFault
from .faults import ProgramSearch as ProgramSearch
from .faults import UserFault as UserFault
from .wording import counted


class HoldfastError(Exception):
    """The base of all errors that holdfast raises."""

    bound = ""
    """The limit of ours that stood against it, as ``--limit`` calls it; empty if none did."""
    _words = ""
    """The sentence, with the facts in braces."""

    def __str__(self) -> str:
        return self._words.format_map(vars(self)) if self._words else super().__str__()


class Refused(HoldfastError):
    """Understood and declined; nothing changed."""


class _Reasoned(HoldfastError):
    """An error whose only fact is its reason, in words."""

    _words = "{reason}"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class BadRequest(Refused):
    """A request that is ill-formed or out of range."""

    def __init__(self, reason: str, *, field: str | None = None) -> None:
        super().__init__(reason, field)
        self.reason = reason
        self.field = field

    def __str__(self) -> str:
        return self.reason


class Unsupported(Refused):
    """A request for something this server does not do; never silently ignored."""

    _words = "{feature} is not supported by this server"

    def __init__(self, feature: str) -> None:
        super().__init__(feature)
        self.feature = feature


class SandboxUnavailable(_Reasoned, Refused):
    """A sandbox that cannot be kept on this host; nothing is ever run without the one it was to run in."""

    _words = "the sandbox cannot be kept on this host: {reason}"


class UserRefused(Refused):
    """Nothing can be started as that user; nothing is ever started as another one instead."""

    _words = "cannot start anything as user {user!r}: {reason}"

    def __init__(self, user: str, fault: UserFault, reason: str) -> None:
        super().__init__(user, fault, reason)
        self.user = user
        """As the request has it."""
        self.fault = fault
        self.reason = reason


class OutOfTurn(_Reasoned, Refused):
    """A request the state of the conversation does not allow yet, or any more."""


class RequestCancelled(Refused):
    """A request that its own client has cancelled.  What it had begun was undone, as far as it can be."""

    _words = "the request was cancelled"


class Forbidden(Refused):
    """Something that the caller's token does not allow."""

    _words = "not allowed by the token: {what} {subject!r}"

    def __init__(self, what: str, subject: str) -> None:
        super().__init__(what, subject)
        self.what = what
        """``method``, ``directory``, ``path``, ``user`` or ``variable``."""
        self.subject = subject


class ConfigBroken(_Reasoned):
    """A file of configuration on the host cannot be understood, so nothing of it is told."""


class AuditFailed(_Reasoned):
    """The audit log cannot be written, so nothing was started."""

    _words = "the audit log cannot be written: {reason}"


class UnknownMethod(Refused):
    """No method goes by this name."""

    _words = "unknown method {method!r}"

    def __init__(self, method: str) -> None:
        super().__init__(method)
        self.method = method


class _Named(Refused):
    """A refusal about one process or file, by the name its client gave it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class UnknownProcess(_Named):
    """No process goes by this name in the caller's scope."""

    _words = "no process named {name!r}"


class NameTaken(_Named):
    """The name belongs to a process that is starting or running, or the identifier to any that is known."""

    _words = "a process named {name!r} exists already"


class NameAmbiguous(_Named):
    """Several processes have an identifier that begins like this, and none has it as its name."""

    _words = "the identifiers of several processes begin with {name!r}"


class StillRunning(_Named):
    """The process has not ended."""

    _words = "process {name!r} still runs"


class StillStarting(_Named):
    """The process has been asked for and does not run yet."""

    _words = "process {name!r} is starting"


class StartCancelled(_Named):
    """The process was terminated before it ran."""

    _words = "the start of process {name!r} was cancelled"


class NoTerminal(Refused):
    """The process has pipes, and pipes have no size."""

    _words = "the process has no terminal"


class _OfSession(Refused):
    """A refusal about one session, by its identifier."""

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self.session = session


class SessionUnknown(_OfSession):
    """No session goes by this identifier: it never existed, or it expired."""

    _words = "no session {session!r}"


class SessionBusy(_OfSession):
    """The session is attached to a connection that is alive."""

    _words = "session {session!r} is attached to another connection"


class SpawnFailed(HoldfastError):
    """The system would not start it."""

    _words = "cannot start: {fault.value} {subject!r}: {reason}"

    def __init__(
        self,
        fault: Fault,
        subject: str,
        reason: str,
        *,
        number: int | None = None,
        terminal: bool = False,
        search: ProgramSearch | None = None,
    ) -> None:
        super().__init__(fault, subject, reason, number)
        self.fault = fault
        self.subject = subject
        """The program, directory or argument at fault, as the caller gave it."""
        self.reason = reason
        self.number = number
        """The system's error number, when the system was asked."""
        self.terminal = terminal
        """Whether it was to run in a terminal."""
        self.search = search
        """Where the program was looked for, when that is what failed."""


class HostUnfit(_Reasoned):
    """The host lacks what no process can be run without."""

    _words = "this host cannot run processes: {reason}"


class StdinFailed(HoldfastError):
    """Bytes for stdin were refused because the process is being terminated."""

    _words = "the process is being terminated and takes no input"


class SignalFailed(_Reasoned):
    """The system would not deliver a signal."""

    _words = "signal not delivered: {reason}"


class _OfFile(HoldfastError, _SystemFault):
    """An error about a file, which is an ``OSError``, so that programs written for ``open`` can handle it."""

    def __reduce__(self) -> tuple[object, ...]:
        # By the facts that were given; ``OSError`` would give its members.
        kind = FileFailed if isinstance(self, FileFailed) else type(self)
        return kind, self.args, {"filename": self.filename}


class FileFailed(_OfFile):
    """The system would not do something with a file.

    It is a ``FileNotFoundError``, ``PermissionError`` or whatever else Python has for the number, too.
    """

    def __new__(cls, number: int, path: str = "") -> FileFailed:
        return super().__new__(_FAILURES.get(number, cls))

    def __init__(self, number: int, path: str = "") -> None:
        super().__init__()
        self._know(number, *((number, path) if path else (number,)))
        self.filename = path or None
        self.path = path
        """What it is about, if that is not the path of the request; else empty."""

    def __str__(self) -> str:
        words = f"{os.strerror(self.number)} (os error {self.number})"
        return f"{words}: {self.filename!r}" if self.filename else words


_FAILURES = {
    number: type(kind.__name__, (FileFailed, kind), {"__module__": __name__, "__doc__": kind.__doc__})
    for number, kind in PYTHONS_OWN.items()
}


class FileRefused(_OfFile, _Reasoned, Refused):
    """The request does not fit what is at the path, such as reading a directory as a file."""

    def __init__(self, reason: str, *, bound: str = "") -> None:
        super().__init__(reason)
        self.bound = bound
        self._know(errno.EINVAL, reason)


class FileUnsupported(_OfFile, _Reasoned):
    """A combination of options that files do not support."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self._know(errno.EOPNOTSUPP, reason)


class TooManyEntries(_OfFile):
    """A directory has more entries than one answer may list."""

    _words = "a directory with {count} entries, more than {limit}"

    bound = "file.entries"

    def __init__(self, count: int, limit: int) -> None:
        super().__init__()
        self.count = count
        self.limit = limit
        self._know(errno.EOVERFLOW, count, limit)


class UnknownHandle(_Named):
    """No open file goes by this name on the caller's connection."""

    _words = "no file handle named {name!r}"


class HandleTaken(_Named):
    """The name belongs to a file that is open, or is being opened."""

    _words = "a file handle named {name!r} exists already"


class BadUrl(BadRequest):
    """Text that is no URL, or names no place."""


class BadHeader(Refused):
    """A header cannot be sent.  The error does not repeat its value, which may be a secret."""

    def __init__(self, name: str, fault: HeaderFault, variable: str | None = None) -> None:
        super().__init__(name, fault, variable)
        self.name = name
        self.fault = fault
        self.variable = variable

    def __str__(self) -> str:
        source = "" if self.variable is None else f" from variable {self.variable!r}"
        return f"header {self.name!r}{source}: {self.fault.value}"


class HttpFailed(HoldfastError):
    """An HTTP request was made, or tried, and came to no good end."""

    _words = "HTTP request failed: {subject}: {reason}"

    def __init__(self, fault: HttpFault, subject: str, reason: str) -> None:
        super().__init__(fault, subject, reason)
        self.fault = fault
        self.bound = "http.redirects" if fault is HttpFault.REDIRECTS else ""
        self.subject = subject
        """The URL, without what is secret in it; for a scheme that one."""
        self.reason = reason


class LimitReached(HoldfastError):
    """A bound of ours, named; the same request may work later."""

    _words = "limit reached: {limit} ({value})"

    def __init__(self, limit: str, value: float, *, name: str = "") -> None:
        super().__init__(limit, value)
        self.limit = limit
        self.value = value
        self.name = name
        """As ``--limit`` calls it, or a token; empty if nobody can set it."""
        self.bound = name or limit


class LinkLost(_Reasoned):
    """A server is gone, or cannot be reached, for good; what runs there may still run."""

    _words = "the connection is lost: {reason}"

    def __init__(self, reason: str, *, fault: LinkFault = LinkFault.BROKEN) -> None:
        super().__init__(reason)
        self.fault = fault

    def copy(self) -> LinkLost:
        """Return another error that says the same: one that is raised twice collects both tracebacks."""
        return LinkLost(self.reason, fault=self.fault)


class OutcomeUnknown(LinkLost):
    """A request was cut off from its answer: it was done, or it was not, and must not be repeated blindly."""

    _words = "the connection broke before {what} was answered; it may have been done"

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class ProcessLost(LinkLost):
    """The server has forgotten the session of a process; how the process ended is not known."""

    _words = "process {name!r} is lost: {reason}"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


class OutputGap(HoldfastError):
    """Some output was dropped before it was read, because there was more than is kept."""

    def __init__(self, first: int, last: int, size: int | None) -> None:
        super().__init__(first, last, size)
        self.first = first
        """The number of the first lost event; ``last`` is that of the last one."""
        self.last = last
        self.size = size
        """The number of lost bytes; None if it is not known."""

    def __str__(self) -> str:
        much = "an unknown number of bytes" if self.size is None else counted(self.size, "byte")
        verb = "is" if self.size == 1 else "are"
        return f"{much} of output {verb} no longer kept (numbers {self.first} to {self.last})"


class Unexpected(HoldfastError):
    """A server answered with an error that has no class here."""

    _words = "{message} ({code})"

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"Search": "ProgramSearch"})
