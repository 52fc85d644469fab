"""Bearer tokens at the real program: who is let in, what others are told, and that no secret gets out."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import Client, client
from tests.fakes.frames import Wire
from tests.fakes.server import PATIENCE, Program, commands, open_files, program, program_at, run_to_end
from tests.fakes.server import eventually as soon
from tests.fakes.tokens import SECRET, bearer, sealed, signing_options, token

pytestmark = pytest.mark.slow

TOKEN = "capability-s3cret"
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
CHECKED = ("--ws-issuer", "me", "--ws-audience", "us")


def capability_options(directory: Path) -> tuple[str, ...]:
    path = directory / "token"
    path.write_text(f"{TOKEN}\n")
    return "--ws-auth", "capability-token", "--ws-token-file", str(path)


@pytest.fixture(scope="module")
def capability(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, str]]:
    with program_at(*capability_options(tmp_path_factory.mktemp("auth"))) as served:
        yield served


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with program_at(*signing_options(tmp_path_factory.mktemp("auth")), *CHECKED) as (_, url):
        yield url


async def ask(wire: Wire, line: str, *fields: str) -> tuple[int, bytes, dict[str, str]]:
    """Send a request on an open connection; gives status, body and header fields of the answer."""
    head = "".join(f"{field}\r\n" for field in ("Host: x", *fields))
    wire.writer.write(f"{line} HTTP/1.1\r\n{head}\r\n".encode())
    async with asyncio.timeout(PATIENCE):
        text = (await wire.reader.readuntil(b"\r\n\r\n")).decode().removesuffix("\r\n\r\n")
        first, *rest = text.split("\r\n")
        got = {name.lower(): value for name, _, value in (field.partition(": ") for field in rest)}
        body = await wire.reader.readexactly(int(got.get("content-length", "0")))
    return int(first.split()[1]), body, got


async def once(url: str, line: str, *fields: str) -> tuple[int, bytes, dict[str, str]]:
    wire = await Wire.dial(url)
    try:
        return await ask(wire, line, *fields)
    finally:
        await wire.close()


async def knock(url: str, *fields: str) -> str:
    """What somebody is told who is not let in."""
    status, body, got = await once(url, "GET /", *UPGRADE, *fields)
    assert (status, got["content-type"]) == (401, "text/plain; charset=utf-8")
    assert "sec-websocket-accept" not in got
    return body.decode()


# Who is let in.


async def test_the_right_token_is_let_in(capability: tuple[Program, str], signed: str) -> None:
    for url, text in ((capability[1], TOKEN), (signed, token("a", iss="me", aud=["us"]))):
        async with client(url, token=text) as talking:
            await talking.start("p", "echo", "hi")
            assert (await talking.closed("p")).data() == b"hi\n"


async def test_a_digest_is_as_good_as_the_token_itself() -> None:
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    with program_at("--ws-auth", "capability-token", "--ws-token-sha256", digest) as (_, url):
        async with client(url, token=TOKEN):
            pass
        assert await knock(url, bearer(digest)) == "invalid websocket bearer token"


HEADERS = {
    "nothing": ((), "missing websocket bearer token"),
    "an empty header": (("Authorization:",), "invalid authorization header"),
    "no token": (("Authorization: Bearer",), "invalid authorization header"),
    "another scheme": (("Authorization: Basic eDp5",), "invalid authorization header"),
    "two headers": ((bearer("x"), bearer("y")), None),
}


@pytest.mark.parametrize(("fields", "words"), HEADERS.values(), ids=HEADERS)
async def test_whoever_shows_no_token_is_told_so(
    capability: tuple[Program, str], signed: str, fields: tuple[str, ...], words: str | None
) -> None:
    assert await knock(capability[1], *fields) == (words or "invalid websocket bearer token")
    assert await knock(signed, *fields) == (words or "invalid websocket jwt")


async def test_two_headers_with_the_right_token_are_one_wrong_token(capability: tuple[Program, str]) -> None:
    """What stands in between might have looked at the other one."""
    for other in (TOKEN, "x"):
        assert await knock(capability[1], bearer(TOKEN), bearer(other)) == "invalid websocket bearer token"


async def test_a_wrong_capability_token_is_refused(capability: tuple[Program, str]) -> None:
    for text in ("x", TOKEN + "x", TOKEN[:-1], token("a"), "x" * 60_000, "é"):
        assert await knock(capability[1], bearer(text)) == "invalid websocket bearer token"


async def test_every_reason_why_a_signed_token_is_refused(signed: str) -> None:
    now = int(time.time())
    good: dict[str, Any] = {"iss": "me", "aud": "us"}
    reasons = {
        token("a", secret=b"another secret that is long enough", **good): "invalid websocket jwt",
        token("a", exp=..., **good): "invalid websocket jwt",
        sealed(b'{"exp":9999999999,"iss":"me","aud":"us"}', b'{"alg":"none"}'): "invalid websocket jwt",
        "x": "invalid websocket jwt",
        TOKEN: "invalid websocket jwt",
        token("a", holdfast={"unknown": 1}, **good): "invalid websocket jwt",
        token("a", exp=now - 60, **good): "expired websocket jwt",
        token("a", nbf=now + 3600, **good): "websocket jwt is not valid yet",
        token("a", aud="us"): "websocket jwt issuer mismatch",
        token("a", iss="me"): "websocket jwt audience mismatch",
        token("a", iss="me", aud=["them"]): "websocket jwt audience mismatch",
    }

    for text, words in reasons.items():
        assert await knock(signed, bearer(text)) == words


# What comes before, and what needs no token.


async def test_health_needs_no_token(capability: tuple[Program, str]) -> None:
    for path in ("/readyz", "/healthz"):
        for fields in ((), (bearer("wrong"),)):
            status, body, _ = await once(capability[1], f"GET {path}", *fields)
            assert (status, body) == (200, b"")


async def test_a_web_page_is_refused_before_its_token_is_looked_at(capability: tuple[Program, str]) -> None:
    for fields in ((), (bearer("wrong"),), (bearer(TOKEN),)):
        status, body, _ = await once(capability[1], "GET /", *UPGRADE, "Origin: http://x", *fields)
        assert (status, body) == (403, b"")


async def test_what_is_no_upgrade_is_refused_before_its_token_is_looked_at(
    capability: tuple[Program, str],
) -> None:
    """The token is for those who want to connect; the others learn nothing about it."""
    url = capability[1]
    for fields in ((), (bearer("wrong"),), (bearer(TOKEN),)):
        assert (await once(url, "GET /", *fields))[:2] == (
            400,
            b"Connection header did not include 'upgrade'",
        )
        assert (await once(url, "POST /", *fields))[0] == 405
        assert (await once(url, "GET /x", *UPGRADE, *fields))[0] == 404
        old = ("Sec-WebSocket-Version: 8", *(field for field in UPGRADE if "Version" not in field))
        assert (await once(url, "GET /", *old, *fields))[0] == 400


async def test_a_wrong_token_and_then_the_right_one_on_the_same_connection(
    capability: tuple[Program, str],
) -> None:
    wire = await Wire.dial(capability[1])
    for _ in range(3):
        assert (await ask(wire, "GET /", *UPGRADE, bearer("wrong")))[0] == 401
    status, _, _ = await ask(wire, "GET /", *UPGRADE, bearer(TOKEN))
    talking = Client(wire)
    await talking.initialize()
    await talking.close()

    assert status == 101


async def test_a_thousand_wrong_tokens_hurt_nobody_else(capability: tuple[Program, str]) -> None:
    server, url = capability
    async with client(url, token=TOKEN) as talking:
        await talking.start("p", "cat", pipeStdin=True)
        assert await talking.write("p", b"x", "first") == "accepted"  # May open a file for what is written.
        before = open_files(server.pid)
        for number in range(40):
            wire = await Wire.dial(url)
            # Twenty-five on each connection, most of them without waiting for the answer.
            head = "".join(f"{field}\r\n" for field in ("Host: x", *UPGRADE, bearer(f"wrong {number}")))
            wire.writer.write(f"GET / HTTP/1.1\r\n{head}\r\n".encode() * 25)
            async with asyncio.timeout(PATIENCE):
                for _ in range(25):
                    assert (await wire.reader.readuntil(b"bearer token")).startswith(b"HTTP/1.1 401 ")
            await wire.close()
            assert await talking.write("p", b"x", str(number)) == "accepted"
        await talking.until(lambda: talking.tale("p").data() == b"x" * 41)
        await soon(lambda: open_files(server.pid) <= before)


# Listeners.


async def test_a_unix_socket_needs_no_token(tmp_path: Path) -> None:
    where = f"unix://{tmp_path}/s"
    options = capability_options(tmp_path)
    with program("--listen", where, "--listen", "ws://127.0.0.1:0", *options) as server:
        assert server.read_url() == where
        url = server.read_url()
        async with client(where) as talking:
            assert talking.session
        assert await knock(url) == "missing websocket bearer token"


async def test_standard_input_needs_no_token_beside_a_websocket_that_does(tmp_path: Path) -> None:
    options = ("--listen", "stdio", "--listen", "ws://127.0.0.1:0", *capability_options(tmp_path))
    hello = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}\n'
    done = await asyncio.to_thread(run_to_end, *options, data=hello)

    assert done.returncode == 0
    assert b'"sessionId"' in done.stdout


async def test_with_a_token_others_may_reach_it_and_without_they_may_not(tmp_path: Path) -> None:
    """Every address of the host; only loopback is tried."""
    with program("--listen", "ws://0.0.0.0:0", *capability_options(tmp_path)) as server:
        url = server.read_url().replace("0.0.0.0", "127.0.0.1")
        assert await knock(url) == "missing websocket bearer token"
        async with client(url, token=TOKEN):
            pass
    refused = run_to_end("--listen", "ws://0.0.0.0:0")
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert refused.stderr.startswith(b"Error: refusing to start non-loopback websocket listener 0.0.0.0:0")


# Secrets.


async def test_secrets_are_nowhere_to_be_seen(tmp_path: Path) -> None:
    """In no argument, no variable of a child, no answer and no line of the log, however it is asked."""
    with program_at(*signing_options(tmp_path), "--log-level", "debug") as (server, url):
        shown = token("alice")
        wrong = token("mallory", secret=b"x" * 32)
        said = [
            await knock(url, bearer(text))
            for text in (wrong, "wrong-s3cret", token(exp=1), shown + "x", shown[:-9])
        ]
        async with client(url, token=shown) as talking:
            await talking.start("p", "sh", "-c", "env; cat", pipeStdin=True, envPolicy=INHERIT)
            await talking.write("p", b"x\n", "w")
            await talking.until(lambda: b"x\n" in talking.tale("p").data())
            seen = talking.tale("p").data() + repr(talking.messages).encode() + repr(said).encode()
            for pid in (server.pid, *(found.pid for found in commands(server.pid))):
                for name in ("cmdline", "environ"):
                    seen += Path(f"/proc/{pid}/{name}").read_bytes()
    seen += server.errors

    for secret in (SECRET, shown.encode(), wrong.encode(), b"wrong-s3cret", shown.split(".")[2].encode()):
        assert secret not in seen


INHERIT = {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []}


# Our own clients.


def test_the_command_line_shows_the_token_of_a_file(capability: tuple[Program, str], tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(f"{TOKEN}\n")
    bad.write_text("wrong")

    def run(*options: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = (
            sys.executable,
            "-m",
            "holdfast",
            "run",
            "--url",
            capability[1],
            *options,
            "--",
            "echo",
            "hi",
        )
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **env}
        )

    assert run("--token-file", str(good)).stdout == "hi\n"
    assert run(HOLDFAST_TOKEN_FILE=str(good)).stdout == "hi\n"
    refused = run("--token-file", str(bad))
    assert (refused.returncode, refused.stdout) == (125, "")
    assert "invalid websocket bearer token" in refused.stderr
    assert "wrong" not in refused.stderr
    assert f"{capability[1]} asks for a token" in run().stderr
