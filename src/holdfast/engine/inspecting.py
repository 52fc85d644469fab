"""What a look at the tree of a process shows: who holds its output, and who waits for its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.inspection import Inspection

from .output import Outputs
from .stdin import Stdin
from .tree import Tree

if TYPE_CHECKING:
    from holdfast.host.input import InputEnd

_AGAIN = 3
"""How often a look is repeated if the terminal was changed while it was made."""

NOT_WAITING = Inspection(waiting_for_input=False)
"""What is told of a process that nobody can give input any more."""


class _Looked(Protocol):
    """A process as this module sees it."""

    @property
    def outputs(self) -> Outputs: ...

    @property
    def tree(self) -> Tree: ...

    @property
    def _stdin(self) -> Stdin | None: ...

    @property
    def has_terminal(self) -> bool: ...


class TreeLooks:
    """Mixed into a process: what can be asked of its tree."""

    __slots__ = ()

    def look_at_holders(self: _Looked, tell: Callable[[bool], None]) -> None:
        self.tree.pulse(self.outputs, tell)

    def look_at_input(self: _Looked, tell: Callable[[Inspection], None]) -> None:
        _look(self, tell, _AGAIN)


def _look(process: _Looked, tell: Callable[[Inspection], None], again: int) -> None:
    end = _end(process)
    if end is None or process.tree.gone:
        tell(NOT_WAITING)
    elif process._stdin is not None and process._stdin.is_behind:
        tell(end.told(waiting=False))  # There is input that it has not taken.
    else:

        def seen(waiting: bool | None) -> None:  # noqa: FBT001  (the result of a look)
            if again and _end(process) != end:
                # It was changed meanwhile, as a shell does before it asks: the two facts must be of one time.
                _look(process, tell, again - 1)
            else:
                tell(end.told(waiting))

        process.tree.input(end, seen)


def _end(process: _Looked) -> InputEnd | None:
    """Return what its tree reads its input from; None once that is closed at our side."""
    from holdfast.host.input import pipe_end, terminal_end  # Most servers are never asked.

    try:
        if process.has_terminal:
            return next((terminal_end(output.fileno()) for output in process.outputs), None)
        fd = -1 if process._stdin is None else process._stdin.fileno()
        return pipe_end(fd) if fd >= 0 else None
    except OSError:
        return None
