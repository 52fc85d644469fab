"""Clients of two generations against the real program.

Clients of the reference up to 0.140 send native absolute paths and writes without
an identifier; later ones send URIs and identifiers.  Both get the same answers.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.dialects.exec.methods import CATALOG
from tests.fakes.client import PATH, Client, Message, client
from tests.fakes.file_talk import uri
from tests.fakes.server import Program, program_at, resident_bytes
from tests.fakes.tree import grow, outline

Spell = Callable[[Path], str]
NAME = "a b%20c#?\u00e9"
"""In a URI every odd character of it is escaped; in a native path none is."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    with program_at("--endpoint", "exec") as running:
        yield running


@pytest.fixture(params=[uri, str], ids=["uri", "native"])
def spell(request: pytest.FixtureRequest) -> Spell:
    found: Spell = request.param
    return found


def start(name: str, *argv: str, cwd: str, **more: Any) -> Message:
    return {"processId": name, "argv": list(argv), "cwd": cwd, "env": {"PATH": PATH}, "tty": False, **more}


def sandbox(spell: Spell, root: Path) -> Message:
    """One with a path in every place that has one: everything can be read, ``root`` can be written."""
    entries = [
        {"path": {"type": "path", "path": spell(Path("/"))}, "access": "read"},
        {"path": {"type": "path", "path": spell(root)}, "access": "write"},
    ]
    files = {"type": "restricted", "entries": entries}
    return {
        "permissions": {"type": "managed", "file_system": files, "network": "restricted"},
        "windowsSandboxLevel": "disabled",
        "cwd": spell(root),
        "workspaceRoots": [spell(root)],
        "userHomeDir": spell(root),
        "temporaryDirectories": [spell(root)],
    }


async def test_a_program_starts_in_the_directory(
    served: tuple[Program, str], spell: Spell, tmp_path: Path
) -> None:
    """The list of processes tells it as a URI, whatever it was sent as."""
    place = tmp_path / NAME
    place.mkdir()
    async with client(served[1]) as talking:
        await talking.call("process/start", start("p", "pwd", cwd=spell(place)))
        await talking.closed("p")
        (told,) = (await talking.call("process/list"))["processes"]

        assert talking.tale("p").data().decode() == f"{place}\n"
        assert told["cwd"] == uri(place)


async def test_dot_segments_go_before_links_are_followed(
    served: tuple[Program, str], spell: Spell, tmp_path: Path
) -> None:
    async with client(served[1]) as talking:
        await talking.call("process/start", start("p", "pwd", cwd=spell(tmp_path) + "/none/.././."))
        await talking.closed("p")

        assert talking.tale("p").data().decode() == f"{tmp_path}\n"


# For each method with a path in its params: those params, and what comes of it.
FILES: dict[str, Callable[[Callable[[str], str]], tuple[Message, Any]]] = {
    "fs/readFile": lambda at: ({"path": at("f")}, {"dataBase64": "aGVsbG8="}),
    "fs/writeFile": lambda at: ({"path": at("new"), "dataBase64": "aGk="}, {}),
    "fs/createDirectory": lambda at: ({"path": at("x/y")}, {}),
    "fs/getMetadata": lambda at: ({"path": at("f")}, {"isFile": True, "size": 5}),
    "fs/canonicalize": lambda at: ({"path": at("lf")}, {"path": "f"}),
    "fs/readDirectory": lambda at: (
        {"path": at("d/sub")},
        {"entries": [{"fileName": "b", "isDirectory": False, "isFile": True}]},
    ),
    "fs/walk": lambda at: (
        {
            "path": at("d/sub"),
            "options": {
                "maxDepth": 2,
                "maxDirectories": 9,
                "maxEntries": 9,
                "followDirectorySymlinks": False,
            },
        },
        {"entries": [{"path": "d/sub/b", "kind": "file"}], "errors": [], "truncated": False},
    ),
    "fs/remove": lambda at: ({"path": at("d")}, {}),
    "fs/copy": lambda at: ({"sourcePath": at("d"), "destinationPath": at("e"), "recursive": True}, {}),
    "fs/rename": lambda at: ({"sourcePath": at("d"), "destinationPath": at("e")}, {}),
    "fs/archive": lambda at: ({"handleId": "h", "path": at("d")}, {"handleId": "h"}),
    "fs/extract": lambda at: ({"handleId": "h", "path": at("x/y")}, {"handleId": "h"}),
    "fs/open": lambda at: ({"handleId": "h", "path": at("f")}, {"handleId": "h"}),
    "capabilityRoots/discoverV1": lambda at: (
        {"roots": [{"id": "r", "path": at("d")}]},
        {
            "roots": [
                {
                    "id": "r",
                    "path": "d",
                    "plugin": None,
                    "skills": [],
                    "namespaceManifests": [],
                    "warnings": [],
                    "error": None,
                }
            ]
        },
    ),
    "fs/watchMissing": lambda at: (
        {"watchId": 1, "missing": [at("none")], "present": at("d")},
        {"watching": True},
    ),
}


