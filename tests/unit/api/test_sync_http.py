"""HTTP requests without an event loop: the same as with one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from threading import Thread

import pytest

from holdfast import sync
from holdfast.config import MIB
from holdfast.errors import HttpFailed, LimitReached
from tests.fakes.server import PATIENCE
from tests.fakes.web import HI, response, web

BODY = bytes(range(256)) * 12_000


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A web server in a thread of its own."""
    ready: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        async with web(hi=HI, long=response(BODY, "x-a: 1")) as there:
            over = asyncio.Event()
            ready.set_result((there.url, asyncio.get_running_loop(), over))
            await over.wait()

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    found, loop, over = ready.result(PATIENCE)
    yield found
    loop.call_soon_threadsafe(over.set)
    thread.join(PATIENCE)


def test_a_response_is_read_as_a_whole_or_in_pieces(url: str) -> None:
    with sync.local() as host:
        whole = host.http.get(f"{url}/hi")
        with host.http.request("POST", f"{url}/long", body=b"x") as found:
            pieces = list(found)

        assert (whole.status, whole.read(), repr(whole)) == (200, b"hi", "<WebResponse 200>")
        assert (b"".join(pieces), found.header("X-A"), dict(found.headers)["x-a"]) == (BODY, "1", "1")


def test_what_is_wrong_is_raised(url: str) -> None:
    with sync.local() as host:
        with pytest.raises(LimitReached):
            host.http.get(f"{url}/long").read(MIB)
        closed = host.http.get(f"{url}/long")
        closed.close()
        with pytest.raises(HttpFailed):
            host.http.get("http://127.0.0.1:1/")
