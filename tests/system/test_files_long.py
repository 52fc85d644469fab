"""Answers that are longer than what a server should hold, against the real program."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.backends import LONG
from tests.fakes.client import Client, client, start_params
from tests.fakes.file_talk import uri
from tests.fakes.frames import CONTINUATION, PING, PONG, TEXT, Frame, Wire
from tests.fakes.server import COMMAND, PATIENCE, Program, eventually, program_at, resident_bytes, serving

MIB = 1 << 20
LARGE = (500 if LONG else 100) * MIB


@pytest.fixture
def served() -> Iterator[tuple[Program, str]]:
    """A server of its own for each test, because they look at its memory."""
    with program_at("--endpoint", "exec") as running:
        yield running


def make_file(path: Path, size: int) -> str:
    """A file whose mebibytes differ; gives its hash."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for number in range(size // MIB):
            block = number.to_bytes(4, "big") * (MIB // 4)
            file.write(block)
            digest.update(block)
        file.write(b"tail")
        digest.update(b"tail")
    return digest.hexdigest()


def peak(server: Program) -> int:
    """The most memory that the server has had since its mark was last reset."""
    text = Path(f"/proc/{serving(server.pid)}/status").read_text()
    return 1024 * int(text.partition("VmHWM:")[2].split()[0])


def reset_peak(server: Program) -> int:
    Path(f"/proc/{serving(server.pid)}/clear_refs").write_text("5")
    return peak(server)


async def connect(url: str) -> Wire:
    """A connection whose frames the test reads itself, with everything warm that a read needs."""
    wire = await Wire.open(url)
    for message in (
        {"id": 1, "method": "initialize", "params": {"clientName": "t"}},
        {"method": "initialized"},
        {"id": 2, "method": "fs/readFile", "params": {"path": "file:///proc/version"}},
    ):
        wire.send_text(json.dumps(message))
    while json.loads((await receive(wire)).payload)["id"] != 2:
        pass
    return wire


async def receive(wire: Wire) -> Frame:
    """The next frame but for pings, which come in between when everything takes its time."""
    while True:
        async with asyncio.timeout(PATIENCE):
            frame = await wire.receive()
        assert frame is not None, "the connection ended"
        if frame.op != PING:
            return frame
        wire.send(PONG, frame.payload)


def ask(wire: Wire, number: int, path: Path) -> None:
    wire.send_text(json.dumps({"id": number, "method": "fs/readFile", "params": {"path": uri(path)}}))


async def read_answer(wire: Wire, number: int) -> tuple[str, int]:
    """The hash of a file in an answer in fragments, and the size of the largest of them."""
    digest, largest = hashlib.sha256(), 0
    first = await receive(wire)
    assert (first.op, first.final) == (TEXT, False)
    assert first.payload == b'{"id":%d,"result":{"dataBase64":"' % number
    while not (frame := await receive(wire)).final:
        assert frame.op == CONTINUATION
        largest = max(largest, len(frame.payload))
        digest.update(base64.b64decode(frame.payload))
    assert frame.payload == b'"}}'
    return digest.hexdigest(), largest


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(60)
async def test_hundreds_of_mib_are_read_in_little_memory(served: tuple[Program, str], tmp_path: Path) -> None:
    """By a client that takes what it gets, and by one that takes nothing for a while."""
    server, url = served
    expected = make_file(tmp_path / "large", LARGE)
    wire = await connect(url)
    before = reset_peak(server)

    ask(wire, 5, tmp_path / "large")
    digest, largest = await read_answer(wire, 5)
    fast = peak(server) - before
    ask(wire, 6, tmp_path / "large")
    sizes = [0]

    def is_settled() -> bool:
        sizes.append(resident_bytes(server.pid))
        return len(sizes) > 40 and max(sizes[-40:]) - min(sizes[-40:]) < 65_536

    await eventually(is_settled)
    slow_digest, _ = await read_answer(wire, 6)
    slow = peak(server) - before
    await wire.close()

    assert digest == slow_digest == expected
    assert largest <= 8 * MIB
    assert fast < 64 * MIB, fast / MIB
    assert slow < 64 * MIB, slow / MIB


@pytest.mark.slow
async def test_what_is_said_meanwhile_waits_in_order(served: tuple[Program, str], tmp_path: Path) -> None:
    """Fragments of one message cannot be mixed with another; control frames can.  Requests are still read."""
    _, url = served
    expected = make_file(tmp_path / "large", 40 * MIB)
    wire = await connect(url)
    ask(wire, 5, tmp_path / "large")
    first = await receive(wire)
    assert first.payload.startswith(b'{"id":5,')
    for number in (6, 7):
        wire.send_text(json.dumps({"id": number, "method": "environment/status"}))
    ask(wire, 8, tmp_path / "large")
    wire.send(PING, b"still there?")

    digest, pongs = hashlib.sha256(), 0
    while not (frame := await receive(wire)).final or frame.op == PONG:
        if frame.op == PONG:
            pongs += 1
        else:
            digest.update(base64.b64decode(frame.payload))
    between = [json.loads((await receive(wire)).payload) for _ in range(2)]
    second, _ = await read_answer(wire, 8)
    await wire.close()

    assert digest.hexdigest() == second == expected
    assert pongs == 1
    assert between == [{"id": number, "result": {"status": "ready"}} for number in (6, 7)]


@pytest.mark.slow
async def test_output_of_processes_waits_in_the_process(served: tuple[Program, str], tmp_path: Path) -> None:
    """While the peer takes a long answer it is behind; what its processes say must not pile up."""
    server, url = served
    make_file(tmp_path / "large", 60 * MIB)
    async with client(url) as talking:
        await talking.start("warm", "head", "-c", "10000000", "/dev/zero")
        await talking.closed("warm")
        before = reset_peak(server)
        talking.stop_listening()
        answer = talking.post("fs/readFile", {"path": uri(tmp_path / "large")})
        start = talking.post("process/start", start_params("p", "head", "-c", "300000000", "/dev/zero"))
        sizes = [0]

        def is_settled() -> bool:
            sizes.append(resident_bytes(server.pid))
            return len(sizes) > 40 and max(sizes[-40:]) - min(sizes[-40:]) < 65_536

        await eventually(is_settled)
        grown = peak(server) - before
        talking.on_message = lambda message: _drop_output(talking, message)
        talking.listen_again()
        result = await talking.result(answer)
        await talking.result(start)
        tale = await talking.closed("p")

    assert len(result["dataBase64"]) == 4 * ((60 * MIB + 4 + 2) // 3)
    assert tale.exit_codes == [0]
    assert grown < 64 * MIB, grown / MIB


def _drop_output(talking: Client, message: Any) -> None:
    tale = talking.tale("p")
    tale.events = [event for event in tale.events if event[0] != "output"]


@pytest.mark.slow
async def test_a_client_that_leaves_lets_go_of_the_file(served: tuple[Program, str], tmp_path: Path) -> None:
    server, url = served
    make_file(tmp_path / "large", 40 * MIB)
    wire = await connect(url)
    ask(wire, 5, tmp_path / "large")
    await receive(wire)
    wire.abort()

    def is_open() -> bool:
        links = Path(f"/proc/{serving(server.pid)}/fd").iterdir()
        return any(_target(link) == str(tmp_path / "large") for link in links)

    await eventually(lambda: not is_open())
    async with client(url) as talking:
        assert await talking.call("environment/status") == {"status": "ready"}


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


@pytest.mark.slow
def test_on_standard_output_a_long_answer_is_one_line(tmp_path: Path) -> None:
    expected = make_file(tmp_path / "large", 40 * MIB)
    messages = [
        {"id": 1, "method": "initialize", "params": {"clientName": "t"}},
        {"method": "initialized"},
        {"id": 2, "method": "fs/readFile", "params": {"path": uri(tmp_path / "large")}},
        {"id": 3, "method": "fs/getMetadata", "params": {"path": uri(tmp_path)}},
    ]
    with subprocess.Popen(
        [*COMMAND, "--listen", "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{json.dumps(message)}\n" for message in messages).encode())
        server.stdin.flush()
        lines = [json.loads(server.stdout.readline()) for _ in range(3)]
        server.stdin.close()

    answers = {line["id"]: line["result"] for line in lines}
    data = base64.b64decode(answers[2]["dataBase64"])
    assert hashlib.sha256(data).hexdigest() == expected
    assert answers[3]["isDirectory"]
