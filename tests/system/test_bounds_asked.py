"""Bounds of what a server does elsewhere for its clients: HTTP requests, and files."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import Client, Refusal
from tests.fakes.limits import (
    SMALL,
    figures,
    refusals,
    refused,
    server,
    session,
    until_used,
)
from tests.fakes.sandboxes import READ_ALL, entry, glob, policy
from tests.fakes.server import eventually
from tests.fakes.web import HI, Visit, Web, redirect, response, web


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    with server(SMALL) as (_, url):
        yield url


@pytest.fixture
async def talking(small: str) -> AsyncIterator[Client]:
    async with session(small) as talking:
        yield talking


@pytest.fixture
async def sites() -> AsyncIterator[Web]:
    async with web() as served:
        yield served


# HTTP.


class Held:
    """An answer that comes when the test says so."""

    def __init__(self, first: bytes = b"", rest: bytes = HI) -> None:
        self.open = asyncio.Event()
        self.seen = 0
        self._first, self._rest = first, rest

    async def __call__(self, visit: Visit) -> None:
        await visit.send(self._first)
        self.seen += 1
        await self.open.wait()
        await visit.send(self._rest)


def ask(sites: Web, path: str = "/", **more: Any) -> dict[str, Any]:
    return {"method": "GET", "url": sites.url + path, "requestId": "r", **more}


async def test_http_requests(small: str, talking: Client, sites: Web) -> None:
    """Of one connection, and of all."""
    sites.routes["/held"] = held = Held()
    async with session(small) as second, session(small) as third:
        waiting = [each.post("http/request", ask(sites, "/held")) for each in (talking, second)]
        await eventually(lambda: held.seen == 2)

        await refused(small, "http.connection_requests", lambda: talking.call("http/request", ask(sites)))
        await refused(small, "http.requests", lambda: third.call("http/request", ask(sites)))
        found = await figures(small)
        assert (found.used["http.connection_requests"], found.used["http.requests"]) == (1, 2)

        held.open.set()
        for each, answer in zip((talking, second), waiting, strict=True):
            await each.result(answer)
        await third.call("http/request", ask(sites))


async def test_http_bodies(small: str, talking: Client, sites: Web) -> None:
    """Of one answer, and of all that are being received."""
    half = b"HTTP/1.1 200 OK\r\ncontent-length: 91\r\n\r\n" + b"x" * 90
    sites.routes |= {"/large": response(b"x" * 101), "/held": (held := Held(half, b"y"))}
    sites.routes["/fits"] = response(b"x" * 90)
    async with session(small) as second:
        await refused(
            small, "http.buffered_bytes", lambda: talking.call("http/request", ask(sites, "/large"))
        )
        waiting = second.post("http/request", ask(sites, "/held"))
        await until_used(small, "http.buffered_total", 90)

        await refused(small, "http.buffered_total", lambda: talking.call("http/request", ask(sites, "/fits")))

        held.open.set()
        await second.result(waiting)
        await talking.call("http/request", ask(sites, "/fits"))


async def test_http_headers_redirects_and_pieces(small: str, talking: Client, sites: Web) -> None:
    sites.routes |= {
        "/1": redirect(302, "/2"),
        "/2": redirect(302, "/3"),
        "/long": response(b"", f"x-long: {'y' * 1100}"),
        "/body": response(b"z" * 25),
    }
    header = [{"name": "x-long", "value": "y" * 1100}]

    await refused(
        small, "http.header_bytes", lambda: talking.call("http/request", ask(sites, headers=header))
    )
    await refused(small, "http.header_bytes", lambda: talking.call("http/request", ask(sites, "/long")))
    many = [{"name": "a", "value": ""}] * 4
    await refused(small, "http.headers", lambda: talking.call("http/request", ask(sites, headers=many)))
    await talking.call("http/request", ask(sites, headers=many[1:]))
    await refused(small, "http.url_bytes", lambda: talking.call("http/request", ask(sites, "/" + "z" * 100)))
    async with refusals(small, "http.redirects"):
        with pytest.raises(Refusal, match="redirect"):
            await talking.call("http/request", ask(sites, "/1"))
    await talking.call("http/request", ask(sites, "/2"))
    await talking.call("http/request", ask(sites, "/body", streamResponse=True))

    def pieces() -> list[int]:
        told = [each["params"] for each in talking.messages if "bodyDelta" in each.get("method", "")]
        return [len(base64.b64decode(each["deltaBase64"])) for each in told]

    await talking.until(lambda: sum(pieces()) == 25)
    assert max(pieces()) == 10


# Files.


async def test_files(small: str, talking: Client, tmp_path: Path) -> None:
    """Words and codes are the protocol's; what it was is counted by our names."""
    for name, size in (("fits", 1000), ("large", 1001)):
        (tmp_path / name).write_bytes(b"x" * size)
    for name in "abcd":
        (tmp_path / "d" / name / "e" / "f").mkdir(parents=True)
    uri, opened = f"file://{tmp_path}", {"handleId": "h1"}
    walk = {"maxDepth": 2, "maxDirectories": 3, "maxEntries": 4, "followDirectorySymlinks": False}

    found = await talking.call("fs/readFile", {"path": f"{uri}/fits"})
    assert base64.b64decode(found["dataBase64"]) == b"x" * 1000
    await talking.call("fs/open", {**opened, "path": f"{uri}/fits"})
    await talking.call("fs/open", {"handleId": "h2", "path": f"{uri}/fits"})
    await talking.call("fs/readBlock", {**opened, "offset": 0, "len": 64})
    assert (await talking.call("fs/walk", {"path": uri, "options": walk}))["truncated"] is True
    refusing: dict[str, tuple[str, dict[str, Any]]] = {
        "read_bytes": ("fs/readFile", {"path": f"{uri}/large"}),
        "block_bytes": ("fs/readBlock", {**opened, "offset": 0, "len": 65}),
        "handle_bytes": ("fs/open", {"handleId": "123456789", "path": f"{uri}/fits"}),
        "entries": ("fs/readDirectory", {"path": f"{uri}/d"}),
        "walk_depth": ("fs/walk", {"path": uri, "options": {**walk, "maxDepth": 3}}),
        "walk_directories": ("fs/walk", {"path": uri, "options": {**walk, "maxDirectories": 4}}),
        "walk_entries": ("fs/walk", {"path": uri, "options": {**walk, "maxEntries": 5}}),
    }
    for name, (method, params) in refusing.items():
        async with refusals(small, f"file.{name}"):
            with pytest.raises(Refusal):
                await talking.call(method, params)

    await refused(
        small, "file.handles", lambda: talking.call("fs/open", {"handleId": "h3", "path": f"{uri}/fits"})
    )
    assert (await figures(small)).used["file.handles"] == 2
    await talking.call("fs/close", opened)
    await talking.call("fs/open", {"handleId": "h3", "path": f"{uri}/fits"})


