"""Those who watch a process far away: several, slow ones, and ones that fail."""

from __future__ import annotations

import logging

import pytest

from holdfast.allowance import Allowance
from holdfast.backend import Valve
from holdfast.model import Chunk
from holdfast.place import Naming
from tests.fakes.following import Witness, chunk, page, scene
from tests.fakes.peer import FEATURES
from tests.fakes.process import command
from tests.fakes.remote import background
from tests.fakes.server import eventually

WINDOW = (*FEATURES, "window")
KEEP = (*FEATURES, "keep", "wait")
KEEP = (*FEATURES, "keep", "wait")


# Those who watch.


async def test_nothing_is_told_before_the_caller_had_a_chance_to_watch() -> None:
    """Output may come before the answer to the start, in one packet with it."""
    async with scene() as s:
        witness = Witness()

        async def start() -> None:
            (await s.backend.start(command("y"), Naming(name="q"))).watch(witness)

        starting = background(start())
        asked = await s.talk.hear("process/start")
        s.talk.tell("process/output", processId="q", **chunk(1, b"early"))
        s.talk.answer(asked, {"processId": "q"})
        s.talk.tell("process/output", processId="q", **chunk(2, b"soon"))
        await starting
        await witness.until("stdout", b"soon")

        assert witness.numbers == [1, 2]


async def test_what_nobody_watches_is_passed_over() -> None:
    async with scene(watched=False) as s:
        s.say(1, b"a")
        s.exit(2, 3)
        end = await s.process.wait(9)
        s.process.watch(s.witness)
        s.say(3, b"c")
        await s.witness.until("stdout", b"c")

        assert end is not None
        assert (end.code, s.witness.numbers) == (3, [3])


async def test_a_watcher_that_stopped_is_told_nothing() -> None:
    async with scene(watched=False) as s:
        first, second = Witness(), Witness()
        watch = s.process.watch(first)
        s.process.watch(second)
        s.say(1, b"a")
        await second.until("stdout", b"a")
        watch.stop()
        watch.stop()
        s.say(2, b"b")
        await second.until("stdout", b"b")

        assert (first.numbers, second.numbers) == ([1], [1, 2])


async def test_a_watcher_that_raises_is_removed_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Faulty(Witness):
        def output(self, chunk: Chunk) -> None:
            raise RuntimeError("oh")

    async with scene() as s:
        with caplog.at_level(logging.ERROR):
            s.process.watch(Faulty())
            s.say(1, b"a")
            s.say(2, b"b")
            await s.witness.until("stdout", b"b")

        assert len(s.process.watches) == 1
        assert [record.message for record in caplog.records] == [
            "a watcher of process p failed and is removed"
        ]


async def test_a_shut_valve_holds_everything_back_in_order() -> None:
    async with scene(watched=False) as s:
        valve = Valve()
        s.process.watch(s.witness, valve)
        s.say(1, b"a")
        await s.witness.until("stdout", b"a")
        valve.shut()
        s.say(2, b"b")
        s.exit(3)
        s.close(4)
        await eventually(lambda: s.process._cursor._seen == 4)
        assert s.witness.numbers == [1]
        assert s.process.exit is None
        valve.open()

        assert s.witness.numbers == [1, 2, 3, 4]


async def test_one_who_stops_behind_a_shut_valve_does_not_hold_up_the_others() -> None:
    async with scene() as s:
        valve = Valve()
        watch = s.process.watch(Witness(), valve)
        valve.shut()
        s.say(1, b"a")
        await eventually(lambda: s.process._cursor._seen == 1)
        assert s.witness.numbers == []
        watch.stop()

        await s.witness.until("stdout", b"a")


