"""What a token allows: methods, directories, files, variables and quotas, against the real program."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import Forbidden
from tests.fakes.app_client import AppClient, SocketLink, spawn_params
from tests.fakes.client import Client, Message, client, start_params
from tests.fakes.frames import Wire
from tests.fakes.server import program_at
from tests.fakes.tokens import bearer, signing_options, token

pytestmark = pytest.mark.slow

VARIABLES = {b"CI_ONE": b"1", b"CI_TWO": b"2", b"OTHER": b"hidden"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all tests of this module; each has a principal of its own."""
    options = signing_options(tmp_path_factory.mktemp("auth"))
    with program_at(*options, "--command-sandbox", "danger-full-access", env=VARIABLES) as (_, url):
        yield url


@pytest.fixture
def name() -> str:
    """Of a principal that no other test has."""
    return f"p-{os.urandom(8).hex()}"


async def refused(asking: Client | AppClient, method: str, params: Any = None) -> Message:
    """The error that a request is answered with."""
    async with asyncio.timeout(10):
        message = await asking.post(method, params)
    assert "error" in message, (method, message)
    error: Message = message["error"]
    return error


def forbids(what: str, subject: str) -> Message:
    return {
        "code": -32600,
        "message": f"not allowed by the token: {what} {subject!r}",
        "data": {"kind": "forbidden", "forbidden": what, "subject": subject},
    }


@contextlib.asynccontextmanager
async def app(url: str, name: str, **grant: Any) -> AsyncIterator[AppClient]:
    shown = bearer(token(name, holdfast=grant))
    made = AppClient(SocketLink(await Wire.open(url, headers=[shown])))
    try:
        await made.initialize()
        yield made
    finally:
        await made.close()


# Methods.


async def test_only_the_methods_of_the_token_can_be_used(url: str, name: str) -> None:
    """Whatever the parameters are: nothing else is looked at.  The handshake and the end are everybody's."""
    allowed = {"methods": ["process/list", "environment/*"]}
    async with client(url, token=token(name, holdfast=allowed)) as talking:
        assert (await talking.call("process/list"))["processes"] == []
        await talking.call("environment/info")
        for method in set(METHODS) - {
            "process/list",
            "process/find",
            "environment/info",
            "environment/status",
        }:
            if method in ("initialize", "session/takeOver", "session/close"):
                continue
            assert await refused(talking, method, {"nonsense": 1}) == forbids("method", method)
        assert (await refused(talking, "no/such"))["code"] == -32601


@pytest.mark.parametrize("methods", [[], ["initialize"], ["nothing"], ["*x"]])
async def test_a_token_may_allow_nothing_but_to_say_hello(url: str, name: str, methods: list[str]) -> None:
    async with client(url, token=token(name, holdfast={"methods": methods})) as talking:
        assert await refused(talking, "process/list") == forbids("method", "process/list")


async def test_a_star_is_any_run_of_characters(url: str, name: str) -> None:
    async with client(url, token=token(name, holdfast={"methods": ["*/read*", "*"]})) as talking:
        await talking.call("process/list")
    async with client(url, token=token(name, holdfast={"methods": ["*/l*t"]})) as talking:
        await talking.call("process/list")
        assert await refused(talking, "process/wait") == forbids("method", "process/wait")


async def test_whoever_may_connect_may_close_what_it_opened(url: str, name: str) -> None:
    """Else the session, and what runs in it, would stay until it expires, and count against a quota."""
    nothing = token(name, holdfast={"methods": [], "sessions": 1})
    for _ in range(3):
        async with client(url, token=nothing) as talking:
            await talking.call("session/close")


async def test_whoever_may_start_may_follow_and_no_more(url: str, name: str) -> None:
    """A process tells its client what it says; to ask for what was missed is no more than that."""
    methods = ["process/start"]
    async with holdfast.connect(url, token=token(name, holdfast={"methods": methods})) as host:
        done = await host.run(["sh", "-c", "echo hello; exit 3"], capture_output=True)
        assert (done.stdout, done.returncode) == (b"hello\n", 3)
    async with client(url, token=token(name, holdfast={"methods": methods})) as talking:
        await talking.call("process/start", start_params("p", "cat"))
        await talking.call("process/read", {"processId": "p"})
        for method in ("process/write", "process/signal", "process/terminate", "process/list"):
            assert await refused(talking, method, {"processId": "p"}) == forbids("method", method)


