"""Files under a sandbox, against the real program: a wall, whatever is done to links meanwhile."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.backends import LONG
from tests.fakes.client import Client, Refusal, client
from tests.fakes.file_talk import uri
from tests.fakes.server import program_at

READ_ONLY = (-32603, "Read-only file system (os error 30)")
DENIED = (-32600, "Permission denied (os error 13)")
NOT_FOUND = (-32004, "No such file or directory (os error 2)")
OK: dict[str, Any] = {}

ROOT = {"type": "special", "value": {"kind": "root"}}
TRIES = 400 if LONG else 80
"""Races through the whole program; the unit tests of ``host.files.resolver`` run thousands."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with program_at("--endpoint", "exec") as (_, where):
        yield where


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """``ws`` is to be writable, ``ws/den`` denied; ``out`` is outside."""
    (tmp_path / "ws" / "den").mkdir(parents=True)
    (tmp_path / "ws" / "den" / "s").write_bytes(b"secret")
    (tmp_path / "ws" / "x").write_bytes(b"inside")
    (tmp_path / "ws" / "leads-out").symlink_to("../out/secret")
    (tmp_path / "ws" / "dir-out").symlink_to("../out")
    (tmp_path / "ws" / "leads-in").symlink_to("den/s")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_bytes(b"secret")
    return tmp_path


def sandbox(*entries: tuple[Any, str]) -> dict[str, Any]:
    listed = [
        {"path": {"type": "path", "path": uri(path)} if isinstance(path, Path) else path, "access": access}
        for path, access in entries
    ]
    return {
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": listed},
            "network": "restricted",
        },
        "windowsSandboxLevel": "disabled",
    }


async def ask(talking: Client, method: str, **params: Any) -> Any:
    """The result, or code and words of the refusal."""
    try:
        return await talking.call(f"fs/{method}", params)
    except Refusal as refusal:
        return refusal.code, refusal.text


async def change_everything(talking: Client, target: Path, source: Path, box: Any) -> dict[str, Any]:
    """What every method that changes something says about a place."""
    new, data = uri(target / "new"), {"dataBase64": "aGk="}
    return {
        "write": await ask(talking, "writeFile", path=uri(target / "x"), sandbox=box, **data),
        "write new": await ask(talking, "writeFile", path=new, sandbox=box, **data),
        "no follow": await ask(talking, "writeFile", path=new, sandbox=box, followSymlinks=False, **data),
        "directory": await ask(talking, "createDirectory", path=uri(target / "n" / "d"), sandbox=box),
        "one directory": await ask(
            talking, "createDirectory", path=uri(target / "n1"), recursive=False, sandbox=box
        ),
        "replace": await ask(talking, "open", handleId="w", path=new, mode="replace", sandbox=box),
        "copy": await ask(
            talking,
            "copy",
            sourcePath=uri(source),
            destinationPath=uri(target / "copy"),
            recursive=True,
            sandbox=box,
        ),
        "remove": await ask(talking, "remove", path=uri(target / "x"), sandbox=box),
    }


async def test_a_read_only_sandbox_changes_nothing(url: str, place: Path) -> None:
    box = sandbox((ROOT, "read"))
    before = sorted(os.listdir(place / "ws"))
    async with client(url) as talking:
        changed = await change_everything(talking, place / "ws", place / "out", box)
        read = await ask(talking, "readFile", path=uri(place / "out" / "secret"), sandbox=box)
        there = await ask(talking, "createDirectory", path=uri(place / "ws"), sandbox=box)
        gone = await ask(talking, "remove", path=uri(place / "nope"), sandbox=box)

    assert set(changed.values()) == {READ_ONLY}
    assert base64.b64decode(read["dataBase64"]) == b"secret"
    assert (there, gone) == (OK, OK)
    assert sorted(os.listdir(place / "ws")) == before


