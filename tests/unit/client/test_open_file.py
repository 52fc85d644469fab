"""Open files of another host: what is read is of one file, and what is written is there or an error."""

from __future__ import annotations

import asyncio
import base64
import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.client.files import RemoteFiles
from holdfast.client.open_file import HeldFile
from holdfast.client.remote import RemoteBackend
from holdfast.errors import FileFailed, FileRefused, LinkLost, OutcomeUnknown, UnknownHandle
from holdfast.files import OpenFile, Purpose
from tests.fakes.peer import Message, Peer, Talk, peer
from tests.fakes.remote import background, far
from tests.fakes.server import inside

ABOUT = {
    "isDirectory": False,
    "isFile": True,
    "isSymlink": False,
    "createdAtMs": 1,
    "modifiedAtMs": 2,
    "size": 3,
}
UNKNOWN = "unknown file handle `x`"


def block(data: bytes, *, eof: bool = True) -> Message:
    return {"chunk": base64.b64encode(data).decode(), "eof": eof}


@asynccontextmanager
async def opened(purpose: Purpose) -> AsyncIterator[tuple[OpenFile, Talk, Peer, Message]]:
    """An open file of a server that does what the test wants, and how it was opened."""
    async with peer() as server, far(server) as (backend, talk):
        opening = background(backend.files.open("/x", purpose))
        if purpose is Purpose.READ:
            talk.answer(await talk.hear("fs/getMetadata"), ABOUT)
        asked = await talk.hear("fs/open")
        talk.answer(asked, {})
        yield await opening, talk, server, asked["params"]


async def number_of(task: asyncio.Task[bytes]) -> int:
    with pytest.raises(FileFailed) as caught:
        await task
    return caught.value.number


@pytest.mark.parametrize("answer", [block(b"abcd"), {"chunk": "Y", "eof": True}])
async def test_a_block_that_was_not_asked_for_is_none(answer: Message) -> None:
    """Whoever puts blocks together relies on their length."""
    async with opened(Purpose.READ) as (file, talk, _, _):
        reading = background(file.read(0, 3))
        talk.answer(await talk.hear("fs/readBlock"), answer)

        with pytest.raises(LinkLost, match="makes no sense"):
            await reading


# Reading over a break.


@pytest.mark.parametrize("moment", ["before", "during"])
async def test_a_file_that_is_the_same_is_opened_again_without_a_word(moment: str) -> None:
    async with opened(Purpose.READ) as (file, talk, server, params):
        if moment == "before":
            talk.abort()
            again = await server.welcome()
            reading = background(file.read(7, 9))
            again.refuse(await again.hear("fs/readBlock"), -32004, UNKNOWN)
        else:
            reading = background(file.read(7, 9))
            await talk.hear("fs/readBlock")
            talk.abort()
            again = await server.welcome()
        reopened = await again.hear("fs/open")
        again.answer(reopened, {})
        again.answer(await again.hear("fs/getMetadata"), ABOUT)
        asked = await again.hear("fs/readBlock")
        again.answer(asked, block(b"rest"))

        assert await reading == b"rest"
        assert reopened["params"] == params
        assert asked["params"] == {"handleId": params["handleId"], "offset": 7, "len": 9}


@pytest.mark.parametrize(
    "change", [{"size": 4}, {"modifiedAtMs": 3}, {"createdAtMs": 0}, {"isSymlink": True}]
)
async def test_a_file_that_is_another_one_is_not_read_on(change: Message) -> None:
    """The beginning of one file and the end of another are no file."""
    async with opened(Purpose.READ) as (file, talk, server, params):
        reading = background(file.read(0, 9))
        await talk.hear("fs/readBlock")
        talk.abort()
        again = await server.welcome()
        again.answer(await again.hear("fs/open"), {})
        again.answer(await again.hear("fs/getMetadata"), {**ABOUT, **change})

        assert await number_of(reading) == errno.ESTALE
        assert (await again.hear("fs/close"))["params"] == {"handleId": params["handleId"]}
        assert await number_of(background(file.read(0, 9))) == errno.ESTALE


async def test_several_who_read_open_it_again_once() -> None:
    async with opened(Purpose.READ) as (file, talk, server, _):
        readers = [background(file.read(at, 1)) for at in range(2)]
        for _ in readers:
            await talk.hear("fs/readBlock")
        talk.abort()
        again = await server.welcome()
        first, second = await again.hear("fs/open"), await again.hear("fs/open")
        again.answer(first, {})
        again.refuse(second, -32600, f"file handle `{first['params']['handleId']}` already exists")
        for _ in readers:
            again.answer(await again.hear("fs/getMetadata"), ABOUT)
        for _ in readers:
            asked = await again.hear("fs/readBlock")
            again.answer(asked, block(b"%d" % asked["params"]["offset"]))

        assert [await reader for reader in readers] == [b"0", b"1"]


