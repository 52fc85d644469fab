"""The channel on two descriptors: pipes, files, and the ways they end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import ConnectionLimits
from holdfast.poller import Poller
from holdfast.server.connection import Connection
from holdfast.server.stdio import StdioChannel
from holdfast.telemetry import Silent
from tests.fakes.endpoint import ToyConversation, ToyEndpoint, introduce, request
from tests.fakes.server import PATIENCE, eventually

LIMITS = ConnectionLimits(message_bytes=1000, output_bytes=1000, close_seconds=0.1)


class Talk:
    """A channel that serves the toy dialect."""

    def __init__(self, limits: ConnectionLimits) -> None:
        loop = asyncio.get_running_loop()
        self._limits = limits
        self.ended = asyncio.Event()
        self.poller = Poller()
        self.poller.attach(loop)
        self._endpoint = ToyEndpoint()
        self.channel = StdioChannel(
            self._connect,
            limits=limits,
            loop=loop,
            poller=self.poller,
            on_end=self.ended.set,
            on_limit=lambda limit: self.reached.append(limit),
        )
        self.reached: list[str] = []

    def _connect(self, channel: StdioChannel) -> Connection:
        connection = Connection(
            channel, self._endpoint, telemetry=Silent(), limits=self._limits, on_end=lambda connection: None
        )
        introduce(connection, self._endpoint)
        return connection

    @property
    def toy(self) -> ToyConversation:
        return self._endpoint.conversations[0]


@contextlib.asynccontextmanager
async def talk(source: int, output: int, limits: ConnectionLimits = LIMITS) -> AsyncIterator[Talk]:
    """A channel on two descriptors, which stay the caller's."""
    opened = Talk(limits)
    await opened.channel.open(source, output)
    try:
        yield opened
    finally:
        await opened.channel.close()
        opened.poller.close()


class Pipes:
    """Two pipes, and our ends of them."""

    def __init__(self) -> None:
        self.source, self._write = os.pipe()
        self._read, self.output = os.pipe()
        self._open = {self.source, self._write, self._read, self.output}

    def say(self, data: bytes) -> None:
        os.write(self._write, data)

    def hang_up(self) -> None:
        self._close(self._write)

    def stop_reading(self) -> None:
        self._close(self._read)

    def hear(self) -> list[Any]:
        """Everything written so far, after the writing side was closed."""
        self._close(self.output)
        with os.fdopen(os.dup(self._read), "rb") as reader:
            return [json.loads(line) for line in reader]

    def read_line(self) -> bytes:
        """The next line, however long; waits for it."""
        with os.fdopen(os.dup(self._read), "rb") as reader:
            return reader.readline()

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            os.close(fd)

    def close(self) -> None:
        for fd in list(self._open):
            self._close(fd)


@pytest.fixture
def pipes() -> Any:
    made = Pipes()
    yield made
    made.close()


async def until_end(opened: Talk) -> None:
    async with asyncio.timeout(PATIENCE):
        await opened.ended.wait()


async def test_lines_are_messages_both_ways(pipes: Pipes) -> None:
    """Cut anywhere, blank lines and carriage returns between them."""
    data = b"\n" + request(1, "plain", "a") + b"\r\n  \n" + request(2, "plain", "b") + b"\n"
    async with talk(pipes.source, pipes.output) as opened:
        for at in range(len(data)):
            pipes.say(data[at : at + 1])
        pipes.hang_up()
        await until_end(opened)

    assert pipes.hear() == [{"id": 1, "result": "plain a"}, {"id": 2, "result": "plain b"}]
    assert opened.toy.told[-1] == "ended"


async def test_the_last_line_needs_no_end(pipes: Pipes) -> None:
    """Its answer is written before the channel ends."""
    async with talk(pipes.source, pipes.output) as opened:
        pipes.say(request(1, "plain", "a"))
        pipes.hang_up()
        await until_end(opened)

    assert pipes.hear() == [{"id": 1, "result": "plain a"}]


@pytest.mark.parametrize("turn_seconds", [60.0, -1.0], ids=["in one turn", "in turns"])
@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe\n", b"x" * 1001, b"x" * 1001 + b"\n", b'{"method":"breach"}\n'],
    ids=["not UTF-8", "too long", "too long with its end", "breach"],
)
async def test_what_cannot_be_read_on_ends_the_channel(
    pipes: Pipes, data: bytes, turn_seconds: float
) -> None:
    """What came before it is answered, what comes after is not; the end of input may follow at any time."""
    before = b"".join(request(number, "plain", "a") + b"\n" for number in range(3))
    async with talk(pipes.source, pipes.output, replace(LIMITS, turn_seconds=turn_seconds)) as opened:
        pipes.say(before + data + b"\n" + request(3, "plain", "b") + b"\n")
        await until_end(opened)
        pipes.say(b"\n" + request(4, "plain", "b") + b"\n")
        pipes.hang_up()

    assert pipes.hear() == [{"id": number, "result": "plain a"} for number in range(3)]


async def test_a_last_line_without_an_end_comes_behind_what_waits_for_its_turn(pipes: Pipes) -> None:
    async with talk(pipes.source, pipes.output, replace(LIMITS, turn_seconds=-1.0)) as opened:
        pipes.say(b"\n".join(request(number, "plain", "a") for number in range(3)))
        pipes.hang_up()
        await until_end(opened)

    assert pipes.hear() == [{"id": number, "result": "plain a"} for number in range(3)]


