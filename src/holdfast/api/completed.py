"""The result of a command that was run to its end, and the errors that are made of it.

``CommandFailed`` is the one family of errors for a command that ran and did not succeed.  Its members are
errors of ``subprocess``, too: what is about time is a ``TimeoutExpired``, all else a ``CalledProcessError``.
None is both, so that ``except`` clauses for the two may stand in any order.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdfast.errors import HoldfastError
from holdfast.model import Kind, Outcome, Usage
from holdfast.value import value

if TYPE_CHECKING:
    from holdfast.sandbox import Denial

T_co = TypeVar("T_co", bound=bytes | str | None, covariant=True)

_LATE = (Kind.TIMEOUT, Kind.IDLE_TIMEOUT)


@value
class Omitted:
    """Bytes of output that a result does not have.

    What was left out of the middle can be read as long as the host keeps it and knows the process, which is
    why that is started with ``keep``: ``handle = await host.attach(completed.identifier)``, then
    ``await handle.read_range("stdout", offset=omitted.stdout_at, length=omitted.stdout)``.
    """

    stdout: int = 0
    """Left out of the middle of ``stdout``, with ``capture=HeadTail(...)``."""
    stderr: int = 0
    """Left out of the middle of ``stderr``, likewise."""
    dropped: int = 0
    """Left out at the end of both outputs together, with ``truncate_output``."""
    stdout_at: int = 0
    """Where in ``stdout`` the bytes begin that were left out of its middle; 0 if there are none."""
    stderr_at: int = 0
    """Where in ``stderr``, likewise."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.stdout + self.stderr + self.dropped


NOTHING_OMITTED = Omitted()


@value
class Completed(Generic[T_co]):
    """The result of a command, however it ended.  Shaped like ``subprocess.CompletedProcess``."""

    args: Sequence[str]
    """The command."""
    returncode: int
    """The exit code, or -n after death by signal n."""
    stdout: T_co
    """None if it was not captured."""
    stderr: T_co
    """None if it was not captured, or is part of ``stdout``."""
    outcome: Outcome
    """How it ended, and why."""
    usage: Usage | None = None
    """What it has used; None if the host does not measure it."""
    denials: tuple[Denial, ...] = ()
    """What its sandbox refused it, as far as the host saw it."""
    timeout: float | None = None
    """The ``timeout`` or ``idle_timeout`` after which it was ended, if that is why."""
    omitted: Omitted = NOTHING_OMITTED
    """How much of its output was left out."""
    identifier: str = ""
    """What its host calls it; ``Host.attach`` finds it by this for as long as it is kept there."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with exit code 0."""
        return self.outcome.kind is Kind.EXIT and self.returncode == 0

    def check_returncode(self) -> None:
        """Raise an error unless the command succeeded.

        One that was ended is no success, also if it made use of its ``grace`` to exit with 0.

        Raises:
            CommandTimedOut: It was ended because of ``timeout`` or ``idle_timeout``.
            CommandExited: It failed, or was ended for another reason.
        """
        if not self.ok:
            raise (CommandTimedOut if self.outcome.kind in _LATE else CommandExited)(self)


class CommandFailed(HoldfastError, subprocess.SubprocessError):
    """A command did not succeed; ``completed`` is its whole result.  Raised as one of its subclasses."""

    # The classes of ``subprocess`` beside this one disagree about these types.
    output: Any
    stdout: Any
    stderr: Any

    def __init__(self, completed: Completed[bytes | str | None]) -> None:
        Exception.__init__(self, completed)  # The classes beside this one take other arguments.
        self.completed = completed
        """The result: output, outcome and usage."""
        self.cmd = completed.args
        self.returncode = completed.returncode
        self.outcome = completed.outcome
        self.output = self.stdout = completed.stdout
        self.stderr = completed.stderr

    def __reduce__(self) -> tuple[type[CommandFailed], tuple[Completed[bytes | str | None]]]:
        return type(self), (self.completed,)

    def __str__(self) -> str:
        return f"Command {self.cmd!r} failed"


class CommandExited(CommandFailed, subprocess.CalledProcessError):
    """A command failed, by itself or because it was ended for another reason than time."""

    def __str__(self) -> str:
        outcome = self.outcome
        if self.returncode:
            why = subprocess.CalledProcessError.__str__(self)
        else:
            why = f"Command {self.cmd!r} was ended: {outcome.kind.value}."
        return why if outcome.detail is None else f"{why[:-1]} ({outcome.detail})."


class TimedOut(HoldfastError, subprocess.TimeoutExpired):
    """Something took too long: a command, which was ended, or a wait for a process, which goes on."""

    def __init__(
        self,
        cmd: Sequence[str],
        timeout: float,
        output: bytes | str | None = None,
        stderr: bytes | str | None = None,
    ) -> None:
        subprocess.TimeoutExpired.__init__(self, cmd, timeout, output, stderr)

    def __reduce__(self) -> tuple[type[HoldfastError], tuple[object, ...]]:
        return TimedOut, (self.cmd, self.timeout, self.output, self.stderr)

    def __str__(self) -> str:
        return subprocess.TimeoutExpired.__str__(self)


class CommandTimedOut(CommandFailed, TimedOut):
    """A command took too long, or was idle for too long, and was ended."""

    def __init__(self, completed: Completed[bytes | str | None]) -> None:
        CommandFailed.__init__(self, completed)
        self.timeout = completed.timeout or 0.0
        """Seconds that it had."""

    @property
    def idle(self) -> bool:
        """Whether it was ended because of ``idle_timeout``, and not of ``timeout``."""
        return self.outcome.kind is Kind.IDLE_TIMEOUT

    def __str__(self) -> str:
        time = "1 second" if self.timeout == 1 else f"{self.timeout:g} seconds"
        return f"Command {self.cmd!r} {'was idle for' if self.idle else 'timed out after'} {time}"
