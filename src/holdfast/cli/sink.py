"""Where the output of a process goes: to our standard output and standard error, or to lines of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .outlet import Outlet

if TYPE_CHECKING:
    import asyncio

    from holdfast.model import Chunk


class Sink:
    """Passes on what a process says, and waits while our side does not take it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, json: bool) -> None:
        self._out = Outlet(1, loop)
        self._err = self._out if json else Outlet(2, loop)
        self._json = json

    @property
    def busy(self) -> bool:
        """Whether our side is behind."""
        return self._out.busy or self._err.busy

    async def pass_on(self, chunk: Chunk) -> None:
        """Write one piece, where it belongs.

        Raises:
            BrokenPipeError: Nobody reads there any more.
        """
        if self._json:
            from . import describe

            await self.tell(describe.chunk(chunk))
        elif chunk.stream.value == "stderr":
            await self._err.write(chunk.data)
        else:
            await self._out.write(chunk.data)

    async def tell(self, document: dict[str, Any]) -> None:
        """Write a line of JSON."""
        import json

        await self._out.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        self._out.close()
        self._err.close()
