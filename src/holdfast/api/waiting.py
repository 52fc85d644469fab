"""Waiting until a process has brought something about, and the errors if it has not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.conditions import Condition, Waited, WaitEnd, prepared
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.model import Exit, Outcome
    from holdfast.place import NamedProcess

_FOR_EVER = 365 * 24 * 3600.0


class WaitTimedOut(HoldfastError, TimeoutError):
    """What was waited for was not so in time.  The process runs on."""

    def __init__(self, name: str, condition: Condition, timeout: float, trouble: str | None = None) -> None:
        super().__init__(name, condition, timeout, trouble)
        self.name = name
        self.condition = condition
        """What was waited for."""
        self.timeout = timeout
        self.trouble = trouble
        """Why the last attempt was none."""

    def __str__(self) -> str:
        why = "" if self.trouble is None else f": {self.trouble}"
        unit = "second" if self.timeout == 1 else "seconds"
        return f"{self.condition} of process {self.name!r} was not there after {self.timeout:g} {unit}{why}"


class ProcessEnded(HoldfastError):
    """The process has ended before what was waited for was so."""

    def __init__(self, name: str, condition: Condition, end: Exit, trouble: str | None = None) -> None:
        super().__init__(name, condition, end, trouble)
        self.name = name
        self.condition = condition
        """What was waited for."""
        self.exit = end
        self.trouble = trouble
        """Why the last attempt was none."""

    @property
    def outcome(self) -> Outcome:
        """How the process has ended, and why."""
        return self.exit.outcome

    def __str__(self) -> str:
        detail = "" if self.outcome.detail is None else f" ({self.outcome.detail})"
        how = f"process {self.name!r} has ended with exit code {self.exit.code}{detail}"
        return f"{how} before {self.condition} was there; its output may say why"


def condition_of(
    *, port: int | None, url: str | None, output: str | None, file: str | os.PathLike[str] | None
) -> Condition:
    """The condition that was asked for.

    Raises:
        BadRequest: It makes no sense, or there is more than one.
    """
    condition = Condition(port, url, output, None if file is None else os.fspath(file))
    prepared(condition)
    return condition


async def wait_for(process: NamedProcess, condition: Condition, timeout: float | None) -> Waited:  # noqa: ASYNC109
    """Wait; see ``Handle.wait_for``."""
    found = await process.wait_for(condition, _FOR_EVER if timeout is None else timeout)
    if found.end is WaitEnd.MET:
        return found
    if found.end is WaitEnd.EXITED and found.exit is not None:
        raise ProcessEnded(process.name, condition, found.exit, found.trouble)
    raise WaitTimedOut(process.name, condition, timeout or 0.0, found.trouble)