async def test_policies(small: str, talking: Client, tmp_path: Path) -> None:
    """Of a sandbox, whatever it is for: what it says, and what has to be looked at for it."""
    for name in ("a1", "a2", "b1", "b2", "b3"):
        (tmp_path / name).touch()
    asking: dict[str, list[Any]] = {
        "entries": [entry(f"/{number}", "read") for number in range(5)],
        "path_bytes": [entry("/" + "x" * 250, "read")],
        "text_bytes": [entry("/" + "x" * 1024, "read"), entry("/" + "y" * 1024, "read")],
        "patterns": [glob(f"{tmp_path}/{name}*") for name in "abc"],
        "matches": [glob(f"{tmp_path}/{name}?") for name in "ab"],
        "names": [glob(f"{tmp_path}/{name}?") for name in "xy"],
    }

    def ask(*entries: Any) -> Any:
        return talking.call("fs/getMetadata", {"path": f"file://{tmp_path}", "sandbox": policy(*entries)})

    for name, entries in asking.items():
        await refused(small, f"sandbox.{name}", partial(ask, *entries))

    roots = {**policy(READ_ALL), "workspaceRoots": [f"file://{tmp_path}"] * 3}
    await refused(
        small,
        "sandbox.roots",
        lambda: talking.call("fs/getMetadata", {"path": f"file://{tmp_path}", "sandbox": roots}),
    )
    await ask(READ_ALL, entry("/x", "read"), glob(f"{tmp_path}/a?"))
    options = {"sandbox": policy(READ_ALL, *asking["matches"])}
    await refused(small, "sandbox.matches", partial(talking.start, "p", "true", **options))


async def test_an_answer_to_a_walk(talking: Client, tmp_path: Path) -> None:
    (tmp_path / ("n" * 100)).touch()
    (tmp_path / ("o" * 100)).touch()
    options = {"maxDepth": 1, "maxDirectories": 1, "maxEntries": 4, "followDirectorySymlinks": False}

    found = await talking.call("fs/walk", {"path": f"file://{tmp_path}", "options": options})

    assert (len(found["entries"]), found["truncated"]) == (0, True)
