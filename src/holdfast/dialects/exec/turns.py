"""Which request about files waits for which.

Requests run side by side: one that hangs on a dead disk must not hold up the
others.  But a client that sends one behind the other may rely on the order, so
those about the same files, of which one changes something, keep it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turn:
    """A request that waits or runs."""

    __slots__ = ("_before", "_over", "_running", "_turns", "changes", "keys")

    def __init__(
        self, turns: Turns, keys: tuple[str, ...], before: list[asyncio.Future[None]], *, changes: bool
    ) -> None:
        self._turns = turns
        self._before = before
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running = False
        self.keys = keys
        self.changes = changes

    @property
    def over(self) -> asyncio.Future[None]:
        return self._over

    @property
    def running(self) -> bool:
        return self._running

    async def reached(self) -> None:
        """Wait until everything is over that has to come before.  Cancelling ends the turn."""
        try:
            if self._before:
                await asyncio.wait(self._before)
                self._before = []
            await self._turns.places.acquire()
        except BaseException:
            self.end()
            raise
        self._running = True

    def end(self) -> None:
        """Let others go on.  May be called twice."""
        if not self._over.done():
            self._turns.left(self)
            self._over.set_result(None)
            if self._running:
                self._turns.places.release()

    def excludes(self, keys: tuple[str, ...], *, changes: bool) -> bool:
        """Whether a later request has to wait for this one."""
        return (self.changes or changes) and any(
            _overlap(mine, other) for mine in self.keys for other in keys
        )


def _overlap(one: str, other: str) -> bool:
    """Whether two paths are the same, or one is below the other."""
    if len(one) > len(other):
        one, other = other, one
    return other.startswith(one) and (len(one) == len(other) or one[-1:] == "/" or other[len(one)] == "/")


class Turns:
    """The requests about files of one connection."""

    __slots__ = ("_turns", "places")

    def __init__(self, most: int) -> None:
        """So many run at once."""
        self._turns: dict[Turn, None] = {}
        self.places = asyncio.Semaphore(most)

    @property
    def running(self) -> int:
        """How many do."""
        return sum(turn.running for turn in self._turns)

    def join(self, *keys: str, changes: bool = False) -> Turn:
        """Get into line, with a request about these paths.  Whoever does so ends the turn."""
        before = [turn.over for turn in self._turns if turn.excludes(keys, changes=changes)]
        turn = Turn(self, keys, before, changes=changes)
        self._turns[turn] = None
        return turn

    @asynccontextmanager
    async def take(self, *keys: str, changes: bool = False) -> AsyncIterator[None]:
        """Wait for the turn of a request about these paths, and have it."""
        turn = self.join(*keys, changes=changes)
        await turn.reached()
        try:
            yield
        finally:
            turn.end()

    def left(self, turn: Turn) -> None:
        del self._turns[turn]
