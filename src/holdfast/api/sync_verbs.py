"""The synchronous twin of ``verbs``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.inspection import Inspection

    from .handle import Handle
    from .thread import LoopThread


class SyncHandleVerbs:
    """Mixed into the synchronous ``Handle``."""

    _handle: Handle
    _thread: LoopThread

    def inspect(self) -> Inspection:
        """Return whether the process waits for input at this moment, and how its terminal is set.

        Raises:
            Unsupported: The server does not support it.
        """
        return self._thread.call(self._handle.inspect())
