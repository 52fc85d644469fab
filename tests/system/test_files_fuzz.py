"""Params of every kind to every method about files: errors have a code and words, and nothing breaks."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes import fence
from tests.fakes.backends import LONG
from tests.fakes.client import Client, Refusal
from tests.fakes.file_talk import uri
from tests.fakes.server import PATIENCE, eventually_sync, open_files
from tests.fakes.tree import grow
from tests.fakes.walled import Walled, walled

EXAMPLES = 1000 if LONG else 60
"""Of params, for each method."""

CODES = {-32600, -32602, -32603, -32004}

# Nothing here may ever name a place outside of the tree: some methods remove what they are given.
# No dots that lead up, no text that could be a path or a URI, and no link of the tree leaves it.  A link
# that is copied to its top may lead to the directory above it: that is ours, too, and made anew.
# Two walls stand behind that: a message is looked at before it is sent, and the server can write
# nowhere else.
NAMES = ["f", "d", "a", "sub", "b", "up", "empty", "lf", "ld", "dang", "loop", "fifo", "sock", "new", ".", ""]
ODD_NAMES = ["%FF", "%2F", "%C3%A9", "a%20b", "n" * 256, "%F0%9F%98%80", "\U0001f600", "new%0A"]
TEXT = st.text(max_size=40).filter(lambda text: ":" not in text and not text.startswith("/"))
NUMBERS = st.one_of(
    st.integers(-2, 70_000),
    st.sampled_from([2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70, -(2**63)]),
    st.floats(allow_nan=False, allow_infinity=False),
)
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
FLAG = st.one_of(st.booleans(), st.none(), JUNK)


@dataclass
class Scene:
    """A client that lives as long as the examples do."""

    runner: asyncio.Runner
    talking: Client
    walled: Walled
    root: Path

    def plant(self) -> None:
        """Make the tree as it was before examples were at it."""
        shutil.rmtree(self.root.parent, ignore_errors=True)
        self.root.mkdir(parents=True)
        grow(self.root)
        self.walled.give()

    def ask(self, method: str, params: Any) -> None:
        assert not list(fence.leaving(params, str(self.root)))
        assert not self.talking.over, "the server has ended the connection"
        refusal = self.runner.run(self._refusal(method, params))
        assert refusal is None or refusal.code in CODES
        assert refusal is None or not refusal.text.startswith("internal error in")

    async def _refusal(self, method: str, params: Any) -> Refusal | None:
        try:
            async with asyncio.timeout(3 * PATIENCE):
                await self.talking.call(method, params)
        except Refusal as refusal:
            return refusal
        return None


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    # The client answers no ping between two requests, and the tests that draw without asking may take longer
    # than a server waits for a pong.
    unhurried = ("--limit", "connection.ping_seconds=1h")
    with walled("--endpoint", "exec", *unhurried) as server, asyncio.Runner() as runner:
        talking = runner.run(Client.open(server.url))
        yield Scene(runner, talking, server, server.base / "own" / "tree")
        runner.run(talking.close())


@st.composite
def paths(draw: st.DrawFn) -> str:
    """A path inside of the tree; ``U:`` stands for its root as a URI, ``N:`` for the root as it is."""
    root = draw(st.sampled_from(["U:", "N:"]))
    return "/".join([root, *draw(st.lists(st.sampled_from(NAMES + ODD_NAMES), max_size=4))])


PATH = st.one_of(paths(), paths(), JUNK)
ENTRY = st.fixed_dictionaries(
    {
        "path": st.one_of(
            st.fixed_dictionaries({"type": st.just("path"), "path": paths()}),
            st.just({"type": "special", "value": {"kind": "root"}}),
            st.fixed_dictionaries({"type": st.just("glob_pattern"), "pattern": TEXT}),
        ),
        "access": st.sampled_from(["read", "write", "deny", "none", "other"]),
    }
)
SANDBOX = st.one_of(
    st.none(),
    JUNK,
    st.fixed_dictionaries(
        {
            "permissions": st.fixed_dictionaries(
                {
                    "type": st.sampled_from(["managed", "disabled", "external"]),
                    "file_system": st.fixed_dictionaries(
                        {"type": st.just("restricted"), "entries": st.lists(ENTRY, max_size=4)}
                    ),
                    "network": st.sampled_from(["restricted", "enabled"]),
                }
            ),
            "windowsSandboxLevel": st.just("disabled"),
            "cwd": st.one_of(st.none(), paths()),
        }
    ),
)
HANDLE = st.one_of(st.sampled_from(["a", "b", "c", "", "x" * 33]), JUNK)
DATA = st.one_of(st.sampled_from(["", "aGk=", "aGkh" * 100, "*", "aGk"]), JUNK)
OPTIONS = st.one_of(
    JUNK,
    st.fixed_dictionaries(
        {
            "maxDepth": NUMBERS,
            "maxDirectories": NUMBERS,
            "maxEntries": NUMBERS,
            "followDirectorySymlinks": FLAG,
        },
        optional={"pruneHiddenDirectories": FLAG},
    ),
)
SWITCHES = {"followSymlinks": FLAG, "sandbox": SANDBOX}
METHODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fs/readFile": ({"path": PATH}, SWITCHES),
    "fs/writeFile": ({"path": PATH, "dataBase64": DATA}, SWITCHES),
    "fs/createDirectory": ({"path": PATH}, {"recursive": FLAG, **SWITCHES}),
    "fs/getMetadata": ({"path": PATH}, SWITCHES),
    "fs/canonicalize": ({"path": PATH}, {"sandbox": SANDBOX}),
    "fs/readDirectory": ({"path": PATH}, {"sandbox": SANDBOX}),
    "fs/walk": ({"path": PATH, "options": OPTIONS}, {"sandbox": SANDBOX}),
    "fs/remove": ({"path": PATH}, {"recursive": FLAG, "force": FLAG, **SWITCHES}),
    "fs/copy": ({"sourcePath": PATH, "destinationPath": PATH, "recursive": FLAG}, {"sandbox": SANDBOX}),
    "fs/rename": ({"sourcePath": PATH, "destinationPath": PATH}, {"sandbox": SANDBOX}),
    "fs/archive": ({"handleId": HANDLE, "path": PATH}, {"sandbox": SANDBOX}),
    "fs/extract": ({"handleId": HANDLE, "path": PATH}, {"outsideLinks": FLAG, "sandbox": SANDBOX}),
    "fs/open": (
        {"handleId": HANDLE, "path": PATH},
        {"mode": st.one_of(st.sampled_from(["read", "replace"]), JUNK), "sandbox": SANDBOX},
    ),
    "fs/readBlock": ({"handleId": HANDLE, "offset": NUMBERS, "len": NUMBERS}, {}),
    "fs/writeBlock": ({"handleId": HANDLE, "offset": st.integers(-1, 5000), "chunk": DATA}, {}),
    "fs/close": ({"handleId": HANDLE}, {}),
    "capabilityRoots/discoverV1": (
        {
            "roots": st.one_of(
                st.lists(
                    st.fixed_dictionaries({"id": st.just("r"), "path": PATH, "sandbox": SANDBOX}), max_size=3
                ),
                JUNK,
            )
        },
        {},
    ),
    "fs/watchMissing": (
        {"watchId": NUMBERS, "missing": st.one_of(st.lists(PATH, max_size=4), JUNK)},
        {"present": st.one_of(st.none(), PATH)},
    ),
}


def placed(value: Any, root: Path) -> Any:
    """The value with the tree's own place in it."""
    match value:
        case str():
            return value.replace("U:", uri(root)).replace("N:", str(root))
        case list():
            return [placed(each, root) for each in value]
        case dict():
            return {name: placed(each, root) for name, each in value.items()}
    return value


