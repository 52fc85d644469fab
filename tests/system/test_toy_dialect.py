"""A dialect that is not ours is one folder and one row of the table: nothing else has to change."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import ServerLimits
from holdfast.dialects.endpoints import ENDPOINTS, AutoEndpoint, EndpointRow, Services
from holdfast.server.app import Server
from holdfast.server.listen import TcpListen
from holdfast.server.routes import Routes
from holdfast.telemetry import Silent
from tests import toy_dialect
from tests.fakes.client import client
from tests.fakes.frames import Wire
from tests.fakes.server import eventually, inside, is_running

ROW = EndpointRow("toy", "tests.toy_dialect.endpoint", lambda text: b'"toy/' in text)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A server for clients of the exec dialect, of the app dialects and of the toy."""
    async with inside() as parts:
        loop = asyncio.get_running_loop()
        server = Server(
            AutoEndpoint(Services(parts.backend, loop, Silent(), ServerLimits()), (*ENDPOINTS, ROW)),
            routes=Routes(healthz=True),
            telemetry=Silent(),
            loop=loop,
            poller=parts.server._poller,
        )
        yield await server.listen(TcpListen("127.0.0.1", 0))
        await server.stop()


async def said(wire: Wire) -> Any:
    frame = await wire.receive()
    assert frame is not None
    return json.loads(frame.payload)


def asked(key: object, script: str) -> str:
    params = {"argv": ["sh", "-c", script]}
    return json.dumps({"jsonrpc": "2.0", "id": key, "method": "toy/run", "params": params})


async def test_a_toy_dialect_is_served_beside_ours(url: str) -> None:
    """With its own envelope, on the same listener."""
    wire = await Wire.open(url)
    wire.send_text(asked("a", "echo hi; exit 3"))
    answer = await said(wire)
    wire.send_text('{"id":1,"method":"toy/run"}')
    ours = await said(wire)
    await wire.close()
    async with client(url) as other:
        status = await other.call("environment/status")

    assert answer == {"jsonrpc": "2.0", "id": "a", "result": {"code": 3, "said": "hi\n"}}
    assert ours["error"] == {"code": -32700, "message": "not JSON-RPC 2.0", "data": None}
    assert status == {"status": "ready"}


async def test_its_requests_can_be_cancelled_one_by_one(url: str, tmp_path: Path) -> None:
    """The command of a cancelled request ends; the other one goes on."""
    os.mkfifo(tmp_path / "gate")
    wire = await Wire.open(url)
    wire.send_text(asked(1, f"echo $$ >{tmp_path}/pid; exec sleep 1000"))
    wire.send_text(asked(2, f"read line <{tmp_path}/gate; echo $line"))
    await eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
    pid = int((tmp_path / "pid").read_text())
    wire.send_text('{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}')
    cancelled = await said(wire)
    await eventually(lambda: not is_running(pid))
    await asyncio.to_thread((tmp_path / "gate").write_text, "still here\n")
    other = await said(wire)
    await wire.close()

    words = {"code": -32800, "message": "the request was cancelled", "data": None}
    assert cancelled == {"jsonrpc": "2.0", "id": 1, "error": words}
    assert other == {"jsonrpc": "2.0", "id": 2, "result": {"code": 0, "said": "still here\n"}}


def test_the_toy_is_small() -> None:
    folder = Path(toy_dialect.__file__).parent
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.glob("*.py"))

    assert lines < 150