async def test_what_waits_behind_a_shut_valve_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without windows goes on; what does not fit is asked for later."""
    monkeypatch.setattr("holdfast.client.cursor.MOST_WAITING", 10)
    async with scene(watched=False) as s:
        valve = Valve()
        s.process.watch(s.witness, valve)
        valve.shut()
        s.say(1, b"12345678")
        s.say(2, b"9abc")
        for seq in range(3, 50):
            s.say(seq, b"never kept")
        other = background(s.backend.list())
        s.talk.answer(await s.talk.hear("process/list"), {"processes": []})
        await other
        assert len(s.process._cursor._waiting) == 2
        valve.open()
        gap = {"fromSeq": 3, "toSeq": 48, "bytes": 460}
        assert await s.read(page(chunk(49, b"last"), next_seq=50, gap=gap)) == {"afterSeq": 2}
        await s.witness.until("stdout", b"last")

        assert s.witness.told[2:] == [("lost", 3, 48, 460), ("stdout", b"last")]


async def test_a_server_with_a_window_is_told_how_far_we_are() -> None:
    async with scene(*WINDOW, window=100) as s:
        for seq in range(1, 5):
            s.say(seq, bytes(25))
        asked = [await s.talk.hear("process/ack") for _ in range(2)]

        assert s.asked["window"] == 100
        assert [each["params"] for each in asked] == [
            {"processId": "p", "seq": 2},
            {"processId": "p", "seq": 4},
        ]


async def test_many_small_pieces_are_acknowledged_too() -> None:
    """A server also waits for us after many pieces, and these may never come to half a window."""
    async with scene(*WINDOW, window=1 << 30) as s:
        for seq in range(1, 9001):
            s.say(seq, b"x")
        asked = [await s.talk.hear("process/ack") for _ in range(2)]

        assert [each["params"]["seq"] for each in asked] == [4096, 8192]


async def test_the_end_that_was_asked_for_is_told_also_behind_a_shut_valve() -> None:
    async with scene(watched=False) as s:
        valve = Valve()
        s.process.watch(s.witness, valve)
        valve.shut()
        ending = background(s.process.end())
        asked = await s.talk.hear("process/terminate")
        s.exit(1, 137)
        s.close(2)
        s.talk.answer(asked, {"running": True})
        await ending

        await s.witness.until("closed")


# All processes of a client together.


async def test_a_client_that_holds_much_takes_no_more_of_those_who_cannot_wait() -> None:
    """A server without windows goes on; what has no room is asked for when somebody reads."""
    ahead = Allowance(10)
    async with scene(watched=False, ahead=ahead) as s:
        valve = Valve()
        s.process.watch(s.witness, valve)
        valve.shut()
        s.say(1, b"12345678")
        s.say(2, b"9abc")
        for seq in range(3, 50):
            s.say(seq, b"no room")
        other = background(s.backend.list())
        s.talk.answer(await s.talk.hear("process/list"), {"processes": []})
        await other
        assert (len(s.process._cursor._waiting), ahead.is_used_up) == (2, True)
        valve.open()
        rest = [chunk(seq, b"no room") for seq in range(3, 50)]
        assert await s.read(page(*rest, next_seq=50)) == {"afterSeq": 2}
        await eventually(lambda: s.witness.numbers == list(range(1, 50)))

        assert not ahead.is_used_up


async def test_what_has_to_be_asked_for_is_asked_for_as_there_is_room() -> None:
    """Each page is held until it was told."""
    ahead = Allowance(8000)
    async with scene(*KEEP, keep=True, ahead=ahead) as s:
        first = await s.talk.hear("process/read")
        others = [ahead.grant(10_000) for _ in range(100)]
        s.talk.answer(first, page(chunk(1, bytes(500)), next_seq=2))
        second = await s.talk.hear("process/read")
        others.clear()
        s.talk.answer(second, page(chunk(2, bytes(500)), next_seq=3))
        third = await s.read(page(next_seq=5, exit_code=0, closed=True))
        await s.witness.until("closed")

        assert first["params"]["maxBytes"] == third["maxBytes"] == 1000
        assert second["params"]["maxBytes"] < 200
        assert ahead.grant(10_000).size == 1000
