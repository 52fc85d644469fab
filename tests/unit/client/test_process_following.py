"""What a process far away does, told in order and once, over any number of connections."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.backend import Valve
from holdfast.errors import LinkLost, ProcessLost
from holdfast.model import Stream
from tests.fakes.following import Witness, chunk, page, scene
from tests.fakes.peer import FEATURES
from tests.fakes.remote import background
from tests.fakes.server import eventually

WINDOW = (*FEATURES, "window")
KEEP = (*FEATURES, "keep", "wait")


# What is pushed.


async def test_a_process_speaks_exits_and_closes() -> None:
    async with scene() as s:
        s.say(1, b"out")
        s.say(2, b"err", "stderr")
        s.exit(3, 5)
        s.say(4, b"late")
        s.close(5)
        await s.witness.until("closed")

        assert s.witness.told == [
            ("stdout", b"out"),
            ("stderr", b"err"),
            ("exited", 5),
            ("stdout", b"late"),
            ("closed",),
        ]
        assert s.witness.numbers == [1, 2, 3, 4, 5]
        assert (s.process.exit_code, s.process.closed, s.process.next_seq) == (5, True, 6)


async def test_what_was_told_is_not_told_again() -> None:
    """A page and a notification may both have it."""
    async with scene() as s:
        for _ in range(2):
            s.say(1, b"a")
            s.say(2, b"b")
        s.exit(3)
        s.exit(3)
        s.say(2, b"b")
        s.close(4)
        await s.witness.until("closed")

        assert s.witness.numbers == [1, 2, 3, 4]


async def test_a_hole_is_filled_by_asking() -> None:
    async with scene() as s:
        s.say(1, b"a")
        s.say(4, b"d")
        s.say(5, b"e")
        asked = await s.read(page(*(chunk(at, b"%d" % at) for at in (2, 3, 4, 5)), next_seq=6))
        s.exit(6)
        s.close(7)
        await s.witness.until("closed")

        assert asked == {"afterSeq": 1}
        assert s.witness.numbers == [1, 2, 3, 4, 5, 6, 7]


async def test_what_comes_while_a_hole_is_filled_is_not_lost() -> None:
    async with scene() as s:
        s.say(2, b"b")
        asked = await s.talk.hear("process/read")
        s.say(3, b"c")
        s.talk.answer(asked, page(chunk(1, b"a"), chunk(2, b"b"), next_seq=3))
        # The third came before the answer, which does not have it: the fourth shows that it is missing.
        s.say(4, b"d")
        assert await s.read(page(chunk(3, b"c"), chunk(4, b"d"), next_seq=5)) == {"afterSeq": 2}
        await s.witness.until("stdout", b"d")

        assert s.witness.numbers == [1, 2, 3, 4]


async def test_output_that_is_gone_is_told_as_a_gap() -> None:
    async with scene() as s:
        s.say(9, b"z")
        gap = {"fromSeq": 1, "toSeq": 8, "bytes": 70}
        await s.read(page(chunk(9, b"z"), next_seq=10, gap=gap))
        await s.witness.until("stdout", b"z")

        assert s.witness.told == [("lost", 1, 8, 70), ("stdout", b"z")]
        assert s.process.next_seq == 10


async def test_an_exit_that_is_gone_is_told_all_the_same() -> None:
    """Its neighbours are gone, and so is its number; that it is over must not be."""
    async with scene() as s:
        s.say(9, b"z")
        gap = {"fromSeq": 1, "toSeq": 8, "bytes": 70}
        await s.read(page(chunk(9, b"z"), next_seq=10, exit_code=3, gap=gap))
        assert await s.read(page(next_seq=10, exit_code=3)) == {"afterSeq": 9}
        s.close(10)
        await s.witness.until("closed")

        assert s.witness.told == [("lost", 1, 8, 70), ("stdout", b"z"), ("exited", 3), ("closed",)]


async def test_notifications_that_are_none_end_the_connection_and_nothing_is_lost() -> None:
    async with scene() as s:
        s.say(1, b"a")
        s.talk.tell("process/output", processId="p", seq=2, stream="other", chunk="eA==")
        s.talk = await s.server.welcome("s1", *FEATURES)
        await s.read(page(chunk(2, b"b"), next_seq=3))
        await s.witness.until("stdout", b"b")

        assert s.witness.numbers == [1, 2]


async def test_news_of_somebody_else_are_passed_over() -> None:
    async with scene() as s:
        for method in ("process/output", "process/exited", "process/closed"):
            s.talk.tell(method, processId="q", seq=1, stream="stdout", chunk="eA==", exitCode=0)
        s.talk.tell("process/new", anything=1)
        s.say(1, b"a")
        await s.witness.until("stdout", b"a")

        assert s.witness.numbers == [1]


# Over connections.


async def test_after_a_break_what_was_missed_is_asked_for() -> None:
    async with scene() as s:
        s.say(1, b"a")
        await s.witness.until("stdout", b"a")
        await s.reconnect()
        assert await s.read(page(chunk(2, b"b"), next_seq=5, exit_code=0, closed=True)) == {"afterSeq": 1}
        await s.witness.until("closed")

        assert s.witness.told == [("stdout", b"a"), ("stdout", b"b"), ("exited", 0), ("closed",)]
        assert s.witness.numbers == [1, 2, 3, 4]


async def test_a_session_that_is_gone_takes_its_processes_with_it() -> None:
    async with scene() as s:
        s.talk.abort()
        again = await s.server.accept()
        again.refuse(await again.hear(), -32600, "unknown session id s1")
        await again.shake_hands("s2")
        await s.witness.until("lost", "ProcessLost")

        with pytest.raises(ProcessLost, match="'p' is lost"):
            await s.process.wait(9)
        with pytest.raises(ProcessLost):
            await s.process.write(b"x")
        assert s.process.exit is None
        # Whoever watches now is told at once.
        late = Witness()
        s.process.watch(late)
        await late.until("lost", "ProcessLost")


async def test_a_process_that_the_server_forgot_is_lost() -> None:
    async with scene() as s:
        await s.reconnect()
        s.talk.refuse(await s.talk.hear("process/read"), -32600, "unknown process id p")
        await s.witness.until("lost", "ProcessLost")


async def test_the_end_of_the_link_is_told_to_everybody() -> None:
    async with scene(reconnect_timeout=0.05) as s:
        waiting = background(s.process.wait(60))
        s.talk.abort()
        await s.witness.until("lost", "LinkLost")

        with pytest.raises(LinkLost):
            await waiting


async def test_an_answer_that_makes_no_sense_is_a_loss() -> None:
    async with scene() as s:
        s.say(3, b"c")
        await s.read({"chunks": "none"})
        await s.witness.until("lost", "LinkLost")


# What has to be asked for.


async def test_a_kept_process_is_read_page_by_page_while_somebody_watches() -> None:
    async with scene(*KEEP, keep=True) as s:
        first = await s.read(page(chunk(1, b"a"), next_seq=2))
        second = await s.read(page(next_seq=2))
        third = await s.read(page(chunk(2, b"b"), next_seq=5, exit_code=0, closed=True))
        await s.witness.until("closed")

        assert [each["afterSeq"] for each in (first, second, third)] == [0, 1, 1]
        assert first["waitMs"] > 0
        assert s.witness.told == [("stdout", b"a"), ("stdout", b"b"), ("exited", 0), ("closed",)]


async def test_a_kept_process_is_not_read_while_the_valve_is_shut() -> None:
    async with scene(*KEEP, keep=True, watched=False) as s:
        valve = Valve()
        valve.shut()
        s.process.watch(s.witness, valve)
        other = background(s.backend.list())
        s.talk.answer(await s.talk.hear("process/list"), {"processes": []})
        await other
        valve.open()
        await s.read(page(chunk(1, b"a"), next_seq=2))

        await s.witness.until("stdout", b"a")


async def test_the_exit_of_a_kept_process_is_not_told_before_output_that_came_before_it() -> None:
    """
    The first page of much output has a gap, ends somewhere, and says that there was an exit:
    which is behind the rest of the output.
    """
    async with scene(*KEEP, keep=True) as s:
        gap = {"fromSeq": 1, "toSeq": 2, "bytes": 9}
        await s.read(page(chunk(3, b"c"), next_seq=4, exit_code=0, closed=True, gap=gap))
        rest = await s.read(page(chunk(4, b"d"), next_seq=7, exit_code=0, closed=True))
        await s.witness.until("closed")

        assert (rest["afterSeq"], rest["waitMs"]) == (3, 0)
        assert s.witness.told == [
            ("lost", 1, 2, 9),
            ("stdout", b"c"),
            ("stdout", b"d"),
            ("exited", 0),
            ("closed",),
        ]


async def test_the_streams_end_with_the_close() -> None:
    ended: list[Stream] = []

    class Ends(Witness):
        def ended(self, stream: Stream) -> None:
            ended.append(stream)

    async with scene(watched=False) as s:
        witness = Ends()
        s.process.watch(witness)
        s.exit(1)
        s.close(2)
        await witness.until("closed")

        assert ended == [Stream.STDOUT, Stream.STDERR]


async def test_a_wait_that_is_cancelled_leaves_nothing() -> None:
    async with scene() as s:
        waiting = background(s.process.wait(60))
        await eventually(lambda: s.process._waiting)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert not s.process._waiting
        assert await s.process.wait(0) is None
