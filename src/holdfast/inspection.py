"""What a process does at this moment, and who can be asked for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from .value import value

if TYPE_CHECKING:
    from .conditions import Condition, Waited


@value
class Inspection:
    """What a process does at this moment, as far as the kernel tells."""

    waiting_for_input: bool | None
    """Whether a process of its tree is blocked in a call that input at our end would wake.

    The input is what is written to its stdin, or typed at its terminal.  None if the kernel does not tell.
    """
    echo: bool | None = None
    """Whether its terminal shows what is typed; a program that asks for a password turns that off.

    None if it has no terminal.
    """
    canonical: bool | None = None
    """Whether its terminal hands over whole lines; programs with an editor of their own turn that off.

    None if it has no terminal.
    """


class InspectedHere(Protocol):
    """A process of this host that can be looked at."""

    def look_at_input(self, tell: Callable[[Inspection], None]) -> None:
        """Find out, in a thread and within a second, whether anybody of its tree waits for input.

        ``tell`` is called once, also at once.  It may come after ``forget``.
        """


class Inspected(Protocol):
    """A process that can be looked at, on this host or another."""

    async def inspect(self) -> Inspection:
        """What it does at this moment.

        Raises:
            Unsupported: The server has no such method.
        """

    async def wait_for(self, condition: Condition, seconds: float) -> Waited:
        """Wait until something is so, the process has ended, or the time is over.

        Raises:
            BadRequest: The condition makes no sense.
            Unsupported: The server has no such method.
        """