CHANGES: dict[str, dict[str, bytes | str | None]] = {
    "fs/writeFile": {"new": b"hi"},
    "fs/createDirectory": {"x": None, "x/y": None},
    "fs/remove": dict.fromkeys(("d", "d/a", "d/sub", "d/sub/b", "d/up"), "gone"),
    "fs/copy": {"e": None, "e/a": b"A", "e/sub": None, "e/sub/b": b"BB", "e/up": "../f"},
    "fs/rename": {
        **dict.fromkeys(("d", "d/a", "d/sub", "d/sub/b", "d/up"), "gone"),
        "e": None,
        "e/a": b"A",
        "e/sub": None,
        "e/sub/b": b"BB",
        "e/up": "../f",
    },
    "fs/extract": {"x": None, "x/y": None},
}
"""What is on the disk afterwards, where that is not what was there before."""


def test_every_method_that_takes_a_path_is_tried() -> None:
    """Whoever adds one is told to add a case here."""
    assert {call.name for call in CATALOG.calls if call.name.startswith("fs/")} - set(FILES) == {
        "fs/readBlock",
        "fs/writeBlock",
        "fs/close",
    }


@pytest.mark.parametrize("sandboxed", [False, True], ids=["plain", "sandboxed"])
@pytest.mark.parametrize("method", FILES)
async def test_files_are_found(
    served: tuple[Program, str], spell: Spell, tmp_path: Path, method: str, *, sandboxed: bool
) -> None:
    """What is answered is a URI, and what is on the disk afterwards is the same for both."""
    root = tmp_path / NAME
    root.mkdir()
    before = outline(grow(root))
    params, expected = FILES[method](lambda name: spell(root / name))
    if sandboxed and method != "fs/watchMissing":
        params["sandbox"] = sandbox(spell, root)

    async with client(served[1]) as talking:
        answer = await talking.call(method, params)

    told = json.loads(json.dumps(answer).replace(uri(root) + "/", ""))
    assert told.items() >= expected.items()
    after = outline(root)
    changed = {
        name: after.get(name, "gone")
        for name in before | after
        if before.get(name, "gone") != after.get(name, "gone")
    }
    assert changed == CHANGES.get(method, {})


@pytest.mark.parametrize("identifier", [{}, {"writeId": None}], ids=["absent", "null"])
async def test_a_write_without_an_identifier_is_written_each_time(
    served: tuple[Program, str], tmp_path: Path, identifier: Message
) -> None:
    write = {"processId": "p", "chunk": base64.b64encode(b"x\n").decode(), **identifier}
    async with client(served[1]) as talking:
        await talking.call("process/start", start("p", "head", "-n3", cwd=str(tmp_path), pipeStdin=True))
        answers = [await talking.call("process/write", write) for _ in range(3)]
        await talking.closed("p")

        assert answers == [{"status": "accepted"}] * 3
        assert talking.tale("p").data() == b"x\nx\nx\n"


async def test_writes_with_and_without_identifiers_do_not_disturb_each_other(
    served: tuple[Program, str], tmp_path: Path
) -> None:
    """Those without take no place among the identifiers that are remembered."""
    async with client(served[1]) as talking:
        await talking.call("process/start", start("p", "cat", cwd=str(tmp_path), pipeStdin=True))
        for data, identifier in (
            (b"a", "1"),
            (b"b", None),
            (b"a", "1"),
            (b"b", None),
            (b"c", "2"),
            (b"c", "2"),
        ):
            write = {"processId": "p", "chunk": base64.b64encode(data).decode(), "writeId": identifier}
            assert await talking.call("process/write", write) == {"status": "accepted"}
        await talking.call("process/closeStdin", {"processId": "p"})
        await talking.closed("p")

        assert talking.tale("p").data() == b"abbc"


@pytest.mark.slow
async def test_a_message_of_the_largest_size_comes_in_one_frame(
    served: tuple[Program, str], tmp_path: Path
) -> None:
    """The reference's own client writes a patched file of 20 MB as one frame of 27 MB.

    What the message took is given back.
    """
    server, url = served
    target = tmp_path / "big"
    data = bytes(range(256)) * (45 << 12)
    async with client(url) as talking:
        before = resident_bytes(server.pid)
        params = {"path": str(target), "dataBase64": base64.b64encode(data).decode()}
        message, answer = talking.compose("fs/writeFile", params)
        assert 60 << 20 < len(message) < 64 << 20
        talking.wire.send_text(message)
        await talking.result(answer, within=60)

        assert hashlib.sha256(target.read_bytes()).digest() == hashlib.sha256(data).digest()
        assert resident_bytes(server.pid) - before < 32 << 20


async def test_a_message_over_the_largest_size_ends_the_connection_by_its_header(
    served: tuple[Program, str],
) -> None:
    """Nobody makes the server collect what it will refuse."""
    talking = await Client.open(served[1])
    talking.wire.writer.write(b"\x81\xff" + ((64 << 20) + 1).to_bytes(8, "big") + bytes(4))
    farewell = await talking.ended()
    await talking.close()

    assert farewell is not None
    assert (farewell.close_code, farewell.close_reason) == (
        1009,
        "message is over the limit of 67108864 bytes",
    )
