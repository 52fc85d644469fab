"""A server that is a program of ours: lines in and out, and its end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.client.address import Program
from holdfast.client.channel import NoConnection
from holdfast.client.program import ProgramChannel, start
from holdfast.client.remote import RemoteBackend
from holdfast.errors import LinkLost
from tests.fakes.backends import STDIO
from tests.fakes.process import PATIENCE, command, has_children, open_files
from tests.fakes.recorder import finished
from tests.fakes.server import eventually

from .test_websocket import Ear


def sh(script: str) -> Program:
    return Program(("sh", "-c", script))


@asynccontextmanager
async def running(script: str) -> AsyncIterator[tuple[ProgramChannel, Ear]]:
    before = open_files()
    channel = await start(sh(script))
    ear = Ear()
    channel.listen(ear)
    try:
        yield channel, ear
    finally:
        channel.cut("the test is over")
        async with asyncio.timeout(PATIENCE):
            await channel.gone
        await eventually(lambda: open_files().items() <= before.items())


async def test_messages_are_lines() -> None:
    async with running("read x; echo got $x; printf 'a\\n\\nb\\n'; read y") as (channel, ear):
        channel.send(b"one")
        await ear.until(3)

        assert ear.heard == [b"got one", b"a", b"b"]


async def test_the_end_of_the_program_is_the_end_of_the_connection() -> None:
    async with running("echo last; exit 3") as (channel, ear):
        await ear.until(1, broken=True)
        channel.send(b"too late")

        assert ear.heard == [b"last"]
        assert ear.broken == ["the server ended"]


async def test_a_program_that_closes_its_output_is_ended() -> None:
    async with running("exec >&-; exec sleep 60") as (_, ear):
        await ear.until(broken=True)


async def test_a_goodbye_is_the_end_of_its_input() -> None:
    async with running("cat; echo bye >&2 2>/dev/null") as (channel, ear):
        channel.send(b"one")
        await ear.until(1)
        async with asyncio.timeout(PATIENCE):
            await channel.aclose()

        assert len(ear.broken) == 1
        await channel.aclose()


async def test_a_program_that_stays_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.program._GOODBYE_SECONDS", 0.02)
    async with running("trap '' TERM; while :; do sleep 60; done") as (channel, ear):
        async with asyncio.timeout(PATIENCE):
            await channel.aclose()

        assert len(ear.broken) == 1


async def test_a_line_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.program._LINE_MOST", 1000)
    async with running("echo fine; yes | tr -d '\\n'") as (_, ear):
        await ear.until(broken=True)

        assert ear.heard == [b"fine"]
        assert ear.broken == ["the server broke the protocol: a line is too long"]


async def test_whoever_sends_much_waits_for_room() -> None:
    async with running("read x; cat >/dev/null") as (channel, _):
        await channel.room()
        for _ in range(8):
            channel.send(b"x" * (1 << 20))
        async with asyncio.timeout(PATIENCE):
            await channel.room()


async def test_a_program_that_is_not_there_is_no_connection() -> None:
    with pytest.raises(NoConnection) as caught:
        await start(Program(("/no/such/program",)))

    assert (str(caught.value), caught.value.final) == ("/no/such/program: No such file or directory", True)


async def test_a_program_has_no_second_life() -> None:
    """Another program would be another server: what ran is gone."""
    backend = RemoteBackend(f"stdio:{sys.executable} -c 'import sys; sys.stdin.readline()'")

    with pytest.raises(LinkLost):
        await backend.open()
    await backend.aclose()
    await eventually(lambda: not has_children())


@pytest.mark.slow
async def test_our_own_server_is_such_a_program() -> None:
    backend = RemoteBackend(STDIO)
    await backend.open()
    recorder = await finished(await backend.start(command("echo", "hello")))

    assert recorder.told == [("stdout", b"hello\n"), ("exited", 0), ("closed",)]
    await backend.aclose()


async def test_a_program_whose_input_is_closed_is_soon_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have a last word, but it cannot be asked for anything."""
    monkeypatch.setattr("holdfast.client.program._LAST_WORDS_SECONDS", 0.02)
    async with running("exec <&-; echo last; exec sleep 60") as (_, ear):
        await ear.until(1, broken=True)

        assert ear.heard == [b"last"]


async def test_whoever_inherits_the_output_does_not_keep_a_dead_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.client.program._LAST_WORDS_SECONDS", 0.02)
    async with running("sleep 1 & echo last") as (_, ear):
        await ear.until(1, broken=True)

        assert ear.broken == ["the server ended"]