@pytest.mark.slow
# Each request has its own patience.  This one would end in the middle of it on a machine with ten times as
# much to do as it can, and whatever is asked after that would wait for ever.
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_asked_is_answered(scene: Scene, method: str, data: st.DataObject) -> None:
    required, optional = METHODS[method]
    params = data.draw(st.one_of(st.fixed_dictionaries(required, optional=optional), JUNK))
    scene.plant()

    scene.ask(method, placed(params, scene.root))


@settings(max_examples=20 * EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    params=st.sampled_from(list(METHODS.values())).flatmap(
        lambda kinds: st.fixed_dictionaries(kinds[0] | kinds[1])
    )
)
def test_no_params_that_are_drawn_name_anything_outside_of_the_tree(params: Any) -> None:
    """Whoever adds a generator finds out here, and not from what is missing on the disk."""
    root = Path("/own/tree")

    assert list(fence.leaving(placed(params, root), str(root))) == []


@pytest.mark.slow
def test_the_server_of_these_tests_can_write_nowhere_else(scene: Scene) -> None:
    """If a request got past everything else, this would be what saves the machine."""
    scene.plant()
    beside = scene.walled.base.parent / "beside"
    inside = {"path": uri(scene.root / "f"), "dataBase64": ""}
    outside = {"path": uri(beside), "dataBase64": ""}

    assert scene.runner.run(scene.talking.call("fs/writeFile", inside)) == {}
    with pytest.raises(Refusal, match=r"Read-only file system|Permission denied"):
        scene.runner.run(scene.talking.call("fs/writeFile", outside))
    assert not beside.exists()


@pytest.mark.slow
def test_nothing_is_left_behind(scene: Scene) -> None:
    """Runs in any order with the others: the server has afterwards what it had before."""
    scene.plant()
    scene.runner.run(_ask_often(scene, 1))  # From then on the server has what it needs for watches.
    held = open_files(scene.walled.program.pid)

    scene.runner.run(_ask_often(scene, 200))

    eventually_sync(lambda: open_files(scene.walled.program.pid) <= held)
    assert scene.runner.run(scene.talking.call("environment/status")) == {"status": "ready"}


async def _ask_often(scene: Scene, times: int) -> None:
    other = await Client.open(scene.walled.url)
    path = {"path": uri(scene.root / "d" / "sub" / "b")}
    for number in range(times):
        answers = other.post_together(
            ("fs/readFile", path),
            ("fs/open", {**path, "handleId": str(number % 100)}),
            ("fs/readDirectory", {"path": uri(scene.root)}),
            ("fs/watchMissing", {"watchId": number + 1, "missing": [uri(scene.root / "none")]}),
        )
        await asyncio.wait(answers)
    await other.close()
