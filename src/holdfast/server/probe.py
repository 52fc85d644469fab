"""A question whether a peer is alive: anything that it says is the answer."""

from __future__ import annotations

import asyncio


class Probe:
    """Asked once, by any number of those who want to know."""

    __slots__ = ("_answer",)

    def __init__(self, loop: asyncio.AbstractEventLoop, within: float) -> None:
        """``within`` are the seconds after which silence is the answer."""
        self._answer: asyncio.Future[bool] = loop.create_future()
        loop.call_later(within, self.settle, False)

    def settle(self, alive: bool) -> None:  # noqa: FBT001  (it is the answer itself)
        """The answer.  Only the first one counts."""
        if not self._answer.done():
            self._answer.set_result(alive)

    @property
    def settled(self) -> bool:
        return self._answer.done()

    async def answer(self) -> bool:
        """Wait for it; whoever is cancelled does not take it from the others."""
        return await asyncio.shield(self._answer)
