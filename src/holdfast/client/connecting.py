"""Making a connection to a server and looking after it: attempts, handshake, heartbeat."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.errors import Forbidden, HoldfastError, LimitReached, LinkFault, LinkLost, SessionUnknown
from holdfast.protocol.session import (
    INITIALIZE,
    TAKE_OVER,
    EnvironmentInfo,
    InitializeParams,
    InitializeResult,
    TakeOverParams,
)
from holdfast.protocol.shapes import Signature
from holdfast.value import value
from holdfast.wording import counted

from .address import Address, Program, TcpAddress
from .channel import NoConnection, ServerChannel

if TYPE_CHECKING:
    from .program import ProgramChannel
    from .websocket import WebSocket

P = TypeVar("P")
R = TypeVar("R")

_FIRST_PAUSE = 0.05
"""Seconds before the second attempt; each further one waits twice as long."""

_LONGEST_PAUSE = 2.0
"""Seconds between two attempts, however many there were."""

EXTENSIONS = 1
"""The version of the extensions that this client knows."""

INITIALIZED = b'{"method":"initialized","params":{}}'
"""What a client says when it has read the server's answer."""


async def connect(address: Address, *, token: str | None, patience: float) -> WebSocket | ProgramChannel:
    """A connection to the server at ``address``, within ``patience`` seconds.

    Raises:
        NoConnection: There is none.
    """
    if isinstance(address, Program):
        from . import program

        return await program.start(address)
    from . import websocket

    return await websocket.connect(address, token=token, patience=patience)


async def look(address: Address, error: NoConnection) -> NoConnection:
    """Look why a server to which there never was a connection breaks off another attempt.

    Return the error to go by, which is final if trying again is of no use.
    """
    if not error.mute or not isinstance(address, TcpAddress) or address.secure:
        return error
    from . import reaching

    return await reaching.find_tls(address) or error


def loss(address: Address, error: NoConnection | HoldfastError) -> LinkLost:
    """The error for a server that cannot be reached, or that took the connection and will not have us."""
    if isinstance(error, NoConnection):
        return LinkLost(f"cannot reach {address}: {error}", fault=error.fault)
    faults = {LimitReached: LinkFault.FULL, Forbidden: LinkFault.FORBIDDEN}
    fault = faults.get(type(error), LinkFault.PROTOCOL)
    return LinkLost(f"{address} refuses us: {error}", fault=fault)


class Attempts:
    """A series of attempts, up to a deadline."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._pause = _FIRST_PAUSE

    def are_over(self, now: float) -> bool:
        """Whether there is no time for another pause and another attempt."""
        return now + self._pause >= self.deadline

    def pause(self) -> float:
        """Seconds to wait before the next attempt.

        No two clients wait equally long: those of a server that was restarted do not come back at
        the same moment.
        """
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311  (no secret)


class Asker(Protocol):
    """Asks the server something on the connection of the moment, once."""

    def __call__(self, signature: Signature[P, R], params: P) -> Awaitable[R]: ...


@value
class Greeting:
    """What a server answered."""

    session: str
    info: EnvironmentInfo
    features: frozenset[str]
    """What it can do beyond the protocol."""
    forgotten: bool
    """Whether there was a session, which it no longer knows."""


async def shake_hands(
    ask: Asker, client_name: str, session: str | None, features: frozenset[str]
) -> Greeting:
    """Resume ``session``, if there is one and the server still knows it, or open a new one.

    Args:
        features: What the server could do when it was asked last.

    Raises:
        SessionBusy: The server has not noticed yet that we were gone.
        msgspec.DecodeError: Its answer makes no sense.
    """
    result: InitializeResult | None = None
    if session is not None:
        try:
            if "sessionTakeOver" in features:
                result = await ask(TAKE_OVER, TakeOverParams(session, client_name, EXTENSIONS))
            else:
                result = await ask(INITIALIZE, InitializeParams(client_name, session, EXTENSIONS))
        except SessionUnknown:
            pass
    forgotten = session is not None and result is None
    if result is None:
        result = await ask(INITIALIZE, InitializeParams(client_name, holdfast=EXTENSIONS))
    extensions = result.environment_info.capabilities.holdfast
    return Greeting(
        result.session_id,
        result.environment_info,
        frozenset(extensions.features if extensions else ()),
        forgotten,
    )


class Heartbeat:
    """Asks for a sign of life after a silence, and cuts a connection that gives none."""

    def __init__(self, channel: ServerChannel, interval: float, loop: asyncio.AbstractEventLoop) -> None:
        """
        Args:
            interval: Seconds of silence before it is asked, and as many again to answer.
        """
        self._channel = channel
        self._interval = interval
        self._loop = loop
        self._pinged = channel.received_at
        self._timer = loop.call_later(interval / 2, self._beat)

    def _beat(self) -> None:
        now, received_at = self._loop.time(), self._channel.received_at
        if now - received_at >= self._interval:
            if self._pinged <= received_at:
                # Asked first, however long it was silent: it may have been us who did not listen.
                self._pinged = now
                self._channel.ping()
            elif now - self._pinged >= self._interval:
                self._channel.cut(f"nothing was heard for {counted(round(now - received_at), 'second')}")
                return
        self._timer = self._loop.call_later(self._interval / 2, self._beat)

    def stop(self) -> None:
        """The connection is gone.  May be called twice."""
        self._timer.cancel()