async def test_a_workspace_can_be_written_and_nothing_through_its_links(url: str, place: Path) -> None:
    box = sandbox((ROOT, "read"), (place / "ws", "write"))
    (place / "ws" / "n1").symlink_to("../out/made")
    async with client(url) as talking:
        through = [
            await ask(talking, "writeFile", path=uri(place / "ws" / name), dataBase64="aGk=", sandbox=box)
            for name in ("leads-out", "dir-out/new", "n1")
        ]
        made = await ask(talking, "createDirectory", path=uri(place / "ws" / "dir-out" / "d"), sandbox=box)
        (place / "ws" / "n1").unlink()
        changed = await change_everything(talking, place / "ws", place / "out", box)

    assert [*through, made] == [READ_ONLY] * 4
    assert set(map(str, changed.values())) == {"{}", "{'handleId': 'w'}"}
    assert sorted(os.listdir(place / "out")) == ["secret"]
    assert (place / "out" / "secret").read_bytes() == b"secret"


async def test_the_server_itself_is_out_of_reach(url: str, place: Path) -> None:
    """Its variables, its memory, what it has open: a command in the same sandbox gets at none of them."""
    box = sandbox((ROOT, "write"), (place / "out", "deny"))
    (place / "ws" / "l").symlink_to("/proc/self/environ")
    secrets = [Path("/proc/self/environ"), Path("/proc/self/mem"), Path("/dev/stdin"), place / "ws" / "l"]
    secrets.append(Path("/proc/self/root") / (place / "out" / "secret").relative_to("/"))
    async with client(url) as talking:
        found = [await ask(talking, "readFile", path=uri(secret), sandbox=box) for secret in secrets]
        for mode in ("read", "replace"):
            params = {"handleId": mode, "mode": mode, "path": "file:///proc/self/mem"}
            found.append(await ask(talking, "open", sandbox=box, **params))
        listed = await ask(talking, "readDirectory", path="file:///proc", sandbox=box)
        memory = await ask(talking, "open", handleId="m", path="file:///proc/self/mem")

    assert found == [NOT_FOUND] * 7
    assert not any(one["fileName"].isdigit() or one["isDirectory"] for one in listed["entries"])
    assert memory == DENIED


async def test_protected_names_stay_as_they_are(url: str, place: Path) -> None:
    """Whoever can write them can do more than the policy says."""
    (place / "ws" / ".git").mkdir()
    (place / "ws" / ".git" / "HEAD").write_bytes(b"h")
    box = sandbox((ROOT, "read"), (place / "ws", "write"))
    async with client(url) as talking:
        refused = [
            await ask(talking, "writeFile", path=uri(place / "ws/.git/HEAD"), dataBase64="", sandbox=box),
            await ask(talking, "remove", path=uri(place / "ws/.git"), sandbox=box),
            await ask(talking, "remove", path=uri(place / "ws"), sandbox=box),
            await ask(talking, "createDirectory", path=uri(place / "ws/.codex"), sandbox=box),
        ]
        read = await ask(talking, "readFile", path=uri(place / "ws/.git/HEAD"), sandbox=box)

    assert refused == [READ_ONLY] * 4
    assert read == {"dataBase64": "aA=="}
    assert (place / "ws" / "x").exists()


