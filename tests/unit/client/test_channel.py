"""What all channels have in common."""

from __future__ import annotations

import asyncio

from holdfast.client.channel import ChannelBase, NoConnection


class Ear:
    """Implements ``channel.Listener``."""

    def __init__(self) -> None:
        self.told: list[bytes | str] = []

    def received(self, message: bytes | memoryview) -> None:
        self.told.append(bytes(message))

    def broke(self, reason: str) -> None:
        self.told.append(reason)


def with_listener() -> tuple[ChannelBase, Ear]:
    return ChannelBase(asyncio.get_running_loop()), Ear()


async def test_what_came_before_anybody_listened_is_told_first() -> None:
    """A view is of a buffer that is used again."""
    made, ear = with_listener()
    buffer = bytearray(b"one")
    made.tell(memoryview(buffer))
    buffer[:] = b"two"

    made.listen(ear)
    made.tell(memoryview(buffer))

    assert ear.told == [b"one", b"two"]


async def test_the_end_is_told_once_and_nothing_after_it() -> None:
    made, ear = with_listener()
    made.listen(ear)

    made.end("first")
    made.end("second")
    made.tell(b"late")

    assert (ear.told, made.broken) == (["first"], "first")


async def test_who_listens_late_is_told_the_end() -> None:
    made, ear = with_listener()
    made.tell(b"one")
    made.end("gone")

    made.listen(ear)

    assert ear.told == [b"one", "gone"]


async def test_there_is_room_until_the_transport_says_otherwise() -> None:
    made, _ = with_listener()
    await made.room()
    made.pause_writing()
    waiting = asyncio.ensure_future(made.room())
    await asyncio.sleep(0)
    assert not waiting.done()

    made.resume_writing()
    made.resume_writing()

    await waiting


async def test_who_waits_for_room_is_let_go_by_the_end() -> None:
    made, _ = with_listener()
    made.pause_writing()
    waiting = [asyncio.ensure_future(made.room()) for _ in range(2)]
    await asyncio.sleep(0)

    waiting.pop().cancel()
    made.end("gone")
    made.leave()
    made.leave()

    await asyncio.gather(*waiting)
    await made.gone


def test_why_there_is_no_connection_is_its_text() -> None:
    assert str(NoConnection("no route")) == "no route"
    assert (NoConnection("x").final, NoConnection("x", final=True).final) == (False, True)