async def test_too_long_a_line_right_before_the_end_of_input_is_no_failure(pipes: Pipes) -> None:
    """Both ends come in one event; the second must not stumble over what the first left behind."""
    async with talk(pipes.source, pipes.output) as opened:
        pipes.say(b"x" * 1001)
        pipes.hang_up()
        await until_end(opened)
        opened.channel.eof_received()

    assert pipes.hear() == []
    assert opened.reached == ["connection.message_bytes"]


async def test_a_reader_that_goes_away_ends_the_channel(pipes: Pipes) -> None:
    """There is nobody to answer."""
    async with talk(pipes.source, pipes.output) as opened:
        pipes.stop_reading()
        pipes.say(request(1, "plain", "a") + b"\n")
        await until_end(opened)

    assert opened.toy.told == ["plain a", "ended"]


async def test_a_slow_reader_is_felt_by_the_dialect(pipes: Pipes) -> None:
    """Output stops while the pipe is full, and goes on when it is not."""
    async with talk(pipes.source, pipes.output) as opened:
        opened.channel.write(b'"' + b"x" * 300_000 + b'"')
        await eventually(lambda: "congested" in opened.toy.told)
        unsent = opened.channel.unsent
        await eventually(lambda: _read_some(pipes) and "drained" in opened.toy.told)

    assert unsent > 100_000
    assert not opened.channel.congested


def _read_some(pipes: Pipes) -> bool:
    os.set_blocking(pipes._read, False)
    with contextlib.suppress(BlockingIOError):
        os.read(pipes._read, 1 << 20)
    return True


async def test_files_serve_as_input_and_output(tmp_path: Path) -> None:
    """They can neither be watched nor block."""
    given, got = tmp_path / "in", tmp_path / "out"
    given.write_bytes(b"".join(request(number, "plain", "x") + b"\n" for number in range(5000)))
    with given.open("rb") as source, got.open("wb") as output:
        async with talk(source.fileno(), output.fileno()) as opened:
            await until_end(opened)

    assert [json.loads(line)["id"] for line in got.read_text().splitlines()] == list(range(5000))


async def test_a_client_on_pipes_is_alive_until_they_end_and_does_not_come_back(pipes: Pipes) -> None:
    """Nobody can take its place."""
    async with talk(pipes.source, pipes.output) as opened:
        before = await opened.channel.is_alive(0)
        opened.channel.end("enough")
        after = await opened.channel.is_alive(0)

    assert (before, after) == (True, False)
    assert not opened.channel.comes_back
    assert opened.channel.transport == "stdio"


async def test_nothing_is_written_after_the_end(pipes: Pipes) -> None:
    """A late answer goes nowhere."""
    async with talk(pipes.source, pipes.output) as opened:
        opened.channel.end("enough")
        opened.channel.write(b"{}")
        opened.channel.flush()

    assert pipes.hear() == []


async def test_the_descriptors_are_given_back_as_they_were(pipes: Pipes) -> None:
    """They may be shared with the program that started us, which expects them to block."""
    async with talk(pipes.source, pipes.output):
        during = os.get_blocking(pipes.source), os.get_blocking(pipes.output)
    after = os.get_blocking(pipes.source), os.get_blocking(pipes.output)

    assert (during, after) == ((False, False), (True, True))


async def test_a_long_message_is_one_line_and_the_others_wait_behind_it(pipes: Pipes) -> None:
    async with talk(pipes.source, pipes.output) as opened:
        pipes.say(request(1, "long", "a") + b"\n")
        await eventually(lambda: "a" in opened.toy.gates)
        opened.toy.open("a", "begin")
        await eventually(lambda: "a" in opened.toy.gates)
        congested = opened.channel.congested
        pipes.say(request(2, "plain", "x") + b"\n")
        await eventually(lambda: opened.channel.unsent > 0)
        for piece in ("hello", ""):
            opened.toy.open("a", piece)
            await eventually(lambda: "a" in opened.toy.gates or not opened.channel.congested)

        pipes.hang_up()
        await until_end(opened)
        opened.channel.piece(b"too late", last=True)
    heard = pipes.hear()

    assert congested
    assert heard == [{"id": 1, "result": ["hello"]}, {"id": 2, "result": "plain x"}]
    assert opened.toy.told.count("congested") == opened.toy.told.count("drained") == 1


async def test_a_long_message_waits_for_the_reader(pipes: Pipes) -> None:
    async with talk(pipes.source, pipes.output) as opened:
        pipes.say(request(1, "long", "a") + b"\n")
        for piece in ("begin", "x" * 200_000, "y"):
            await eventually(lambda: "a" in opened.toy.gates)
            opened.toy.open("a", piece)
        await eventually(lambda: opened.channel.full)
        waiting = "a" in opened.toy.gates
        reader = asyncio.get_running_loop().run_in_executor(None, pipes.read_line)
        await eventually(lambda: "a" in opened.toy.gates)
        opened.toy.open("a", "")
        line = await reader
        pipes.hang_up()
        await until_end(opened)

    assert not waiting
    assert len(json.loads(line)["result"][0]) == 200_001
