"""Windows in a talk: what a client says of what it has got, and what is kept for it meanwhile."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from holdfast.config import MIB, SessionLimits
from holdfast.errors import BadRequest
from holdfast.model import Leftovers
from tests.fakes.exec_talk import START, ExecTalk, ready
from tests.fakes.watched import Watched


async def windowed(size: int = 10, **params: Any) -> tuple[ExecTalk, Watched]:
    process = Watched()
    scene = await ready(process)
    await scene.call("process/start", {**START, "window": size, **params})
    return scene, process


async def test_a_process_without_a_window_is_watched_once() -> None:
    process = Watched()
    scene = await ready(process)
    await scene.call("process/start", START)

    result = await scene.call("process/ack", {"processId": "p", "seq": 3, "release": True})

    assert result == {}
    assert len(process.watches) == 1
    assert process.calls == [("retain", 10)]


@pytest.mark.parametrize("params", [{"seq": 1}, {"seq": 9}, {"seq": None, "release": True}])
async def test_an_acknowledgement_lets_the_process_go_on(params: dict[str, Any]) -> None:
    scene, process = await windowed()
    process.say(b"x" * 10)
    before = process.is_read

    result = await scene.call("process/ack", {"processId": "p", **params})

    assert result == {}
    assert (before, process.is_read) == (False, True)


async def test_a_read_acknowledges_what_it_does_not_ask_for() -> None:
    scene, process = await windowed()
    process.say(b"x" * 10)
    process.say(b"y" * 10)

    await scene.call("process/read", {"processId": "p", "afterSeq": 1})
    one = process.is_read
    await scene.call("process/read", {"processId": "p", "afterSeq": 2})

    assert (one, process.is_read) == (False, True)


async def test_an_acknowledgement_of_nothing_is_no_error() -> None:
    """As with a signal: the process may have gone while it was on its way."""
    gate = asyncio.Event()
    scene = await ready(gate, Watched())
    task = await scene.starting(window=1)

    unknown = await scene.call("process/ack", {"processId": "q", "seq": 1})
    starting = await scene.call("process/ack", {"processId": "p", "seq": 1, "release": True})
    gate.set()
    await task

    assert (unknown, starting) == ({}, {})


async def test_a_window_needs_room_for_a_byte() -> None:
    scene = await ready()

    error = await scene.refusal("process/start", {**START, "window": 0})

    assert isinstance(error, BadRequest)
    assert (str(error), error.field) == ("window must be at least 1", "window")
    assert scene.talk.session.find("p") is None


async def test_a_very_large_window_is_a_large_one() -> None:
    scene, process = await windowed(2**64 - 1)

    assert process.calls == [("retain", SessionLimits().window_bytes + MIB)]
    assert scene.entry().retention.unacknowledged == 65 * MIB


@pytest.mark.parametrize(
    ("retain", "kept"), [({}, 10 + MIB), ({"retainBytes": 5}, 10 + MIB), ({"retainBytes": 2 * MIB}, 2 * MIB)]
)
async def test_what_is_outstanding_is_kept_whatever_else_was_asked(retain: dict[str, int], kept: int) -> None:
    """Here and away: the 99 bytes that are kept for absent clients are less in this test."""
    scene, process = await windowed(**retain)
    here = process.calls.copy()
    process.calls.clear()

    scene.talk.ended()
    away = process.calls.copy()
    process.calls.clear()
    other = ExecTalk(beside=scene)
    await other.shake_hands(resumeSessionId=scene.talk.session.key)
    scene.loop.move(30.0)

    assert here == away == process.calls == [("retain", kept)]


async def test_what_an_end_brings_is_kept_also_when_the_client_comes_back() -> None:
    scene, process = await windowed()
    process.say(b"x" * 3 * MIB)
    process.calls.clear()

    scene.talk.ended()
    other = ExecTalk(beside=scene)
    await other.shake_hands(resumeSessionId=scene.talk.session.key)
    process.exit_with()
    process.close()
    scene.loop.move(20.0)
    process.page = process.page.__class__([], process.next_seq, process.exit, closed=True)
    await other.call("process/read", {"processId": "p", "afterSeq": 1})

    assert process.calls[0] == ("retain", 4 * MIB)
    assert {call for call in process.calls if call[0] == "retain"} == {("retain", 4 * MIB)}


async def test_an_absent_client_holds_its_process() -> None:
    scene, process = await windowed()
    process.say(b"x" * 10)

    scene.talk.ended()
    scene.loop.move(29.0)

    assert not process.is_read


async def test_a_retry_leaves_the_window_as_it_is() -> None:
    scene, process = await windowed(idempotent=True)
    process.say(b"x" * 10)

    again = await scene.call("process/start", {**START, "window": 10, "idempotent": True})

    assert again["existing"]
    assert len(process.watches) == 2
    assert not process.is_read


async def test_nothing_of_a_window_is_left_after_the_close() -> None:
    """Thousands of ended processes are kept, and none of them needs it."""
    scene, process = await windowed()
    process.say(b"x" * 10)
    window = scene.entry().window
    assert window is not None
    gc.disable()
    try:
        process.exit_with()
        process.close()
        left, part = scene.entry().window, weakref.ref(window._sizes)
        del window
        found = part()
    finally:
        gc.enable()

    assert left is None
    assert found is None, "freed at once, and not when somebody looks for circles"


async def test_the_end_of_a_session_releases_its_windows() -> None:
    scene, process = await windowed()
    process.say(b"x" * 10)
    window = scene.entry().window
    assert window is not None

    await scene.call("session/close")

    assert ("forget", Leftovers.END) in process.calls
    assert window.valve.is_open
    assert scene.loop.timers == []
