"""Two principals on one server: method by method, neither can see, touch or guess what the other has."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.dialects.app.methods import METHODS as APP_METHODS
from holdfast.dialects.exec.methods import METHODS
from tests.fakes.app_client import AppClient, SocketLink, exec_params, spawn_params
from tests.fakes.app_client import write_params as app_write_params
from tests.fakes.client import (
    Client,
    Message,
    Refusal,
    client,
    page_bytes,
    sha256,
    start_params,
    write_params,
)
from tests.fakes.frames import Wire
from tests.fakes.server import Program, program_at
from tests.fakes.tokens import bearer, signing_options, token
from tests.fakes.web import Visit, Web, web

pytestmark = pytest.mark.slow

ECHO = ("sh", "-c", "stty -echo 2>/dev/null; echo ready; exec cat")
ALICE, MALLORY = "alice", "mallory"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module."""
    options = signing_options(tmp_path_factory.mktemp("auth"))
    with program_at(*options, "--command-sandbox", "danger-full-access") as served:
        yield served


@pytest.fixture
def url(served: tuple[Program, str]) -> str:
    return served[1]


async def answer(asking: Client | AppClient, method: str, params: Any) -> Message:
    """The whole answer, be it a result or an error."""
    async with asyncio.timeout(10):
        message = await asking.post(method, params)
    return {key: value for key, value in message.items() if key != "id"}


# The exec dialect.


