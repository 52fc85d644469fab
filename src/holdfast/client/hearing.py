"""What all channels have in common: somebody who listens, and room for what is sent."""

from __future__ import annotations

import asyncio

from .channel import Listener


class Hearing:
    """One connection, as far as it does not matter what it is made of."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.heard = loop.time()
        self.broken = ""
        """Why it is gone, once it is."""
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when nothing of it is left."""
        self._listener: Listener | None = None
        self._early: list[bytes] = []
        self._room: asyncio.Future[None] | None = None

    # In.

    def listen(self, listener: Listener) -> None:
        """Tell ``listener`` everything, also what has come already."""
        self._listener = listener
        early, self._early = self._early, []
        for message in early:
            listener.received(message)
        if self.broken:
            listener.broke(self.broken)

    def tell(self, message: bytes | memoryview) -> None:
        if self.broken:
            return
        if self._listener is None:
            self._early.append(bytes(message))
        else:
            self._listener.received(message)

    # Out: called by the transport.

    def pause_writing(self) -> None:
        self._room = self.loop.create_future()

    def resume_writing(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    async def room(self) -> None:
        """See ``Channel.room``."""
        while self._room is not None and not self.broken:
            await asyncio.shield(self._room)

    # The end.

    def end(self, reason: str) -> None:
        """It is gone.  May be called twice; the first reason counts."""
        if self.broken:
            return
        self.broken = reason
        self.resume_writing()
        if self._listener is not None:
            self._listener.broke(reason)

    def leave(self) -> None:
        """Nothing of it is left.  May be called twice."""
        if not self.gone.done():
            self.gone.set_result(None)
