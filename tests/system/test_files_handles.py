"""Open files and watches, against the real program: they belong to a connection and end with it."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import Client, Refusal, client
from tests.fakes.file_talk import uri
from tests.fakes.frames import TEXT, frame_bytes
from tests.fakes.server import Program, eventually, open_files, program_at, serving

MIB = 1 << 20
BAD_DESCRIPTOR = (-32603, "Bad file descriptor (os error 9)")


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    with program_at("--endpoint", "exec") as running:
        yield running


@pytest.fixture
def url(served: tuple[Program, str]) -> str:
    return served[1]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"hello")
    return path


async def ask(talking: Client, method: str, **params: Any) -> Any:
    """The result, or code and words of the refusal."""
    try:
        return await talking.call(f"fs/{method}", params)
    except Refusal as refusal:
        return refusal.code, refusal.text


def unknown(name: str) -> tuple[int, str]:
    return -32004, f"unknown file handle `{name}`"


async def test_blocks_are_read_by_their_place(url: str, file: Path) -> None:
    async with client(url) as talking:
        assert await ask(talking, "open", handleId="h", path=uri(file)) == {"handleId": "h"}
        blocks = [
            await ask(talking, "readBlock", handleId="h", offset=offset, len=length)
            for offset, length in ((0, 4), (4, 3), (0, 5), (0, 6), (99, 1), (2**63 - 10, 3))
        ]
        file.unlink()
        after = await ask(talking, "readBlock", handleId="h", offset=0, len=5)

    chunks = [(base64.b64decode(block["chunk"]), block["eof"]) for block in blocks]
    assert chunks == [
        (b"hell", False),
        (b"o", True),
        (b"hello", False),
        (b"hello", True),
        (b"", True),
        (b"", True),
    ]
    assert after == {"chunk": "aGVsbG8=", "eof": False}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"offset": 0, "len": 0}, (-32600, "file read block length must be between 1 and 1048576")),
        ({"offset": 0, "len": MIB + 1}, (-32600, "file read block length must be between 1 and 1048576")),
        ({"offset": -1, "len": 1}, (-32602, "invalid number")),
        ({"offset": 2**64, "len": 1}, (-32602, "invalid number")),
        ({"offset": 2**63 - 1, "len": 3}, (-32600, "Invalid argument (os error 22)")),
        ({"offset": 2**64 - 1, "len": 3}, (-32600, "Invalid argument (os error 22)")),
    ],
)
async def test_a_read_out_of_range_is_refused(url: str, file: Path, params: Any, expected: Any) -> None:
    async with client(url) as talking:
        await ask(talking, "open", handleId="h", path=uri(file))
        assert await ask(talking, "readBlock", handleId="h", **params) == expected


async def test_blocks_are_written_by_their_place(url: str, file: Path) -> None:
    block, more = (base64.b64encode(bytes(size)).decode() for size in (MIB, MIB + 1))
    async with client(url) as talking:
        assert await ask(talking, "open", handleId="w", path=uri(file), mode="replace") == {"handleId": "w"}
        assert file.read_bytes() == b""
        answers = [
            await ask(talking, "writeBlock", handleId="w", offset=offset, chunk=chunk)
            for offset, chunk in ((4, "aGk="), (1, "aGk="), (MIB, block))
        ]
        refused = [
            await ask(talking, "writeBlock", handleId="w", offset=offset, chunk=chunk)
            for offset, chunk in ((0, ""), (0, more), (0, "*"), (2**63 - 2, "aGk="))
        ]

    assert answers == [{}, {}, {}]
    assert file.read_bytes() == b"\0hi\0hi" + bytes(2 * MIB - 6)
    size = (-32600, "file write block length must be between 1 and 1048576")
    assert refused == [
        size,
        size,
        (-32602, "Invalid symbol 42, offset 0."),
        (-32600, "file write range exceeds the signed 64-bit file offset limit"),
    ]


async def test_the_wrong_direction_is_an_error_of_the_descriptor(
    url: str, file: Path, tmp_path: Path
) -> None:
    """A read that the system refuses closes the file; a write does not."""
    async with client(url) as talking:
        await ask(talking, "open", handleId="r", path=uri(file))
        await ask(talking, "open", handleId="w", path=uri(tmp_path / "new"), mode="replace")
        wrong = [
            await ask(talking, "writeBlock", handleId="r", offset=0, chunk="aGk="),
            await ask(talking, "readBlock", handleId="w", offset=0, len=1),
        ]
        after = [
            await ask(talking, "readBlock", handleId="r", offset=0, len=1),
            await ask(talking, "writeBlock", handleId="w", offset=0, chunk="aGk="),
        ]

    assert wrong == [BAD_DESCRIPTOR, BAD_DESCRIPTOR]
    assert after == [{"chunk": "aA==", "eof": False}, unknown("w")]


async def test_names_of_open_files(url: str, file: Path) -> None:
    async with client(url) as talking, client(url) as other:
        first = await ask(talking, "open", handleId="é" * 16, path=uri(file))
        long = await ask(talking, "open", handleId="é" * 17, path="file:///nope")
        taken = await ask(talking, "open", handleId="é" * 16, path=uri(file), mode="replace")
        elsewhere = await ask(other, "readBlock", handleId="é" * 16, offset=0, len=1)
        closed = [await ask(talking, "close", handleId="é" * 16) for _ in range(2)]
        again = await ask(talking, "open", handleId="é" * 16, path=uri(file))

    assert first == again == {"handleId": "é" * 16}
    assert long == (-32600, "file handle ID must not exceed 32 bytes")
    assert taken == (-32600, f"file handle `{'é' * 16}` already exists")
    assert elsewhere == unknown("é" * 16)
    assert closed == [{}, {}]
    assert file.read_bytes() == b"hello"


async def test_a_connection_has_128_open_files_and_they_end_with_it(
    served: tuple[Program, str], file: Path
) -> None:
    server, url = served
    async with client(url) as warm:
        await ask(warm, "getMetadata", path=uri(file))
    before = open_files(server.pid)
    async with client(url) as talking:
        opened = [await ask(talking, "open", handleId=str(n), path=uri(file)) for n in range(128)]
        full = await ask(talking, "open", handleId="more", path=uri(file), mode="replace")
        held = open_files(server.pid) - before

    assert opened == [{"handleId": str(n)} for n in range(128)]
    assert full == (-32600, "at most 128 file handles may be open per connection")
    assert file.read_bytes() == b"hello"
    assert held >= 128
    await eventually(lambda: open_files(server.pid) <= before)


async def test_requests_about_one_file_keep_their_order(url: str, tmp_path: Path) -> None:
    """They run side by side, but a client that sends one behind the other may rely on it."""
    where = uri(tmp_path / "deep" / "file")
    requests: list[tuple[str, Any]] = [("fs/createDirectory", {"path": uri(tmp_path / "deep")})]
    for n in range(50):
        data = base64.b64encode(b"%d" % n).decode()
        requests.append(("fs/writeFile", {"path": where, "dataBase64": data}))
        requests.append(("fs/readFile", {"path": where}))
    requests += [
        ("fs/open", {"handleId": "h", "path": where}),
        ("fs/readBlock", {"handleId": "h", "offset": 0, "len": 9}),
        ("fs/close", {"handleId": "h"}),
        ("fs/remove", {"path": uri(tmp_path / "deep")}),
    ]
    async with client(url) as talking:
        answers = [await talking.result(answer) for answer in talking.post_together(*requests)]

    read = [base64.b64decode(answer["dataBase64"]) for answer in answers[2:102:2]]
    assert read == [b"%d" % n for n in range(50)]
    assert base64.b64decode(answers[-3]["chunk"]) == b"49"
    assert os.listdir(tmp_path) == []


# Watches.


def changes(talking: Client) -> list[int]:
    return [
        message["params"]["watchId"]
        for message in talking.messages
        if message.get("method") == "fs/missingChanged"
    ]


@pytest.mark.parametrize("path", ["n", "n/a/b", "d/n"])
@pytest.mark.parametrize("present", [None, "d"])
async def test_something_that_appears_is_told_once(
    url: str, tmp_path: Path, path: str, present: str | None
) -> None:
    (tmp_path / "d").mkdir()
    there = None if present is None else uri(tmp_path / present)
    async with client(url) as talking:
        answer = await ask(talking, "watchMissing", watchId=7, missing=[uri(tmp_path / path)], present=there)
        (tmp_path / "unrelated").touch()
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
        await talking.until(lambda: changes(talking))
        (tmp_path / path).unlink()
        (tmp_path / path).touch()
        again = await ask(talking, "watchMissing", watchId=7, missing=[uri(tmp_path / "z")])

    assert answer == {"watching": True}
    assert again == {"watching": False}
    assert changes(talking) == [7]


async def test_the_end_of_what_is_there_is_told_too(url: str, tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    missing = [uri(tmp_path / "d" / "e" / "n")]
    async with client(url) as talking:
        await ask(talking, "watchMissing", watchId=1, missing=missing)
        (tmp_path / "d").rename(tmp_path / "moved")
        await talking.until(lambda: changes(talking) == [1])
        await ask(talking, "watchMissing", watchId=2, missing=missing, present=uri(tmp_path / "moved"))
        (tmp_path / "moved" / "e").rmdir()
        (tmp_path / "moved").rmdir()
        await talking.until(lambda: changes(talking) == [1, 2])


async def test_a_newer_watch_takes_the_place_of_the_last(url: str, tmp_path: Path) -> None:
    async with client(url) as talking:
        for number, name in ((5, "a"), (6, "b")):
            params = {"watchId": number, "missing": [uri(tmp_path / name)]}
            assert await ask(talking, "watchMissing", **params) == {"watching": True}
        older = await ask(talking, "watchMissing", watchId=4, missing=[uri(tmp_path / "c")])
        for name in "acb":
            (tmp_path / name).touch()
        await talking.until(lambda: changes(talking))

    assert older == {"watching": False}
    assert changes(talking) == [6]


@pytest.mark.parametrize(
    "params",
    [
        {"watchId": 0, "missing": ["U:/n"]},
        {"watchId": 1, "missing": []},
        {"watchId": 1, "missing": ["U:/f"]},
        {"watchId": 1, "missing": ["U:/n", "U:/f"]},
        {"watchId": 1, "missing": ["U:/f/n"]},
        {"watchId": 1, "missing": ["U:/link/n"]},
        {"watchId": 1, "missing": ["U:/dang"]},
        {"watchId": 1, "missing": ["file:///proc/n"]},
        {"watchId": 1, "missing": ["file://host/n"]},
        {"watchId": 1, "missing": ["U:/n"], "present": "U:/nope"},
        {"watchId": 1, "missing": ["U:/n"], "present": "U:/link"},
        {"watchId": 1, "missing": ["U:/n"] * 65},
        {"watchId": 1, "missing": ["U:" + "/n" * 65]},
    ],
)
async def test_what_cannot_be_watched_is_said(url: str, tmp_path: Path, params: Any) -> None:
    """So that a client looks for itself instead of waiting for ever."""
    (tmp_path / "f").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "dang").symlink_to("nowhere")
    here = uri(tmp_path)
    asked = {**params, "missing": [path.replace("U:", here) for path in params["missing"]]}
    if "present" in params:
        asked["present"] = params["present"].replace("U:", here)
    async with client(url) as talking:
        assert await ask(talking, "watchMissing", **asked) == {"watching": False}


async def test_many_connections_can_watch(url: str, tmp_path: Path) -> None:
    """The kernel has few instances of what watches; the server needs one."""
    talking = [await Client.open(url) for _ in range(150)]
    missing = [uri(tmp_path / "n")]
    answers = [await ask(each, "watchMissing", watchId=1, missing=missing) for each in talking]
    (tmp_path / "n").touch()
    for each in talking:
        await each.until(partial(changes, each))
        await each.close()

    assert answers == [{"watching": True}] * 150


async def test_files_that_are_being_opened_when_their_connection_ends_are_closed(
    served: tuple[Program, str], file: Path
) -> None:
    """The end may come in the same packet, before any of the requests has had its turn."""
    program, url = served

    async def leave() -> None:
        talking = await Client.open(url)
        asked = [
            talking.compose("fs/open", {"handleId": str(number), "path": uri(file)}) for number in range(16)
        ]
        packet = [*(message for message, _ in asked), b'{"method":"no/such/notification"}']
        talking.wire.writer.write(b"".join(frame_bytes(TEXT, message) for message in packet))
        await talking.ended()
        await talking.close()

    def held() -> int:
        links = Path(f"/proc/{serving(program.pid)}/fd")
        return sum(os.path.realpath(link) == str(file) for link in links.iterdir())

    for _ in range(3):
        await leave()

    await eventually(lambda: held() == 0)
