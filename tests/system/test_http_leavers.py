"""HTTP requests whose clients go away, through the real program: what is left of them."""

from __future__ import annotations

import pytest

from tests.fakes.client import Client, client
from tests.fakes.server import eventually, open_files, program_at
from tests.fakes.web import Web, response, web

DIRECT = dict.fromkeys((b"http_proxy", b"HTTP_PROXY", b"all_proxy", b"ALL_PROXY"), b"")


@pytest.mark.slow
async def test_clients_that_leave_as_a_short_stream_ends_leave_no_descriptor() -> None:
    """Their requests are given up while the library closes a connection, which it must not forget."""

    async def visit(other: Web) -> None:
        talking = await Client.open(url)
        params = {"method": "GET", "url": f"{other.url}/x", "requestId": "r", "streamResponse": True}
        await talking.call("http/request", params)
        await talking.abort()

    with program_at(env=DIRECT) as (program, url):
        async with web(x=response(b"short")) as other:
            await visit(other)
            async with client(url):
                before = open_files(program.pid)
                for _ in range(20):
                    await visit(other)
                await eventually(lambda: open_files(program.pid) <= before)
