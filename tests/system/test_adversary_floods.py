"""Floods: one client asks for all it can get; its neighbours notice no more than a delay.

``HOLDFAST_LONG=1`` sends ten times as much.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator

import msgspec
import pytest

from tests.fakes.attackers import answer, attacker, dial, reset, shaken
from tests.fakes.backends import LONG
from tests.fakes.client import Message, start_params
from tests.fakes.company import company, no_trace
from tests.fakes.frames import CONTINUATION, PING, PONG, TEXT, Wire, frame_bytes
from tests.fakes.server import Program, eventually, program_at, resident_bytes
from tests.fakes.web import Visit, web

MIB = 1 << 20
TIMES = 10 if LONG else 1

pytestmark = [pytest.mark.slow, pytest.mark.stress, pytest.mark.timeout(600 if LONG else 60)]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    with program_at() as served:
        yield served


def request(key: object, method: str, params: object = None) -> bytes:
    return frame_bytes(TEXT, msgspec.json.encode({"id": key, "method": method, "params": params}))


def send_all(wire: Wire, data: bytes) -> asyncio.Task[None]:
    """Send on while the body goes on; the server may stop reading."""

    async def go_on() -> None:
        view = memoryview(data)
        for at in range(0, len(view), MIB):
            wire.writer.write(view[at : at + MIB])
            await wire.writer.drain()

    return asyncio.get_running_loop().create_task(go_on())


async def given_up(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_answers_that_nobody_reads_do_not_pile_up(served: tuple[Program, str]) -> None:
    """Above a bound the one who does not read is not read either."""
    program, url = served
    async with no_trace(program, url), company(url) as neighbours:
        wire = await Wire.open(url)
        before = resident_bytes(program.pid)
        sending = send_all(wire, request(1, "x" * MIB) * 160)
        await eventually(lambda: resident_bytes(program.pid) > before + 48 * MIB)
        for _ in range(10):
            await neighbours.is_well()
            assert resident_bytes(program.pid) < before + 160 * MIB
        assert not sending.done()
        await given_up(sending)
        wire.abort()
        await eventually(lambda: resident_bytes(program.pid) < before + 48 * MIB)


async def test_pongs_that_nobody_reads_do_not_pile_up(served: tuple[Program, str]) -> None:
    """The last ping is answered when the peer reads again."""
    program, url = served
    async with no_trace(program, url), company(url) as neighbours:
        wire = await Wire.open(url)
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]  # Of any socket.
        before = resident_bytes(program.pid)
        await send_all(wire, frame_bytes(PING, b"p" * 125) * (100_000 * TIMES))
        wire.send(PING, b"the last one")
        await neighbours.is_well()
        assert resident_bytes(program.pid) < before + 8 * MIB
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        while (frame := await wire.receive()) is not None and frame.payload != b"the last one":
            assert frame.op == PONG
        assert frame is not None
        wire.abort()


async def test_tiny_frames_cost_a_neighbour_little(served: tuple[Program, str]) -> None:
    """A message of a byte per frame, with empty ones in between."""
    program, url = served
    text = b'{"id":5,"method":"%b"}' % (b"x" * 40_000 * TIMES)
    frames = b"".join(
        frame_bytes(CONTINUATION, text[at : at + 1], final=False)
        + frame_bytes(CONTINUATION, b"", final=False)
        for at in range(len(text))
    )
    async with no_trace(program, url), company(url) as neighbours, attacker(url) as wire:
        sending = send_all(
            wire, frame_bytes(TEXT, b"", final=False) + frames + frame_bytes(CONTINUATION, b"")
        )
        await neighbours.is_well()
        told = await answer(wire, 5)
        await sending

    error = told["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32601


async def test_a_storm_of_connections_passes(served: tuple[Program, str]) -> None:
    """Opened and closed, with a word or without, cleanly or not."""
    program, url = served
    async with no_trace(program, url), company(url) as neighbours:
        for number in range(500 * TIMES):
            made = dial(url)
            if number % 3:
                made.send(b"GET / HTTP/1.1\r\n"[: number % 17])
            if number % 2:
                reset(made)
            else:
                made.close()
            if number % 100 == 0:
                await neighbours.is_well()


async def test_requests_of_all_kinds_without_a_break_are_each_answered_once(
    served: tuple[Program, str],
) -> None:
    """Unknown methods, wrong params, unknown processes and files."""
    program, url = served
    kinds: list[tuple[str, object]] = [
        ("no/such", None),
        ("process/read", {"processId": "nobody"}),
        ("process/write", {"processId": 5}),
        ("process/terminate", {"processId": "nobody"}),
        ("fs/open", {"handleId": "h", "path": "file:///nowhere"}),
        ("fs/readBlock", {"handleId": "nobody", "offset": 0, "length": 1}),
        ("environment/status", None),
    ]
    count = 3000 * TIMES
    flood = b"".join(request(key, *kinds[key % len(kinds)]) for key in range(1, count + 1))
    async with no_trace(program, url), company(url) as neighbours, attacker(url) as wire:
        sending = send_all(wire, flood)
        seen: list[int] = []
        while len(seen) < count and (frame := await wire.receive()) is not None:
            seen.append(msgspec.json.decode(frame.payload)["id"])
        await sending
        await neighbours.is_well()

    assert sorted(seen) == list(range(1, count + 1))


async def test_waiting_requests_have_a_limit_that_is_told(served: tuple[Program, str]) -> None:
    """Long reads, and writes to a child that does not read."""
    program, url = served
    async with no_trace(program, url), company(url) as neighbours, attacker(url) as wire:
        wire.writer.write(request(1, "process/start", start_params("p", "sleep", "1000", pipeStdin=True)))
        assert "result" in await answer(wire, 1)
        read = {"processId": "p", "waitMs": 600_000}
        data = base64.b64encode(bytes(64 * 1024)).decode()
        write = {"processId": "p", "chunk": data}
        flood = [request(key, "process/read", read) for key in range(2, 4002)]
        flood += [request(key, "process/write", {**write, "writeId": f"{key}"}) for key in range(4002, 4402)]
        sending = send_all(wire, b"".join(flood))
        refused: list[Message] = []
        while not refused or refused[-1]["id"] < 4401:
            frame = await wire.receive()
            assert frame is not None
            message = msgspec.json.decode(frame.payload)
            if "error" in message:
                refused.append(message)
        await sending
        await neighbours.is_well()
        assert all("requests waiting for an answer" in each["error"]["message"] for each in refused)
        wire.writer.write(request("end", "process/terminate", {"processId": "p"}))
        assert "result" in await answer(wire, "end")


async def test_as_many_files_and_processes_as_wanted_are_not_had(served: tuple[Program, str]) -> None:
    """The limit on open files of a connection is told; processes of an attacker end with its session."""
    program, url = served
    async with no_trace(program, url), company(url) as neighbours, attacker(url) as wire:
        opened = [
            request(n, "fs/open", {"handleId": f"{n}", "path": "file:///etc/passwd"}) for n in range(1, 201)
        ]
        starts = [request(n, "process/start", start_params(f"{n}", "sleep", "1000")) for n in range(201, 261)]
        sending = send_all(wire, b"".join(opened + starts))
        answers: dict[int, Message] = {}
        while len(answers) < 260:
            frame = await wire.receive()
            assert frame is not None
            message = msgspec.json.decode(frame.payload)
            if "id" in message:
                answers[message["id"]] = message
        await sending
        await neighbours.is_well()

    refused = [answers[key]["error"]["message"] for key in range(1, 201) if "error" in answers[key]]
    assert len(refused) == 200 - 128
    assert len(set(refused)) == 1
    assert all("result" in answers[key] for key in range(201, 261))


async def test_streams_of_others_whose_client_does_not_read_stand_still(served: tuple[Program, str]) -> None:
    """Bodies are not collected for who does not take them."""
    program, url = served
    sent = 0

    async def endless(visit: Visit) -> None:
        nonlocal sent
        visit.writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await visit.send(bytes(MIB))
            sent += MIB

    async with web(endless=endless) as site, no_trace(program, url), company(url) as neighbours:
        wire = await shaken(url)
        before = resident_bytes(program.pid)
        asked = {"method": "GET", "url": f"{site.url}/endless", "streamResponse": True}
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]  # Of any socket.
        wire.writer.write(
            b"".join(request(n, "http/request", {**asked, "requestId": f"r{n}"}) for n in range(1, 17))
        )
        await eventually(lambda: sent >= 16 * MIB)
        await neighbours.is_well(rounds=5)
        assert resident_bytes(program.pid) < before + 160 * MIB
        wire.abort()
        await eventually(lambda: site.open == 0)