async def test_a_file_that_the_server_closed_by_itself_is_opened_again_once() -> None:
    """It does so when the system would not read some other part."""
    async with opened(Purpose.READ) as (file, talk, _, _):
        reading = background(file.read(0, 9))
        talk.refuse(await talk.hear("fs/readBlock"), -32004, UNKNOWN)
        talk.answer(await talk.hear("fs/open"), {})
        talk.answer(await talk.hear("fs/getMetadata"), ABOUT)
        talk.refuse(await talk.hear("fs/readBlock"), -32004, UNKNOWN)

        with pytest.raises(UnknownHandle):
            await reading


async def test_a_file_that_was_closed_while_it_was_opened_again_is_closed_again() -> None:
    async with opened(Purpose.READ) as (file, talk, server, _):
        reading = background(file.read(0, 9))
        await talk.hear("fs/readBlock")
        talk.abort()
        again = await server.welcome()
        asked = await again.hear("fs/open")
        file.close()
        await again.hear("fs/close")
        again.answer(asked, {})
        again.answer(await again.hear("fs/getMetadata"), ABOUT)

        assert await number_of(reading) == errno.EBADF
        await again.hear("fs/close")


async def test_a_read_goes_on_until_the_end_of_the_file() -> None:
    async with opened(Purpose.READ) as (file, talk, _, _):
        reading = background(file.read(1, 3 << 20))
        for offset, data, eof in ((1, bytes(1 << 20), False), (1 + (1 << 20), b"end", True)):
            asked = await talk.hear("fs/readBlock")
            assert (asked["params"]["offset"], asked["params"]["len"]) == (offset, 1 << 20)
            talk.answer(asked, block(data, eof=eof))

        assert await reading == bytes(1 << 20) + b"end"
        assert await file.read(5, 0) == b""


# Writing over a break.


@pytest.mark.parametrize("moment", ["before", "during"])
async def test_half_a_file_never_looks_whole(moment: str) -> None:
    async with opened(Purpose.REPLACE) as (file, talk, server, _):
        if moment == "before":
            talk.abort()
            again = await server.welcome()
            writing = background(file.write(0, b"x"))
            again.refuse(await again.hear("fs/writeBlock"), -32004, UNKNOWN)
        else:
            writing = background(file.write(0, b"x"))
            await talk.hear("fs/writeBlock")
            talk.abort()

        with pytest.raises(OutcomeUnknown):
            await writing
        with pytest.raises(OutcomeUnknown):
            await file.write(1, b"y")
        file.close()


async def test_a_handle_that_the_server_does_not_know_is_said_to_be_unknown() -> None:
    async with opened(Purpose.REPLACE) as (file, talk, _, _):
        writing = background(file.write(0, b"x"))
        talk.refuse(await talk.hear("fs/writeBlock"), -32004, UNKNOWN)

        with pytest.raises(UnknownHandle):
            await writing


async def test_what_no_file_can_hold_is_refused() -> None:
    async with opened(Purpose.REPLACE) as (file, _, _, _):
        with pytest.raises(FileRefused):
            await file.write(2**63 - 1, b"x")


async def test_a_file_is_closed_once() -> None:
    async with opened(Purpose.REPLACE) as (file, talk, _, params):
        file.close()
        file.close()
        with pytest.raises(FileFailed):
            await file.write(0, b"x")

        assert (await talk.hear("fs/close"))["params"] == {"handleId": params["handleId"]}
        talk.abort()


# With a real server.


async def test_a_replaced_file_is_not_mixed_with_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old old old")
    async with inside() as server:
        backend = RemoteBackend(server.url)
        await backend.open()
        files: RemoteFiles = backend.files
        file = await files.open(str(path), Purpose.READ)
        assert await file.read(0, 4) == b"old "
        (tmp_path / "y").write_bytes(b"new new new")
        os.replace(tmp_path / "y", path)
        assert await file.read(4, 4) == b"old "

        backend._link._cut("the test wants it")

        assert await number_of(background(file.read(8, 4))) == errno.ESTALE
        file.close()
        await backend.aclose()


async def test_a_file_that_came_as_a_whole_is_like_an_open_one() -> None:
    file = HeldFile(b"0123")

    assert (await file.read(1, 2), await file.read(3, 9), await file.read(9, 9)) == (b"12", b"3", b"")
    assert await number_of(background(file.read(-1, 1))) == errno.EINVAL
    with pytest.raises(FileFailed):
        await file.write(0, b"x")
    file.close()
    assert await number_of(background(file.read(0, 1))) == errno.EBADF
