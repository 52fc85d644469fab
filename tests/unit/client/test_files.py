"""Files of another host when connections break; ``tests/contract/test_files.py`` has the rest."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.files import RemoteFiles
from holdfast.client.remote import RemoteBackend
from holdfast.config import KIB, MIB
from holdfast.errors import (
    BadRequest,
    FileRefused,
    FileUnsupported,
    LinkLost,
    OutcomeUnknown,
    TooManyEntries,
)
from holdfast.files import DirEntry, Purpose, WalkEntry, WalkError, WalkTerms
from holdfast.sandbox import Access, Sandbox, SandboxEntry
from tests.fakes.peer import Message, Peer, Talk, info, peer
from tests.fakes.remote import background, far
from tests.fakes.server import inside

STREAMING = info("list", "fileArchives", "fileRename", fileWriteStreaming=True, sandboxedFileStreaming=True)
ABOUT = {"isDirectory": False, "isFile": True, "isSymlink": False, "createdAtMs": 1, "modifiedAtMs": 2}
TERMS = WalkTerms(9, 9, 9, follow=True, prune=True, budget=MIB, spell=str.upper)


@contextlib.asynccontextmanager
async def scene(about: Message = STREAMING) -> AsyncIterator[tuple[RemoteFiles, Talk, Peer]]:
    """Files on a server that does what the test wants."""
    async with peer() as server, far(server, about=about) as (backend, talk):
        yield backend.files, talk, server


# What is repeated.

REPEATED: list[tuple[str, Callable[[RemoteFiles], Awaitable[Any]]]] = [
    ("fs/writeFile", lambda files: files.write("/x", b"")),
    ("fs/createDirectory", lambda files: files.make_directory("/x", recursive=True)),
    ("fs/getMetadata", lambda files: files.metadata("/x")),
    ("fs/canonicalize", lambda files: files.canonical("/x")),
    ("fs/readDirectory", lambda files: files.list("/x")),
    ("fs/walk", lambda files: files.walk("/x", TERMS)),
    ("fs/remove", lambda files: files.remove("/x", recursive=True, force=True)),
    ("fs/open", lambda files: files.open("/x", Purpose.REPLACE)),
    ("fs/watchMissing", lambda files: files.watch_missing(["/x"], None, lambda: None)),
]
ONCE: list[tuple[str, Callable[[RemoteFiles], Awaitable[Any]]]] = [
    ("fs/createDirectory", lambda files: files.make_directory("/x", recursive=False)),
    ("fs/remove", lambda files: files.remove("/x", recursive=True, force=False)),
    ("fs/copy", lambda files: files.copy("/x", "/y", recursive=False)),
    ("fs/rename", lambda files: files.rename("/x", "/y")),
    ("fs/archive", lambda files: files.archive("/x")),
    ("fs/extract", lambda files: files.extract("/x")),
]
ANSWER = {
    **ABOUT,
    "size": 0,
    "path": "file:///x",
    "entries": [],
    "errors": [],
    "truncated": False,
    "watching": True,
}


@pytest.mark.parametrize(("method", "call"), REPEATED, ids=[method for method, _ in REPEATED])
async def test_what_may_be_done_twice_goes_out_again(
    method: str, call: Callable[[RemoteFiles], Awaitable[Any]]
) -> None:
    async with scene() as (files, talk, server):
        calling = background(_wait(call(files)))
        first = await talk.hear(method)
        talk.abort()
        again = await server.welcome("s1", about=STREAMING)
        second = await again.hear(method)
        again.answer(second, ANSWER)
        await calling

        assert first["params"] == second["params"]


@pytest.mark.parametrize(("method", "call"), ONCE, ids=[method for method, _ in ONCE])
async def test_what_would_fail_the_second_time_is_not_repeated(
    method: str, call: Callable[[RemoteFiles], Awaitable[Any]]
) -> None:
    async with scene() as (files, talk, _):
        calling = background(_wait(call(files)))
        await talk.hear(method)
        talk.abort()

        with pytest.raises(OutcomeUnknown):
            await calling


async def _wait(call: Awaitable[Any]) -> Any:
    return await call


# Reading.


async def test_a_small_file_is_asked_for_again_from_the_beginning() -> None:
    """It may have become large: an answer that is too long would break one connection after the other."""
    async with scene() as (files, talk, server):
        reading = background(files.read("/x", at_once=10))
        talk.answer(await talk.hear("fs/getMetadata"), {**ABOUT, "size": 3})
        await talk.hear("fs/readFile")
        talk.abort()
        again = await server.welcome("s1", about=STREAMING)
        again.answer(await again.hear("fs/getMetadata"), {**ABOUT, "size": 4})
        again.answer(await again.hear("fs/readFile"), {"dataBase64": "ZG9uZQ=="})

        assert await reading == b"done"


async def test_a_file_that_has_grown_meanwhile_comes_open() -> None:
    async with scene() as (files, talk, _):
        reading = background(files.read("/x", at_once=3))
        talk.answer(await talk.hear("fs/getMetadata"), {**ABOUT, "size": 3})
        talk.answer(await talk.hear("fs/readFile"), {"dataBase64": "ZG9uZQ=="})
        found = await reading

        assert not isinstance(found, bytes)
        assert await found.read(1, 9) == b"one"
        found.close()


async def test_a_file_too_long_for_a_message_is_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.files._READ_MOST", 4)
    async with scene() as (files, talk, _):
        reading = background(files.read("/x", at_once=10))
        talk.answer(await talk.hear("fs/getMetadata"), {**ABOUT, "size": 5})
        talk.answer(await talk.hear("fs/open"), {})
        talk.answer(await talk.hear("fs/readBlock"), {"chunk": "ZG9uZQ==", "eof": True})
        talk.answer(await talk.hear("fs/readBlock"), {"chunk": "", "eof": True})

        assert await reading == b"done"
        await talk.hear("fs/close")


async def test_a_file_that_grows_while_it_is_read_in_blocks_comes_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However much a server goes on to send, no more is collected than was asked for."""
    monkeypatch.setattr("holdfast.client.files._READ_MOST", 4)
    async with scene() as (files, talk, _):
        reading = background(files.read("/x", at_once=7))
        talk.answer(await talk.hear("fs/getMetadata"), {**ABOUT, "size": 5})
        talk.answer(await talk.hear("fs/open"), {})
        for _ in range(2):
            talk.answer(await talk.hear("fs/readBlock"), {"chunk": "ZG9uZQ==", "eof": True})
        found = await reading

        assert not isinstance(found, bytes)
        found.close()
        await talk.hear("fs/close")


