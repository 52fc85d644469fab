"""The channel that an address asks for; each kind is imported only if it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .address import Address, Program

if TYPE_CHECKING:
    from .program import ProgramChannel
    from .websocket import WebSocket


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
