"""A token that the program makes, at a server that asks for one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.client import Client, Refusal
from tests.fakes.frames import Wire
from tests.fakes.server import PATIENCE, program_at
from tests.fakes.tokens import SECRET, bearer, signing_options

pytestmark = pytest.mark.slow


def token(directory: Path, *options: str) -> str:
    """What ``holdfast token`` prints.  The secret is in a file, and neither in its arguments nor said."""
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "token",
        "--secret-file",
        str(directory / "secret"),
        *options,
    ]
    assert SECRET.decode() not in " ".join(command)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert SECRET.decode() not in done.stdout
    return done.stdout.strip()


async def client(url: str, shown: str) -> Client:
    opened = Client(await Wire.open(url, headers=[bearer(shown)]))
    await opened.initialize()
    return opened


async def refused(url: str, shown: str) -> bytes:
    """The first line of the answer to whoever shows this token."""
    wire = await Wire.dial(url)
    wire.writer.write(
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n%b\r\n\r\n" % bearer(shown).encode()
    )
    line = await wire.reader.readline()
    await wire.close()
    return line


async def test_a_token_lets_its_bearer_in_and_its_restrictions_hold(tmp_path: Path) -> None:
    options = signing_options(tmp_path)
    with program_at(*options, "--ws-issuer", "us", "--ws-audience", "here") as (_, url):
        names = ("--issuer", "us", "--audience", "here")
        allowed = ("--method", "process/*", "--root", str(tmp_path), "--env", "PATH", "--processes", "1")
        free = await client(url, token(tmp_path, "--subject", "alice", *names))
        bound = await client(url, token(tmp_path, "--subject", "bob", *names, *allowed))
        wrong = token(tmp_path, "--subject", "carol", "--issuer", "them", "--audience", "here")

        await free.call("environment/info")
        await free.start("a", "true")

        asked = (
            ("not allowed by the token: method", bound.call("environment/info")),
            ("not allowed by the token: directory", bound.start("c", "true", cwd="file:///")),
            (
                "not allowed by the token: variable",
                bound.start("c", "true", cwd=f"file://{tmp_path}", env={"A": "1"}),
            ),
        )
        for words, ask in asked:
            with pytest.raises(Refusal, match=words):
                await ask
        await bound.start("b", "sleep", "1000", cwd=f"file://{tmp_path}")
        with pytest.raises(Refusal, match="processes of one principal"):
            await bound.start("c", "true", cwd=f"file://{tmp_path}")
        assert await refused(url, wrong) == b"HTTP/1.1 401 Unauthorized\r\n"
        await free.close()
        await bound.call("process/terminate", {"processId": "b"})
        await bound.close()
