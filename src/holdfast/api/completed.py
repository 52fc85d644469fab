"""The result of a command that was run to its end, and the errors that are made of it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.errors import HoldfastError
from holdfast.model import Outcome, Usage
from holdfast.value import value

if TYPE_CHECKING:
    from holdfast.sandbox import Denial

T_co = TypeVar("T_co", bound=bytes | str | None, covariant=True)


class CommandFailed(HoldfastError, subprocess.CalledProcessError):
    """A command with ``check`` failed; ``returncode``, ``stdout`` and ``stderr`` are those of the command."""

    def __init__(self, completed: Completed[bytes | str | None]) -> None:
        subprocess.CalledProcessError.__init__(
            self, completed.returncode, completed.args, completed.stdout, completed.stderr
        )
        self.outcome = completed.outcome

    def __reduce__(self) -> tuple[type[CommandFailed], tuple[Completed[bytes | str | None]]]:
        made = Completed(list(self.cmd), self.returncode, self.stdout, self.stderr, self.outcome)
        return CommandFailed, (made,)

    def __str__(self) -> str:
        why = subprocess.CalledProcessError.__str__(self)
        return why if self.outcome.detail is None else f"{why[:-1]} ({self.outcome.detail})."


class TimedOut(HoldfastError, subprocess.TimeoutExpired):
    """A command took too long and was ended; ``stdout`` and ``stderr`` have its output up to then."""

    def __init__(
        self,
        cmd: Sequence[str],
        timeout: float,
        output: bytes | str | None = None,
        stderr: bytes | str | None = None,
    ) -> None:
        subprocess.TimeoutExpired.__init__(self, cmd, timeout, output, stderr)

    def __reduce__(self) -> tuple[type[TimedOut], tuple[object, ...]]:
        return TimedOut, (self.cmd, self.timeout, self.output, self.stderr)

    def __str__(self) -> str:
        return subprocess.TimeoutExpired.__str__(self)


@value
class Completed(Generic[T_co]):
    """The result of a command.  Shaped like ``subprocess.CompletedProcess``."""

    args: Sequence[str]
    returncode: int
    """The exit code, or -n after death by signal n."""
    stdout: T_co
    """None if it was not captured."""
    stderr: T_co
    """None if it was not captured, or is part of ``stdout``."""
    outcome: Outcome
    """How it ended, and why."""
    usage: Usage | None = None
    denials: tuple[Denial, ...] = ()
    """What its sandbox refused it, as far as the host saw it."""

    def check_returncode(self) -> None:
        """Raise an error if the command failed.

        Raises:
            CommandFailed: The return code is not 0.
        """
        if self.returncode:
            raise CommandFailed(self)