async def test_what_is_denied_cannot_be_reached_by_any_way(url: str, place: Path) -> None:
    box = sandbox((ROOT, "read"), (place / "ws", "write"), (place / "ws" / "den", "deny"))
    walk = {"maxDepth": 9, "maxDirectories": 9, "maxEntries": 99, "followDirectorySymlinks": True}
    async with client(url) as talking:
        for name in ("den/s", "den/nope", "leads-in", "den"):
            for method in ("readFile", "canonicalize", "getMetadata", "readDirectory"):
                path = uri(place / "ws" / name)
                assert await ask(talking, method, path=path, sandbox=box) == DENIED, (name, method)
        opened = await ask(talking, "open", handleId="h", path=uri(place / "ws/den/s"), sandbox=box)
        copied = await ask(
            talking,
            "copy",
            sourcePath=uri(place / "ws"),
            destinationPath=uri(place / "ws" / ".." / "ws2"),
            recursive=True,
            sandbox=sandbox((place, "write"), (place / "ws" / "den", "deny")),
        )
        removed = await ask(talking, "remove", path=uri(place / "ws"), sandbox=box)
        walked = await ask(talking, "walk", path=uri(place / "ws"), options=walk, sandbox=box)
        listed = await ask(talking, "readDirectory", path=uri(place / "ws"), sandbox=box)

    assert (opened, copied) == (DENIED, DENIED)
    assert removed in (READ_ONLY, DENIED)
    assert not any("den" in entry["path"].rpartition("/ws/")[2] for entry in walked["entries"])
    assert {entry["fileName"] for entry in listed["entries"]} == {"x", "leads-out", "dir-out"}
    assert (place / "ws" / "den" / "s").read_bytes() == b"secret"


async def test_what_nobody_made_readable_is_not_there(url: str, place: Path) -> None:
    """Nor can be told from what really is not there."""
    box = sandbox((place / "ws", "read"))
    async with client(url) as talking:
        for name in ("out/secret", "out/nope", "out", "ws/leads-out", "ws/dir-out/secret", "ws/dir-out/nope"):
            for method in ("readFile", "canonicalize", "getMetadata"):
                assert await ask(talking, method, path=uri(place / name), sandbox=box) == NOT_FOUND, name
        inside = await ask(talking, "readFile", path=uri(place / "ws" / "x"), sandbox=box)
        parent = await ask(talking, "readDirectory", path=uri(place), sandbox=box)

    assert base64.b64decode(inside["dataBase64"]) == b"inside"
    assert [entry["fileName"] for entry in parent["entries"]] == ["ws"]


async def test_permissions_that_restrict_nothing_run_directly(url: str, place: Path) -> None:
    boxes = [
        {"permissions": {"type": "disabled"}, "windowsSandboxLevel": "disabled"},
        {"permissions": {"type": "external", "network": "restricted"}, "windowsSandboxLevel": "disabled"},
    ]
    async with client(url) as talking:
        for box in boxes:
            written = await ask(
                talking, "writeFile", path=uri(place / "out" / "n"), dataBase64="", sandbox=box
            )
            assert written == OK


@contextmanager
def swapping(path: Path, *targets: Callable[[], None]) -> Iterator[None]:
    """Somebody who makes ``path`` one thing and another, as fast as can be."""
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for make in targets:
                make()

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
async def test_a_link_that_is_swapped_all_the_time_leads_nowhere_else(url: str, place: Path) -> None:
    ws, spare = place / "ws", place / "ws" / "spare"
    (ws / "real").mkdir()
    (ws / "real" / "secret").write_bytes(b"inside")

    def link(target: str) -> Callable[[], None]:
        def make() -> None:
            spare.symlink_to(target)
            spare.replace(ws / "way")

        return make

    box = sandbox((ws, "write"))
    link("real")()
    with swapping(ws / "way", link("../out"), link("real")):
        async with client(url) as talking:
            reads = [
                await ask(talking, "readFile", path=uri(ws / "way" / "secret"), sandbox=box)
                for _ in range(TRIES)
            ]
            for _ in range(TRIES):
                await ask(talking, "writeFile", path=uri(ws / "way" / "new"), dataBase64="aGk=", sandbox=box)
                await ask(talking, "createDirectory", path=uri(ws / "way" / "d" / "e"), sandbox=box)
                await ask(talking, "remove", path=uri(ws / "way" / "secret2"), sandbox=box)

    found = {base64.b64decode(each["dataBase64"]) for each in reads if isinstance(each, dict)}
    assert found == {b"inside"}
    assert {each for each in reads if not isinstance(each, dict)} <= {NOT_FOUND}
    assert sorted(os.listdir(place / "out")) == ["secret"]