async def test_whoever_may_open_a_file_may_close_it(url: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    async with client(url, token=token(name, holdfast={"methods": ["fs/open"]})) as talking:
        await talking.call("fs/open", {"path": (tmp_path / "file").as_uri(), "handleId": "h"})
        assert await refused(talking, "fs/readBlock", {}) == forbids("method", "fs/readBlock")
        await talking.call("fs/close", {"handleId": "h"})


async def test_methods_of_the_app_dialect_are_the_same(url: str, name: str) -> None:
    async with app(url, name, methods=["command/*"]) as talking:
        assert (await talking.execute("echo", "hi"))["stdout"] == "hi\n"
        asked = spawn_params("p", "true")
        assert await refused(talking, "process/spawn", asked) == forbids("method", "process/spawn")


# Where.


async def test_input_that_the_token_does_not_allow_is_refused_and_not_waited_for(url: str, name: str) -> None:
    """The command waits for its input and says nothing: only the refusal can be told."""
    methods = ["process/start", "process/read", "process/ack", "process/terminate", "session/*"]
    async with holdfast.connect(url, token=token(name, holdfast={"methods": methods})) as host:
        with pytest.raises(Forbidden, match="process/write"):
            async with asyncio.timeout(10):
                await host.run(["cat"], input=b"x", capture_output=True)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """``in`` is the root of the token; ``out`` is not, and has a secret."""
    top = tmp_path.resolve()
    for path in ("in/deep", "inside", "out/d"):
        (top / path).mkdir(parents=True)
    (top / "in/file").write_text("mine")
    (top / "out/secret").write_text("secret")
    (top / "in/link").symlink_to("../out")
    (top / "in/file-link").symlink_to("../out/secret")
    (top / "in/new-link").symlink_to("../out/new")
    (top / "in/absolute").symlink_to(top / "out")
    (top / "in/good").symlink_to("deep")
    return top


def outside(top: Path) -> dict[str, str]:
    """What is in ``out``, to the last byte."""
    return {
        str(path.relative_to(top)): path.read_text() if path.is_file() else "directory"
        for path in sorted((top / "out").rglob("*"))
    }


@contextlib.asynccontextmanager
async def rooted(url: str, name: str, top: Path) -> AsyncIterator[Client]:
    shown = token(name, holdfast={"roots": [str(top / "in"), "/no/such/root"]})
    async with client(url, token=shown) as talking:
        yield talking


async def test_processes_start_below_a_root_and_nowhere_else(url: str, name: str, top: Path) -> None:
    async with rooted(url, name, top) as talking:
        for cwd in ("in", "in/deep", "in/good"):
            await talking.start(cwd, "pwd", "-P", cwd=(top / cwd).as_uri())
            assert (await talking.closed(cwd)).data() == f"{(top / cwd).resolve()}\n".encode()
        for cwd in ("out", "out/missing", "inside", ".", "in/link", "in/absolute/d", "in/link/missing"):
            asked = start_params("x", "true", cwd=f"file://{top}/{cwd}" if cwd != "." else top.as_uri())
            assert await refused(talking, "process/start", asked) == forbids(
                "directory", str(top / cwd) if cwd != "." else str(top)
            )
        dotted = await refused(
            talking, "process/start", start_params("x", "true", cwd=f"file://{top}/in/../out")
        )
        assert dotted["data"]["forbidden"] == "directory"
        root = await refused(talking, "process/start", start_params("x", "true", cwd="file:///no/such/root"))
        assert "forbidden" not in (root.get("data") or {})
        assert len((await talking.call("process/list"))["processes"]) == 3


async def test_the_app_dialect_has_the_same_roots(url: str, name: str, top: Path) -> None:
    async with app(url, name, roots=[str(top / "in")]) as talking:
        assert (await talking.execute("pwd", cwd=str(top / "in")))["stdout"] == f"{top}/in\n"
        for cwd in ("out", "in/link", "in/../out"):
            spawn = await refused(talking, "process/spawn", spawn_params("p", "true", cwd=f"{top}/{cwd}"))
            execute = await refused(
                talking,
                "command/exec",
                {"command": ["true"], "cwd": f"{top}/{cwd}", "sandboxPolicy": {"type": "dangerFullAccess"}},
            )
            assert (spawn["data"]["forbidden"], execute["data"]["forbidden"]) == ("directory", "directory")


WALK = {"maxDepth": 9, "maxDirectories": 99, "maxEntries": 99, "followDirectorySymlinks": True}
DATA = base64.b64encode(b"evil").decode()

BY_PATH: dict[str, list[Message]] = {
    "fs/readFile": [{"path": "X"}, {"path": "X", "followSymlinks": False}],
    "fs/writeFile": [{"path": "X", "dataBase64": DATA}, {"path": "X/new", "dataBase64": DATA}],
    "fs/createDirectory": [{"path": "X/new", "recursive": False}, {"path": "X/a/b", "recursive": True}],
    "fs/getMetadata": [{"path": "X"}, {"path": "X/secret"}, {"path": "X/missing"}],
    "fs/canonicalize": [{"path": "X"}, {"path": "X/secret"}, {"path": "X/missing"}],
    "fs/readDirectory": [{"path": "X"}],
    "fs/walk": [{"path": "X", "options": WALK}],
    "fs/remove": [{"path": "X/secret", "force": False}, {"path": "X/d", "recursive": True, "force": False}],
    "fs/copy": [
        {"sourcePath": "X/d", "destinationPath": "IN/copy", "recursive": True},
        {"sourcePath": "X/secret", "destinationPath": "IN/copy", "recursive": False},
        {"sourcePath": "IN/file", "destinationPath": "X/new", "recursive": False},
        {"sourcePath": "IN/deep", "destinationPath": "X/new", "recursive": True},
    ],
    "fs/rename": [
        {"sourcePath": "X/d", "destinationPath": "IN/copy"},
        {"sourcePath": "X/secret", "destinationPath": "IN/copy"},
        {"sourcePath": "IN/file", "destinationPath": "X/new"},
        {"sourcePath": "IN/deep", "destinationPath": "X/new"},
    ],
    "fs/archive": [{"handleId": "h", "path": "X"}, {"handleId": "h", "path": "X/d"}],
    "fs/extract": [{"handleId": "h", "path": "X/d"}, {"handleId": "h", "path": "X/new/a"}],
    "fs/open": [
        {"handleId": "h", "path": "X/secret", "mode": "read"},
        {"handleId": "h", "path": "X/secret", "mode": "replace"},
        {"handleId": "h", "path": "X/new", "mode": "replace"},
    ],
    "fs/watchMissing": [
        {"watchId": 1, "missing": ["X/missing"]},
        {"watchId": 2, "missing": ["IN/missing"], "present": "X/secret"},
    ],
}
BY_PATH["capabilityRoots/discoverV1"] = [{"roots": [{"id": "r", "path": "X"}]}]
NUMBERS = count(1)
"""Of watches: one takes the place of those before it."""

BY_HANDLE = {"fs/readBlock", "fs/writeBlock", "fs/close"}


def placed(params: Message, top: Path, x: str) -> Message:
    """The parameters with a path for ``X`` and one for ``IN``."""
    text = json.dumps(params).replace('"X', f'"file://{top}/{x}').replace('"IN', f'"file://{top}/in')
    found: Message = json.loads(text)
    return found | ({"watchId": next(NUMBERS)} if "watchId" in found else {})


def test_every_method_with_a_path_is_tried() -> None:
    """Configuration is not read from a path of the client's."""
    paths = {name for name in METHODS if name.startswith(("fs/", "capabilityRoots/"))}

    assert paths == {*BY_PATH, *BY_HANDLE}


@pytest.mark.parametrize("method", BY_PATH)
async def test_a_path_outside_of_the_roots_is_refused_by_its_text(
    url: str, name: str, top: Path, method: str
) -> None:
    """The same whether there is something or not, and nothing is done."""
    before = outside(top)
    async with rooted(url, name, top) as talking:
        for params in BY_PATH[method]:
            for x in ("out", "nowhere", "in/../out", "inside"):
                error = await refused(talking, method, placed(params, top, x))
                assert error["code"] == -32600
                assert error["data"]["forbidden"] == "path"
                assert error["data"]["subject"].startswith(f"{top}/{x.removeprefix('in/../')}")

    assert outside(top) == before
    assert not (top / "nowhere").exists()
    assert not (top / "in/copy").exists()


@pytest.mark.parametrize("method", BY_PATH)
@pytest.mark.parametrize("link", ["link", "absolute"])
async def test_a_link_leads_nowhere_out_of_the_roots(
    url: str, name: str, top: Path, method: str, link: str
) -> None:
    """Nothing is read, written or learned; what is there, and what is not, is answered the same."""
    before = outside(top)
    async with rooted(url, name, top) as talking:
        for params in BY_PATH[method]:
            asked = placed(params, top, f"in/{link}")
            async with asyncio.timeout(10):
                answer = await talking.post(method, asked)
            if method == "fs/watchMissing":
                assert answer["result"] == {"watching": False}
            elif method == "capabilityRoots/discoverV1":
                (root,) = answer["result"]["roots"]
                assert root["error"].endswith("No such file or directory (os error 2)")
            else:
                assert "error" in answer, (asked, answer)
            assert "secret" not in json.dumps(answer).replace(f"{link}/secret", "")
            missing = json.loads(json.dumps(asked).replace("/secret", "/missing"))
            async with asyncio.timeout(10):
                other = await talking.post(method, missing)
            assert answer.get("error") == other.get("error")

    assert outside(top) == before
    assert not (top / "in/copy").exists()


async def test_a_link_to_a_file_leads_nowhere_either(url: str, name: str, top: Path) -> None:
    before = outside(top)
    async with rooted(url, name, top) as talking:
        for link in ("file-link", "new-link"):
            path = f"file://{top}/in/{link}"
            for method, params in (
                ("fs/readFile", {}),
                ("fs/writeFile", {"dataBase64": DATA}),
                ("fs/getMetadata", {}),
                ("fs/canonicalize", {}),
                ("fs/open", {"handleId": "h", "mode": "read"}),
                ("fs/open", {"handleId": "h", "mode": "replace"}),
            ):
                assert (await refused(talking, method, {"path": path, **params}))["code"] < 0
        listed = await talking.call("fs/walk", {"path": (top / "in").as_uri(), "options": WALK})
        assert not [entry for entry in listed["entries"] if "secret" in entry["path"]]
        await talking.call("fs/remove", {"path": f"file://{top}/in/file-link", "recursive": False})
        for path in ("secret", "d", "missing"):
            # Nothing there to remove, as far as it can see.
            forced = {"path": f"file://{top}/in/link/{path}", "recursive": True, "force": True}
            assert await talking.call("fs/remove", forced) == {}

    assert outside(top) == before
    assert not (top / "in/file-link").is_symlink()


async def test_a_copy_of_a_root_takes_links_along_and_not_what_they_lead_to(
    url: str, name: str, top: Path
) -> None:
    async with rooted(url, name, top) as talking:
        source, copy = (top / "in/deep").as_uri(), f"file://{top}/in/deep-copy"
        (top / "in/deep/link").symlink_to("../../out/secret")
        await talking.call("fs/copy", {"sourcePath": source, "destinationPath": copy, "recursive": True})

    assert os.readlink(top / "in/deep-copy/link") == "../../out/secret"


async def test_inside_of_the_roots_everything_works(url: str, name: str, top: Path) -> None:
    async with rooted(url, name, top) as talking:
        path = f"file://{top}/in/good/new"
        await talking.call("fs/writeFile", {"path": path, "dataBase64": DATA})
        read = await talking.call("fs/readFile", {"path": path})
        handle = {"handleId": "h", "path": path, "mode": "read"}
        await talking.call("fs/open", handle)
        block = await talking.call("fs/readBlock", {"handleId": "h", "offset": 0, "len": 9})
        found = await talking.call("fs/readDirectory", {"path": (top / "in").as_uri()})

    assert (read["dataBase64"], block["chunk"]) == (DATA, DATA)
    assert {"deep", "file", "good"} <= {entry["fileName"] for entry in found["entries"]}


# Variables.

EVERYTHING = {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []}


async def test_only_the_variables_of_the_token_are_given_or_inherited(url: str, name: str) -> None:
    shown = token(name, holdfast={"env": ["CI_*", "PATH"]})
    async with client(url, token=shown) as talking:
        await talking.start("p", "env", env={"CI_NEW": "3"}, envPolicy=EVERYTHING)
        lines = (await talking.closed("p")).data().decode().splitlines()
        env = await refused(talking, "process/start", start_params("q", "env", env={"HOME": "/"}))
        given = {**EVERYTHING, "set": {"LD_PRELOAD": "x"}}
        policy = await refused(talking, "process/start", start_params("q", "env", env={}, envPolicy=given))
        header = {"name": "x", "value": "", "valueEnvVar": "OTHER"}
        asked = {"method": "GET", "url": "http://127.0.0.1:1/", "requestId": "r", "headers": [header]}
        http = await refused(talking, "http/request", asked)

    assert {line.partition("=")[0] for line in lines} == {"CI_ONE", "CI_TWO", "CI_NEW", "PATH"}
    assert env == forbids("variable", "HOME")
    assert policy == forbids("variable", "LD_PRELOAD")
    assert http == forbids("variable", "OTHER")


async def test_the_app_dialect_inherits_no_more(url: str, name: str) -> None:
    async with app(url, name, env=["CI_*", "PATH"]) as talking:
        command = (await talking.execute("env"))["stdout"].splitlines()
        await talking.spawn("p", "env", streamStdoutStderr=False)
        process = (await talking.exited("p"))["stdout"].splitlines()
        spawn = await refused(talking, "process/spawn", spawn_params("q", "env", env={"HOME": "/"}))

    for lines in (command, process):
        assert {line.partition("=")[0] for line in lines} == {"CI_ONE", "CI_TWO", "PATH"}
    assert spawn == forbids("variable", "HOME")


async def test_configuration_outside_of_the_roots_is_not_there(url: str, name: str, top: Path) -> None:
    """It is not refused: Codex asks for it before each conversation."""
    asked = {"cwd": (top / "in").as_uri(), "configPaths": [["model"]], "requirementsPaths": [["a"]]}
    async with rooted(url, name, top) as talking:
        answer = await talking.call("environmentConfig/read", asked)

    assert (answer["config"]["layers"], answer["requirements"]["layers"]) == ([], [])
