"""A real server sends the ends of processes to a web server, signed."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

import holdfast
from docs.examples.webhook import is_genuine
from tests.fakes.mortal import kill_server, mortal_at
from tests.fakes.server import eventually, program_at
from tests.fakes.terminal import holdfast as command
from tests.fakes.web import Visit, web

pytestmark = pytest.mark.slow

SECRET = b"s" * 32


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    return str(path)


def told(visit: Visit) -> dict[str, object]:
    """What was sent, if it is genuine."""
    assert is_genuine(SECRET, dict(visit.headers)["holdfast-signature"], visit.body, now=time.time())
    found: dict[str, object] = json.loads(visit.body)
    return found


async def test_whoever_was_named_at_the_start_is_told_of_the_end(secret: str) -> None:
    async with web() as served:
        options = ["--webhook-allow", f"{served.url}/hooks", "--webhook-secret-file", secret]
        with program_at(*options) as (_, url):
            hook = f"{served.url}/hooks/17"
            async with holdfast.connect(url) as host:
                done = await host.run(["sh", "-c", "exit 3"], name="mine", notify=hook)
                with pytest.raises(holdfast.HoldfastError, match="--webhook-allow"):
                    await host.run(["true"], notify=f"{served.url}/other")
                await eventually(lambda: len(served.visits) == 1)
            run = ["run", "-d", "-H", url, "--name", "kept", "--notify", hook, "--", "sh", "-c", "exit 4"]
            assert (await asyncio.to_thread(command, *run)).returncode == 0
            refused = ["run", "-d", "-H", url, "--notify", f"{served.url}/other", "--", "true"]
            said = await asyncio.to_thread(command, *refused)
            await eventually(lambda: len(served.visits) == 2)

        mine, kept = map(told, served.visits)
        assert done.returncode == 3
        assert (mine["name"], mine["exitCode"], mine["kind"]) == ("mine", 3, "exited")
        assert (kept["name"], kept["exitCode"]) == ("kept", 4)
        assert said.returncode == 125
        assert b"--webhook-allow" in said.stderr


async def test_the_next_server_tells_the_end_of_what_another_has_started(secret: str) -> None:
    async with web() as served:
        options = ["--webhook-allow", served.url, "--webhook-secret-file", secret]
        with mortal_at(*options) as (program, url):
            async with holdfast.connect(url) as host:
                asks = ["sh", "-c", "read code; exit $code"]
                process = await host.start(asks, keep=True, stdin=holdfast.PIPE, notify=served.url)
                kill_server(program)
                assert process.stdin is not None
                process.stdin.write(b"5\n")
                await eventually(lambda: len(served.visits) == 1)

        assert told(served.visits[0])["exitCode"] == 5


async def test_nobody_is_notified_without_a_server() -> None:
    async with holdfast.local() as host:
        with pytest.raises(holdfast.HoldfastError, match="a webhook without a server"):
            await host.start(["true"], notify="http://127.0.0.1/")