async def test_a_long_file_cannot_be_opened_without_following_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol has no word for it, and to open it otherwise would be to follow them."""
    monkeypatch.setattr("holdfast.client.files._READ_MOST", 4)
    async with scene() as (files, talk, _):
        reading = background(files.read("/x", at_once=1, follow=False))
        asked = await talk.hear("fs/getMetadata")
        talk.answer(asked, {**ABOUT, "size": 5})

        with pytest.raises(FileUnsupported):
            await reading
        assert asked["params"]["followSymlinks"] is False


# Writing.


async def test_a_long_file_is_written_again_from_the_beginning() -> None:
    data = os.urandom(4 * MIB + 1)
    async with scene() as (files, talk, server):
        writing = background(files.write("/x", data))
        first = await talk.hear("fs/open")
        talk.answer(first, {})
        talk.answer(await talk.hear("fs/writeBlock"), {})
        await talk.hear("fs/writeBlock")
        talk.abort()
        again = await server.welcome("s1", about=STREAMING)
        blocks = await _written(again)
        await writing

    assert first["params"]["mode"] == "replace"
    assert blocks == {at * MIB: data[at * MIB : (at + 1) * MIB] for at in range(5)}


async def _written(talk: Talk) -> dict[int, bytes]:
    """Take a file in blocks, until it is closed."""
    blocks: dict[int, bytes] = {}
    handle = ""
    while True:
        asked = await talk.hear()
        talk.answer(asked, {})
        params = asked["params"]
        if asked["method"] == "fs/open":
            handle = params["handleId"]
        elif params["handleId"] == handle and asked["method"] == "fs/writeBlock":
            blocks[params["offset"]] = base64.b64decode(params["chunk"])
        elif params["handleId"] == handle:
            return blocks


@pytest.mark.parametrize("follow", [True, False])
async def test_a_server_without_blocks_takes_what_fits_into_a_message(*, follow: bool) -> None:
    async with scene(info("list")) as (files, talk, _):
        writing = background(files.write("/x", bytes(5 * MIB), follow=follow))
        asked = await talk.hear("fs/writeFile")
        talk.answer(asked, {})
        await writing

        assert len(asked["params"]["dataBase64"]) > 5 * MIB
        with pytest.raises(FileUnsupported):
            await files.write("/x", bytes(12 * MIB), follow=follow)


async def test_a_cancelled_opening_is_closed() -> None:
    async with scene() as (files, talk, _):
        opening = background(files.open("/x", Purpose.REPLACE))
        asked = await talk.hear("fs/open")
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

        closed = await talk.hear("fs/close")
        assert closed["params"] == {"handleId": asked["params"]["handleId"]}


async def test_handles_have_names_of_their_own_that_are_short_enough() -> None:
    async with scene() as (files, talk, _):
        names = []
        for _ in range(3):
            opening = background(files.open("/x", Purpose.REPLACE))
            asked = await talk.hear("fs/open")
            talk.answer(asked, {})
            await opening
            names.append(asked["params"]["handleId"])

        assert len(set(names)) == 3
        assert all(0 < len(name) <= 32 for name in names)


# How things are told.


async def test_a_sandbox_is_told_with_every_request() -> None:
    sandbox = Sandbox((SandboxEntry("/x", Access.READ),), network=True, cwd="/")
    async with scene() as (files, talk, _):
        calling = background(files.metadata("/x", sandbox=sandbox))
        asked = await talk.hear("fs/getMetadata")
        talk.answer(asked, {**ABOUT, "size": 1})
        await calling

        entries = asked["params"]["sandbox"]["permissions"]["file_system"]["entries"]
        assert entries == [{"path": {"type": "path", "path": "file:///x"}, "access": "read"}]


async def test_a_sandbox_needs_a_server_that_takes_blocks_inside_of_it() -> None:
    sandbox = Sandbox((SandboxEntry("/x", Access.WRITE),), network=True, cwd="/")
    async with scene(info("list", fileWriteStreaming=True)) as (files, talk, _):
        writing = background(files.write("/x", bytes(5 * MIB), sandbox=sandbox))
        talk.answer(await talk.hear("fs/writeFile"), {})
        await writing


async def test_a_path_that_cannot_be_told_is_refused() -> None:
    async with scene() as (files, _, _):
        with pytest.raises(BadRequest):
            await files.metadata("relative")
        with pytest.raises(BadRequest):
            await files.copy("/x", "/y/../z", recursive=False)


async def test_names_of_servers_that_do_not_tell_exact_ones_are_what_they_say() -> None:
    async with scene() as (files, talk, _):
        listing = background(files.list("/x"))
        entries = [
            {"fileName": "a", "isDirectory": True, "isFile": False},
            {"fileName": "\ufffd", "isDirectory": False, "isFile": True, "path": "file:///x/%FF"},
        ]
        talk.answer(await talk.hear("fs/readDirectory"), {"entries": entries})

        assert await listing == [
            DirEntry("a", directory=True, file=False),
            DirEntry("\udcff", directory=False, file=True),
        ]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/etc/x", "a/b", "a\0b", None])
async def test_a_name_that_leads_elsewhere_is_no_name(name: str | None) -> None:
    """Whoever copies a directory puts these names behind a path of its own, and writes there."""
    async with scene() as (files, talk, _):
        asking = background(files.walk("/x", TERMS) if name is None else files.list("/x"))
        entry = {"fileName": name, "isDirectory": False, "isFile": True}
        if name is None:
            entry = {"path": "http://x", "kind": "file"}
        talk.answer(await talk.hear(), {"entries": [entry], "errors": [], "truncated": False})

        with pytest.raises(LinkLost, match="makes no sense"):
            await asking


async def test_a_walk_is_spelled_as_its_terms_say_and_its_errors_have_numbers() -> None:
    async with scene() as (files, talk, _):
        walking = background(files.walk("/x", TERMS))
        asked = await talk.hear("fs/walk")
        entries = [{"path": "file:///x/a", "kind": "file"}]
        errors = [
            {"path": "file:///x/b", "message": "Permission denied (os error 13)"},
            {"path": "file:///x/c", "message": "it is too dark"},
        ]
        talk.answer(asked, {"entries": entries, "errors": errors, "truncated": True})
        found = await walking

        assert asked["params"]["options"] == {
            "maxDepth": 9,
            "maxDirectories": 9,
            "maxEntries": 9,
            "followDirectorySymlinks": True,
            "pruneHiddenDirectories": True,
        }
        assert found.entries == [WalkEntry("/X/A", directory=False)]
        assert found.errors == [WalkError("/X/B", 13), WalkError("/X/C", 5)]
        assert found.truncated


async def test_the_errors_of_a_walk_have_to_fit_into_its_budget_too() -> None:
    terms = WalkTerms(9, 9, 9, follow=True, prune=True, budget=80, spell=str)
    async with scene() as (files, talk, _):
        walking = background(files.walk("/x", terms))
        errors = [{"path": "file:///x/b", "message": "Permission denied (os error 13)"}]
        talk.answer(await talk.hear("fs/walk"), {"entries": [], "errors": errors, "truncated": False})
        found = await walking

        assert (found.errors, found.truncated) == ([], True)


async def test_errors_are_those_of_files() -> None:
    async with scene() as (files, talk, _):
        listing = background(files.list("/x"))
        text = "fs/readDirectory returned 60000 entries; limit is 50000"
        talk.refuse(await talk.hear(), -32603, text)
        with pytest.raises(TooManyEntries):
            await listing
        walking = background(files.walk("/x", TERMS))
        talk.refuse(await talk.hear(), -32600, "filesystem walk limits exceed maximums")
        with pytest.raises(FileRefused):
            await walking
        listing = background(files.list("/x"))
        talk.answer(await talk.hear(), {"entries": "many"})
        with pytest.raises(LinkLost, match="makes no sense"):
            await listing


# With a real server whose connections are cut all the time.


@pytest.mark.slow
async def test_files_are_whole_whatever_happens_to_connections(tmp_path: Path) -> None:
    data = os.urandom(5 * MIB + 11)
    async with inside() as server:
        backend = RemoteBackend(server.url)
        await backend.open()
        stop = asyncio.Event()
        cutting = background(_cut_now_and_then(backend, stop))
        try:
            for turn in range(3):
                await backend.files.write(f"{tmp_path}/{turn}", data)
                assert (tmp_path / str(turn)).read_bytes() == data
                file = await backend.files.open(f"{tmp_path}/{turn}", Purpose.READ)
                pieces = [await file.read(at, 700 * KIB) for at in range(0, len(data), 700 * KIB)]
                file.close()
                assert b"".join(pieces) == data
        finally:
            stop.set()
            cuts = await cutting
            await backend.aclose()
    assert cuts > 0


async def _cut_now_and_then(backend: RemoteBackend, stop: asyncio.Event) -> int:
    """Break connections, each time a little later; return how many there were."""
    cuts = 0
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 0.02 * (1 + cuts))
        backend._link._cut("the test wants it")
        cuts += 1
    return cuts
