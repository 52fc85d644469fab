"""Requests that do not end well leave nothing that only the collector frees.

A server rarely runs it: few objects are made per request.  What hangs on a circle until
then may be the whole message, 64 MiB of it, and every client can send more of them.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.config import SessionLimits
from holdfast.host.sandbox.backends import SandboxBackendRow
from holdfast.host.sandbox.confinement import Confiner
from tests.fakes.client import Client, client, start_params, write_params
from tests.fakes.garbage import garbage
from tests.fakes.sandboxes import READ_ALL, policy
from tests.fakes.server import eventually, inside

NOWHERE = "file:///holdfast-is-not-here/file"
LONG = 60_000
WRITE = write_params("cat", b"x" * (256 << 10), "")

FAILED = {
    "a file that cannot be written": ("fs/writeFile", {"path": NOWHERE, "dataBase64": "AAAA"}),
    "a file that cannot be read": ("fs/readFile", {"path": NOWHERE}),
    "a file that cannot be opened": ("fs/open", {"handleId": "h", "path": NOWHERE}),
    "a file that is not there": ("fs/getMetadata", {"path": NOWHERE}),
    "a program that is not there": ("process/start", start_params("p", "/holdfast-is-not-here")),
    "a directory that is not there": ("process/start", start_params("p", "true", cwd=NOWHERE)),
    "a host that does not answer": (
        "http/request",
        {"method": "GET", "url": "http://127.0.0.1:9/", "requestId": "r"},
    ),
    "a process that is not there": ("process/read", {"processId": "nobody"}),
}

WAITING = {
    "a long poll": ("process/read", {"processId": "sleep", "afterSeq": 0, "waitMs": LONG}),
    "a wait for an exit": ("process/wait", {"processId": "sleep", "waitMs": LONG}),
    "a write to a full queue": ("process/write", {**WRITE, "processId": "sleep"}),
}


async def settled(tasks: int) -> None:
    """Wait until there are no more tasks than before: those of a lost connection end one after the other."""
    await eventually(lambda: len(asyncio.all_tasks()) <= tasks)


@pytest.mark.parametrize("name", FAILED)
async def test_a_request_that_fails_leaves_no_garbage(name: str) -> None:
    method, params = FAILED[name]
    async with inside() as served, client(served.url) as own:
        await own.post(method, params)  # What the first of its kind makes stays.

        with garbage() as left:
            for _ in range(3):
                message = await own.post(method, params)
                assert "error" in message
            del message

    assert not left


async def test_a_sandbox_that_is_refused_leaves_no_garbage() -> None:
    """What a policy means is searched for in a thread, whose error comes back by a future."""
    toy = SandboxBackendRow("toy", "tests.toy_sandbox_backend")
    params = start_params("p", "true", sandbox=policy(READ_ALL))
    async with inside(confiner=Confiner(None, table=(toy,))) as served, client(served.url) as own:
        await own.post("process/start", params)

        with garbage() as left:
            message = await own.post("process/start", params)
            assert "a toy knows nothing of files" in message["error"]["message"]
            del message

    assert not left


async def begin(own: Client, method: str, params: Any) -> None:
    """Have a request wait in the server: whoever answers the next one has begun this one."""
    await own.start("sleep", "sleep", "1000", pipeStdin=True)
    if method == "process/write":
        for number in range(40):
            own.post(method, {**params, "writeId": f"{number}"})
    else:
        own.post(method, params)
    await own.call("environment/status")


@pytest.mark.parametrize("name", WAITING)
async def test_a_request_whose_client_leaves_leaves_no_garbage(name: str) -> None:
    async with inside() as served:
        with garbage() as left:
            tasks = len(asyncio.all_tasks())
            own = await Client.open(served.url)
            await begin(own, *WAITING[name])
            await own.abort()
            await settled(tasks)
            del own

    assert not left


async def test_a_session_that_is_closed_leaves_no_garbage() -> None:
    """Its processes know it, and it knows them."""
    async with inside() as served, client(served.url) as own:
        with garbage() as left:
            await own.start("cat", "cat", pipeStdin=True)
            await own.write("cat", b"hello\n", "1")
            await own.start("true", "true")
            await own.closed("true")
            await own.call("session/close")

    assert not left


async def test_a_session_that_expires_leaves_no_garbage() -> None:
    """Nor do the processes that end with it, and those who wait for room in their stdin."""
    async with inside(sessions=SessionLimits(detached_seconds=0.0)) as served:
        with garbage() as left:
            tasks = len(asyncio.all_tasks())
            own = await Client.open(served.url)
            await begin(own, *WAITING["a write to a full queue"])
            await own.abort()
            await settled(tasks)
            await eventually(lambda: not served.backend.usage()["engine.processes"])
            del own

    assert not left