class Victim:
    """Somebody with one of everything; all of it goes by one name."""

    def __init__(self, principal: str, talking: Client, served: Web, folder: Path) -> None:
        self.principal = principal
        self.name = f"n{os.urandom(6).hex()}"
        self.kept = f"k{os.urandom(6).hex()}"
        self.client = talking
        self.folder = folder
        self._web = served
        self._lines: list[bytes] = []
        self._goes_on = asyncio.Event()
        served.routes["/slow"] = self._slowly

    async def _slowly(self, visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab")
        await self._goes_on.wait()
        await visit.send(b"cde")

    async def settle(self) -> None:
        """Begin everything."""
        call = self.client.call
        await self.client.start(self.name, *ECHO, pipeStdin=True, tty=True)
        await self.client.start(self.kept, *ECHO, pipeStdin=True, keep=True)
        # Not before the terminal has been told not to echo.
        await self.client.until(lambda: b"ready" in self.client.tale(self.name).data())
        (self.folder / "file").write_bytes(b"the victim's")
        file = (self.folder / "file").as_uri()
        await call("fs/open", {"handleId": self.name, "path": file, "mode": "read"})
        missing = [(self.folder / "missing").as_uri()]
        assert await call("fs/watchMissing", {"watchId": 1, "missing": missing}) == {"watching": True}
        asked = {"method": "GET", "url": f"{self._web.url}/slow", "requestId": self.name}
        await call("http/request", {**asked, "streamResponse": True})
        await self.is_unharmed("begin")

    async def is_unharmed(self, word: str) -> None:
        """Fail unless everything goes on as if there were nobody else."""
        line = f"{word} {len(self._lines)}\n".encode()
        self._lines.append(line)
        for name in (self.name, self.kept):
            assert await self.client.write(name, line, line.decode()) == "accepted"
        tale = self.client.tale(self.name)
        await self.client.until(lambda: tale.data().endswith(line.replace(b"\n", b"\r\n")))
        expected = b"".join((b"ready\n", *self._lines))
        assert sha256(tale.data().replace(b"\r\n", b"\n")) == sha256(expected)
        while sha256(page_bytes(page := await self.client.read(self.kept))) != sha256(expected):
            await self.client.read(self.kept, afterSeq=page["nextSeq"] - 1, waitMs=10_000)
        block = await self.client.call("fs/readBlock", {"handleId": self.name, "offset": 0, "len": 100})
        assert base64.b64decode(block["chunk"]) == b"the victim's"
        found = await self.client.call("process/list")
        assert {each["processId"]: each["state"] for each in found["processes"]} == {
            self.name: "running",
            self.kept: "running",
        }

    async def end(self) -> None:
        """See that what was under way comes to its end, too."""
        self._goes_on.set()
        deltas = self.deltas
        await self.client.until(lambda: deltas() and deltas()[-1]["done"])
        assert b"".join(base64.b64decode(each["deltaBase64"]) for each in deltas()) == b"abcde"
        (self.folder / "missing").touch()
        await self.client.until(
            lambda: {"method": "fs/missingChanged", "params": {"watchId": 1}} in self.client.messages
        )
        assert await self.client.terminate(self.name)
        assert await self.client.terminate(self.kept)

    def deltas(self) -> list[Message]:
        told = (each for each in self.client.messages if each.get("method") == "http/request/bodyDelta")
        return [each["params"] for each in told if each["params"]["requestId"] == self.name]


@contextlib.asynccontextmanager
async def victim(url: str, folder: Path) -> AsyncIterator[Victim]:
    principal = f"alice-{os.urandom(6).hex()}"  # What is kept outlives the test.
    async with web() as served, client(url, token=token(principal)) as talking:
        made = Victim(principal, talking, served, folder)
        await made.settle()
        yield made
        await made.end()


def about(**params: Any) -> Callable[[str], Message]:
    """A request in which ``NAME`` stands for what somebody else has, or nobody."""
    return lambda name: json.loads(json.dumps(params).replace("NAME", name))


def start(name: str, **options: Any) -> Message:
    return start_params(name, "true", **options)


HANDSHAKES = {
    "initialize": about(clientName="x", resumeSessionId="NAME"),
    "session/takeOver": about(sessionId="NAME"),
}

NAMED: dict[str, Callable[[str], Message]] = {
    "process/start": start,
    "process/read": about(processId="NAME", waitMs=1),
    "process/ack": about(processId="NAME", seq=1, release=True),
    "process/usage": about(names=["NAME"]),
    "process/wait": about(processId="NAME", waitMs=1),
    "process/find": about(name="NAME"),
    "process/restart": about(processId="NAME", newProcessId="other"),
    "process/remove": about(processId="NAME"),
    "process/inspect": about(processId="NAME"),
    "process/waitFor": about(processId="NAME", output="x"),
    "process/write": lambda name: write_params(name, b"evil\n", "w1"),
    "process/closeStdin": about(processId="NAME"),
    "process/resize": about(processId="NAME", size={"rows": 1, "cols": 1}),
    "process/signal": about(processId="NAME", signal="kill"),
    "process/snapshot": about(processId="NAME"),
    "process/readRange": about(processId="NAME"),
    "process/terminate": about(processId="NAME", graceMs=0),
    "http/request": about(method="GET", url="http://127.0.0.1:1/", requestId="NAME", streamResponse=True),
    "fs/open": about(handleId="NAME", path=Path(__file__).as_uri(), mode="read"),
    "fs/archive": about(handleId="NAME", path=Path(__file__).parent.as_uri()),
    "fs/extract": about(handleId="NAME", path="file:///dev/null"),
    "fs/readBlock": about(handleId="NAME", offset=0, len=9),
    "fs/writeBlock": about(handleId="NAME", offset=0, chunk="ZXZpbA=="),
    "fs/close": about(handleId="NAME"),
}

UNNAMED: dict[str, Any] = {
    "session/close": None,
    "process/list": None,
    "environment/info": None,
    "environment/status": None,
    "events/subscribe": {},
    "events/unsubscribe": {},
    "fs/watchMissing": {"watchId": 1, "missing": ["file:///no-such-file"]},
    "environmentConfig/read": {"cwd": "file:///", "configPaths": [], "requirementsPaths": []},
    "capabilityRoots/discoverV1": {"roots": [{"id": "r", "path": Path(__file__).parent.as_uri()}]},
    "capabilities/discoverV2": {"cwd": "file://elsewhere/"},
}

BY_PATH = {
    "fs/readFile",
    "fs/writeFile",
    "fs/createDirectory",
    "fs/getMetadata",
    "fs/canonicalize",
    "fs/readDirectory",
    "fs/walk",
    "fs/remove",
    "fs/copy",
    "fs/rename",
}
"""Nothing but a path: the files of the host are everybody's, as far as roots do not say otherwise.

``test_grants`` tries each of them outside of the roots.
"""


def test_every_method_is_tried() -> None:
    """A new one has to say here what it could show of others."""
    assert set(METHODS) == {*HANDSHAKES, *NAMED, *UNNAMED, *BY_PATH}
    assert set(APP_METHODS) == {"initialize", "process/spawn", "command/exec", *APP_NAMED}


async def test_no_method_shows_or_touches_what_another_principal_has(url: str, tmp_path: Path) -> None:
    """Nor tells, by its answer, whether it is there: nobody's name is answered the same."""
    nobody = f"n{os.urandom(6).hex()}"
    async with victim(url, tmp_path) as hurt:
        for method, params in NAMED.items():
            # Each time with a new session: what the one before has made is its own.
            async with client(url, token=token(MALLORY)) as evil:
                expected = json.dumps(await answer(evil, method, params(nobody)))
                for name in (hurt.name, hurt.kept):
                    got = json.dumps(await answer(evil, method, params(name)))
                    assert got.replace(name, nobody) == expected, method
            await hurt.is_unharmed(method)
        for method, given in UNNAMED.items():
            async with client(url, token=token(MALLORY)) as other:
                said = json.dumps(await answer(other, method, given))
            for secret in (hurt.name, hurt.kept, hurt.client.session):
                assert secret not in said, method
            await hurt.is_unharmed(method)


async def test_a_session_of_another_principal_is_one_that_nobody_has(url: str, tmp_path: Path) -> None:
    """While its client is there, and while it is away."""
    nobody = "00000000-0000-4000-8000-000000000000"
    async with victim(url, tmp_path) as hurt:
        away = await Client.open(url, token=token(hurt.principal))
        await away.start("p", "sleep", "1000")
        await away.abort()
        for method, params in HANDSHAKES.items():
            evil = await Client.connect(url, token=token(MALLORY))
            expected = json.dumps(await answer(evil, method, params(nobody)))
            for session in (hurt.client.session, away.session):
                got = json.dumps(await answer(evil, method, params(session)))
                assert got.replace(session, nobody) == expected
            assert "error" in json.loads(expected)
            await evil.close()
            await hurt.is_unharmed(method)
        async with client(url, token=token(hurt.principal), resume=away.session) as back:
            assert await back.terminate("p")


@pytest.mark.parametrize(
    "options", [{"keep": True}, {"idempotent": True}, {"keep": True, "idempotent": True}]
)
async def test_the_same_name_is_free_for_another_principal(
    url: str, tmp_path: Path, options: dict[str, Any]
) -> None:
    """Also a kept one, and with a request that is the same to the last byte."""
    other = token(f"mallory-{os.urandom(6).hex()}")
    async with victim(url, tmp_path) as hurt, client(url, token=other) as evil:
        for name in (hurt.name, hurt.kept):
            result = await evil.start(name, *ECHO, pipeStdin=True, tty=name == hurt.name, **options)
            assert not result.get("existing")
            page = await evil.read(name, waitMs=10_000)
            assert page_bytes(page).strip() in (b"", b"ready")
        mine = (await evil.call("process/list"))["processes"]
        assert {each["processId"] for each in mine} == {hurt.name, hurt.kept}
        await hurt.is_unharmed("start")
        for name in (hurt.name, hurt.kept):
            assert await evil.terminate(name)
        await evil.call("session/close")
        await hurt.is_unharmed("close")


# The app dialect.

APP_NAMED: dict[str, Callable[[str], Message]] = {
    "process/writeStdin": lambda name: app_write_params(name, b"evil\n"),
    "process/resizePty": about(processHandle="NAME", size={"rows": 1, "cols": 1}),
    "process/kill": about(processHandle="NAME"),
    "command/exec/write": lambda name: app_write_params(name, b"evil\n", key="processId"),
    "command/exec/resize": about(processId="NAME", size={"rows": 1, "cols": 1}),
    "command/exec/terminate": about(processId="NAME"),
}


@contextlib.asynccontextmanager
async def app(url: str, name: str) -> AsyncIterator[AppClient]:
    made = AppClient(SocketLink(await Wire.open(url, headers=[bearer(token(name))])))
    try:
        await made.initialize()
        yield made
    finally:
        await made.close()


async def test_no_method_of_the_app_dialect_does_either(url: str) -> None:
    nobody = "nobody"
    async with app(url, ALICE) as hurt, app(url, MALLORY) as evil:
        await hurt.spawn("mine", *ECHO, streamStdin=True, streamStdoutStderr=True)
        options = {"processId": "mine", "streamStdin": True, "streamStdoutStderr": True}
        command = hurt.post("command/exec", exec_params(*ECHO, **options))
        await hurt.until(lambda: b"ready" in hurt.command("mine").data())
        for method, params in APP_NAMED.items():
            expected = json.dumps(await answer(evil, method, params(nobody)))
            got = json.dumps(await answer(evil, method, params("mine")))
            assert "error" in json.loads(expected)
            assert got.replace("mine", nobody) == expected
        assert "result" in await answer(evil, "process/spawn", spawn_params("mine", "true"))
        assert (await evil.execute("echo", "hi", processId="mine"))["stdout"] == "hi\n"
        await hurt.write("mine", b"still here\n", close=True)
        await hurt.call(
            "command/exec/write", app_write_params("mine", b"here, too\n", close=True, key="processId")
        )
        exit_ = await hurt.exited("mine")
        result = await hurt.result(command)

    assert (exit_["exitCode"], hurt.tale("mine").data()) == (0, b"ready\nstill here\n")
    assert (result["exitCode"], hurt.command("mine").data()) == (0, b"ready\nhere, too\n")


# Who is who.


async def test_a_client_with_a_renewed_token_goes_on_with_its_session(url: str) -> None:
    """Other times, other claims, another grant: the name is what counts."""
    first = await Client.open(url, token=token(ALICE, iat=1))
    await first.start("p", *ECHO, pipeStdin=True)
    await first.abort()

    renewed = token(ALICE, iat=2, exp=4_000_000_000, jti="x", holdfast={"methods": ["process/*"]})
    async with client(url, token=renewed, resume=first.session) as second:
        assert await second.write("p", b"hi\n", "w") == "accepted"
        assert await second.terminate("p")


@pytest.mark.parametrize(
    "other",
    [{"iss": "other"}, {"iss": ""}, {}, {"sub": "alice ", "iss": "me"}, {"sub": "Alice", "iss": "me"}],
)
async def test_the_same_name_from_another_issuer_is_somebody_else(url: str, other: dict[str, str]) -> None:
    first = await Client.open(url, token=token(ALICE, iss="me"))
    await first.abort()

    with pytest.raises(Refusal) as caught:
        await Client.open(
            url, token=token(other.get("sub", ALICE), iss=other.get("iss", ...)), resume=first.session
        )

    assert caught.value.text == f"unknown session id {first.session}"


async def test_a_token_without_a_name_is_not_whoever_needs_none(tmp_path: Path) -> None:
    """Clients of the unix socket are asked for no token: no token lets others in to what is theirs."""
    where = f"unix://{tmp_path}/s"
    with program_at("--listen", where, *signing_options(tmp_path)) as (served, url):
        assert served.read_url() == where
        async with client(where) as trusted, client(url, token=token()) as evil:
            await trusted.start("p", "sleep", "1000", keep=True)
            assert (await evil.call("process/list"))["processes"] == []
            with pytest.raises(Refusal):
                await Client.open(url, token=token(), resume=trusted.session)
            async with client(where) as other:
                assert await other.terminate("p")


async def test_clients_with_one_capability_token_are_one_principal(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("tok")
    options = ("--ws-auth", "capability-token", "--ws-token-file", str(tmp_path / "token"))
    with program_at(*options) as (_, url):
        first = await Client.open(url, token="tok")
        await first.start("k", "sleep", "1000", keep=True)
        await first.start("p", "sleep", "1000")
        await first.abort()
        async with client(url, token="tok", resume=first.session) as second:
            found = (await second.call("process/list"))["processes"]
            assert {each["processId"] for each in found} == {"k", "p"}
            assert await second.terminate("k")
