"""Trees of another host as archives: an archive belongs to one connection."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.client.open_tree import RemoteTree
from holdfast.errors import FileFailed, LinkLost, OutcomeUnknown, UnknownHandle, Unsupported
from tests.fakes.peer import Message, Peer, Talk, peer
from tests.fakes.remote import background, far
from tests.unit.client.test_files import STREAMING


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[RemoteTree, Talk, Peer]]:
    """An archive of a server that does what the test wants."""
    async with peer() as server, far(server, about=STREAMING) as (backend, talk):
        opening = background(backend.files.archive("/x"))
        talk.answer(await talk.hear("fs/archive"), {})
        yield await opening, talk, server


def block(data: bytes, *, eof: bool) -> Message:
    return {"chunk": base64.b64encode(data).decode(), "eof": eof}


async def test_it_is_read_to_its_end_and_closed_once() -> None:
    async with opened() as (tree, talk, _):
        reading = background(tree.read(0, 10))
        asked = await talk.hear("fs/readBlock")
        talk.answer(asked, block(b"abc", eof=True))

        assert await reading == b"abc"
        tree.close()
        tree.close()
        closed = await talk.hear("fs/close")
        assert closed["params"]["handleId"] == asked["params"]["handleId"]
        with pytest.raises(FileFailed):
            await tree.read(3, 1)


async def test_a_broken_connection_ends_it() -> None:
    """Nobody can go on in the middle; whoever wants the tree begins anew."""
    async with opened() as (tree, talk, server):
        reading = background(tree.read(0, 10))
        await talk.hear("fs/readBlock")
        talk.abort()
        await server.welcome("s1", about=STREAMING)

        for call in (reading, tree.read(0, 1), tree.write(0, b"x")):
            with pytest.raises(OutcomeUnknown, match="fs/archive"):
                await call


async def test_a_handle_of_another_connection_is_a_broken_one_and_of_this_one_an_error() -> None:
    async with opened() as (tree, talk, _):
        reading = background(tree.read(0, 10))
        talk.refuse(await talk.hear("fs/readBlock"), -32004, "unknown file handle `x`")

        with pytest.raises(UnknownHandle):
            await reading


async def test_a_block_that_was_not_asked_for_is_none() -> None:
    async with opened() as (tree, talk, _):
        reading = background(tree.read(0, 2))
        talk.answer(await talk.hear("fs/readBlock"), block(b"abc", eof=False))

        with pytest.raises(LinkLost):
            await reading


async def test_a_server_that_has_no_archives_is_not_asked() -> None:
    async with peer() as server, far(server) as (backend, _):
        for call in (
            backend.files.archive("/x"),
            backend.files.extract("/x"),
            backend.files.rename("/x", "/y"),
        ):
            with pytest.raises(Unsupported):
                await call
