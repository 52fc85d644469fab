"""Looks at a process of this host for somebody who waits for the answer."""

from __future__ import annotations

import asyncio

from .inspection import InspectedHere, Inspection

_SECONDS = 3.0
"""Seconds for a look: it is bounded itself, but may have to wait for a thread."""


async def inspect(process: InspectedHere, *, seconds: float = _SECONDS) -> Inspection:
    """What a process of this host does at this moment; if that takes longer than so many seconds, unknown."""
    told: asyncio.Future[Inspection] = asyncio.get_running_loop().create_future()

    def tell(found: Inspection) -> None:
        if not told.done():
            told.set_result(found)

    process.look_at_input(tell)
    await asyncio.wait((told,), timeout=seconds)
    return told.result() if told.done() else Inspection(waiting_for_input=None)
