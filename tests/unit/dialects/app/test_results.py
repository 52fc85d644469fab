"""What is told of a process that is over: long output in pieces, and the same as all at once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from holdfast.backend import Valve
from holdfast.dialects.app import results
from holdfast.dialects.app.conversation import Run
from holdfast.dialects.app.output import OutputRoom
from holdfast.dialects.dialect import LongResult
from holdfast.model import Stream
from tests.fakes.app_talk import AppLoop, AppTalk, Pipes, terms
from tests.fakes.dialects import FakeProcess
from tests.unit.dialects.app.test_starting import executed, spawned

SAID = [b'a "quoted" line\n', b'"stdout":"', b"\x00\xe9", "漢字 🦀".encode()]


def say_all(process: FakeProcess) -> None:
    process.say(b"".join(SAID[:2]))
    process.say(SAID[3], Stream.STDERR)
    process.exit_with(7)
    process.close()


async def text_of(long: LongResult) -> Any:
    """A long result, as it goes out."""
    return json.loads(b"".join([long.head, *[piece async for piece in long.pieces], long.tail]))


async def told_of_command() -> tuple[AppTalk, Any]:
    scene, process, answer = await executed(disableOutputCap=True)
    say_all(process)
    return scene, await answer


async def test_a_long_result_of_a_command_says_what_a_short_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    _, short = await told_of_command()
    monkeypatch.setattr(results, "_AT_ONCE", 10)
    monkeypatch.setattr(results, "_TOGETHER", 3)

    _, long = await told_of_command()

    assert isinstance(long, LongResult)
    assert await text_of(long) == json.loads(msgspec.json.encode(short))


async def test_a_long_exit_says_what_a_short_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may have the same in it as the message."""
    told = []
    for most in (results._AT_ONCE, 10):
        monkeypatch.setattr(results, "_AT_ONCE", most)
        scene, process = await spawned(processHandle='"stdout":""stderr":"')
        say_all(process)
        (message,) = scene.client.sent
        del message["emittedAtMs"]
        told.append(message)

    assert told[0] == told[1]
    assert told[0]["params"]["stdout"] == b"".join(SAID[:2]).decode()


async def test_a_handle_is_free_before_a_long_exit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "_AT_ONCE", 10)
    scene, process = await spawned()

    say_all(process)

    assert (len(scene.client.sent), scene.talk.processes.find("h")) == (1, None)


async def test_what_is_kept_counts_until_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not read must not have the server keep more and more for it."""
    monkeypatch.setattr(results, "_AT_ONCE", 10)
    scene, long = await told_of_command()
    used = scene.endpoint.usage()["app.buffered_total"]

    long.close()

    assert used == len(b"".join(SAID[:2])) + len(SAID[3])
    assert scene.endpoint.usage()["app.buffered_total"] == 0


async def test_others_get_their_turn_while_a_long_result_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "_AT_ONCE", 10)
    monkeypatch.setattr("holdfast.dialects.app.output._SLICE", 5)
    _, long = await told_of_command()
    turns = 0
    task = asyncio.create_task(text_of(long))
    while not task.done():
        turns += 1
        await asyncio.sleep(0)

    assert turns > 5


@pytest.mark.parametrize("needed", [None, True])
def test_what_is_kept_is_given_back_unless_it_is_needed_for_longer(*, needed: bool | None) -> None:
    """The result may be sent piece by piece, at the pace of its client."""
    process, room = Pipes(), OutputRoom(10)
    run = Run(
        process,
        terms(),
        room=room,
        valve=Valve(),
        loop=AppLoop().loop,
        tell=lambda stream, data, full: None,
        on_over=lambda run: needed,
        on_lost=lambda: None,
    )
    process.say(b"abc")
    process.exit_with(0)
    process.close()

    assert (room.left, run.stdout.data) == ((7, b"abc") if needed else (10, b""))
