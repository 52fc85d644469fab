"""The transport of a link: what a connection to a server offers, whatever it is made of."""

from __future__ import annotations

import asyncio
from typing import Protocol

from holdfast.errors import LinkFault


class MessageListener(Protocol):
    """Receives the messages of a server, and the news that its connection has ended."""

    def received(self, message: bytes | memoryview) -> None:
        """Take one whole message.  A memoryview is valid only until this returns."""

    def broke(self, reason: str) -> None:
        """Take note that the connection is gone.  Called once; nothing follows."""


class ServerChannel(Protocol):
    """One connection to a server, until it breaks."""

    @property
    def received_at(self) -> float:
        """When something came last, whatever it was, in loop time."""

    def send(self, message: bytes) -> None:
        """Send one message.  Never waits; the order of calls is kept.  Does nothing once it is broken."""

    async def room(self) -> None:
        """Wait while so much is unsent that more should not be added."""

    def ping(self) -> None:
        """Ask for a sign of life, if there can be doubt about it."""

    def cut(self, reason: str) -> None:
        """Break the connection from our side, at once.  The listener knows before this returns."""

    async def aclose(self) -> None:
        """Close the connection; return when it is closed, which is soon."""


class NoConnection(Exception):
    """A connection cannot be made; ``str`` of this says why."""

    def __init__(
        self,
        reason: str,
        *,
        fault: LinkFault = LinkFault.UNREACHABLE,
        final: bool = False,
        reached: bool = False,
        mute: bool = False,
    ) -> None:
        super().__init__(reason)
        self.fault = fault
        self.final = final
        """Whether trying again is of no use."""
        self.reached = reached
        """Whether there was somebody, and only the talk broke off."""
        self.mute = mute
        """Whether that somebody had said nothing, or nothing in HTTP."""


class ChannelBase:
    """What all channels have in common: a listener, and room for what is sent."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.received_at = loop.time()
        self.broken = ""
        """Why it is gone, once it is."""
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when nothing of it is left."""
        self._listener: MessageListener | None = None
        self._early: list[bytes] = []
        self._room: asyncio.Future[None] | None = None

    # In.

    def listen(self, listener: MessageListener) -> None:
        """Pass all messages to ``listener``, also those that have arrived already."""
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
        """See ``ServerChannel.room``."""
        while self._room is not None and not self.broken:
            await asyncio.shield(self._room)

    # The end.

    def end(self, reason: str) -> None:
        """Take note that the connection has ended.  May be called twice; the first reason counts."""
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
