"""Every error that crosses a layer, as one tree (pure).

The first question an error answers is whose move it is: a ``Refused`` is the
caller's to fix, a ``SpawnFailed`` the system's, a ``LimitReached`` names one of
our own bounds.  Facts are attributes; the sentence is made in ``__str__``.
Codes and wire texts belong to the dialects, which translate with ``explain``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class HoldfastError(Exception):
    """Anything holdfast itself reports."""


class Refused(HoldfastError):
    """Understood and declined; nothing changed."""


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

    def __init__(self, feature: str) -> None:
        super().__init__(feature)
        self.feature = feature

    def __str__(self) -> str:
        return f"{self.feature} is not supported by this server"


class OutOfTurn(Refused):
    """A request the state of the conversation does not allow yet, or any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class _Named(Refused):
    """A refusal about one process, by the name its client gave it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class UnknownProcess(_Named):
    """No process goes by this name in the caller's scope."""

    def __str__(self) -> str:
        return f"no process named {self.name!r}"


class NameTaken(_Named):
    """The name belongs to a process that is starting, running or still retained."""

    def __str__(self) -> str:
        return f"a process named {self.name!r} exists already"


class StillStarting(_Named):
    """The process has been asked for and does not run yet."""

    def __str__(self) -> str:
        return f"process {self.name!r} is starting"


class StartCancelled(_Named):
    """The process was terminated before it ran."""

    def __str__(self) -> str:
        return f"the start of process {self.name!r} was cancelled"


class NoTerminal(Refused):
    """The process has pipes, and pipes have no size."""

    def __str__(self) -> str:
        return "the process has no terminal"


class SessionUnknown(Refused):
    """No session goes by this identifier: it never existed, or it expired."""

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self.session = session

    def __str__(self) -> str:
        return f"no session {self.session!r}"


class SessionBusy(Refused):
    """The session is attached to a connection that is alive."""

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self.session = session

    def __str__(self) -> str:
        return f"session {self.session!r} is attached to another connection"


class Fault(Enum):
    """What was wrong with a start, told apart so that a client need not guess."""

    PROGRAM = "program"
    """The program: missing, not executable, not a program."""
    DIRECTORY = "directory"
    """The working directory: missing, not a directory, not permitted."""
    ARGUMENT = "argument"
    """An argument or variable that cannot be handed to any program."""
    SYSTEM = "system"
    """The host: out of processes, memory, descriptors or terminals."""


@dataclass(frozen=True, slots=True)
class Search:
    """A lookup of a program by its bare name."""

    path: str | None
    """The child's PATH; None if it has none."""


class SpawnFailed(HoldfastError):
    """The system would not start it."""

    def __init__(
        self,
        fault: Fault,
        subject: str,
        reason: str,
        *,
        number: int | None = None,
        terminal: bool = False,
        search: Search | None = None,
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

    def __str__(self) -> str:
        return f"cannot start: {self.fault.value} {self.subject!r}: {self.reason}"


class StdinFailed(HoldfastError):
    """Bytes for stdin were refused because the process is being terminated."""

    def __str__(self) -> str:
        return "the process is being terminated and takes no input"


class SignalFailed(HoldfastError):
    """The system would not deliver a signal."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"signal not delivered: {self.reason}"


class LimitReached(HoldfastError):
    """A bound of ours, named; the same request may work later."""

    def __init__(self, limit: str, value: int) -> None:
        super().__init__(limit, value)
        self.limit = limit
        self.value = value

    def __str__(self) -> str:
        return f"limit reached: {self.limit} ({self.value})"
