"""What programs ask of a process beyond its life and its output: does it wait for input?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.inspection import Inspection
    from holdfast.place import NamedProcess


class HandleVerbs:
    """Mixed into ``Handle``."""

    _process: NamedProcess

    async def inspect(self) -> Inspection:
        """Return whether the process waits for input at this moment, and how its terminal is set.

        Raises:
            Unsupported: The server does not support it.
        """
        return await self._process.inspect()
