"""A pause in what is done for a request."""

from __future__ import annotations

import asyncio

from holdfast.dialects.dialect import Pause


async def test_others_have_their_turn_in_a_pause() -> None:
    """Each as often as whoever pauses."""
    order: list[str] = []

    async def work(name: str) -> None:
        for _ in range(3):
            order.append(name)
            await Pause()

    await asyncio.gather(work("one"), work("two"))

    assert order == ["one", "two"] * 3
