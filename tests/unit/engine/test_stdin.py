"""The way in: in order, bounded, each write once.  On a real pipe that nobody reads until told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.config import EngineLimits
from holdfast.model import WriteStatus
from holdfast.poller import Poller
from tests.fakes.durable import StdinMaker, stdin_makers
from tests.fakes.process import PATIENCE, eventually

ACCEPTED, CLOSED = WriteStatus.ACCEPTED, WriteStatus.STDIN_CLOSED

FILL = b"f" * (1 << 20)
"""More than a pipe takes."""


maker: list[StdinMaker] = []


@pytest.fixture(params=["memory", "arena"], autouse=True)
def _form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test here is about both: whoever writes cannot tell where input waits."""
    with stdin_makers(request.param) as made:
        maker[:] = [made]
        yield


class Pipe:
    """A child's stdin and the reader at its other end."""

    def __init__(self, limits: EngineLimits) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._poller = Poller()
        self._poller.attach(loop)
        self.stdin = maker[0](writer, loop, self._poller, limits)

    async def take(self, count: int) -> bytes:
        """Read so many bytes, as they come."""
        data = b""
        async with asyncio.timeout(PATIENCE):
            while len(data) < count:
                try:
                    piece = os.read(self.reader, count - len(data))
                except BlockingIOError:
                    await asyncio.sleep(0)
                    continue
                assert piece, f"ended after {len(data)} of {count} bytes"
                data += piece
        return data

    def has_more(self) -> bool:
        try:
            return os.read(self.reader, 1) != b""
        except BlockingIOError:
            return False

    def close_reader(self) -> None:
        os.close(self.reader)
        self.reader = -1

    def close(self) -> None:
        self.stdin.close()
        self._poller.close()
        if self.reader >= 0:
            self.close_reader()


@contextmanager
def piped(limits: EngineLimits | None = None) -> Iterator[Pipe]:
    pipe = Pipe(limits or EngineLimits())
    try:
        yield pipe
    finally:
        pipe.close()


def start(pipe: Pipe, data: bytes, write_id: str | None) -> asyncio.Task[WriteStatus]:
    return asyncio.get_running_loop().create_task(pipe.stdin.write(data, write_id))


async def turns(count: int = 3) -> None:
    """Let those who can run, run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_fits_is_written_at_once() -> None:
    with piped() as pipe:
        assert pipe.stdin.try_write(b"hello", "a") is ACCEPTED
        assert os.read(pipe.reader, 100) == b"hello"


async def test_accepted_bytes_are_written_in_the_order_of_the_calls() -> None:
    """Invariant 1: what waits in the pipe, in the queue and in line all keep their order."""
    with piped(EngineLimits(stdin_chunks=2)) as pipe:
        tasks = [start(pipe, FILL, "0")] + [start(pipe, bytes([n]) * 10, str(n)) for n in range(1, 9)]

        data = await pipe.take(len(FILL) + 80)

        assert data == FILL + b"".join(bytes([n]) * 10 for n in range(1, 9))
        assert await asyncio.gather(*tasks) == [ACCEPTED] * 9


async def test_an_accepted_identifier_is_never_written_twice_while_it_is_remembered() -> None:
    """Invariant 2."""
    with piped() as pipe:
        assert pipe.stdin.try_write(b"one", "a") is ACCEPTED
        assert pipe.stdin.try_write(b"other", "a") is ACCEPTED
        assert await pipe.stdin.write(b"other", "a") is ACCEPTED
        assert pipe.stdin.try_write(b"two", "b") is ACCEPTED

        assert os.read(pipe.reader, 100) == b"onetwo"


async def test_as_many_identifiers_are_remembered_as_the_limit_says() -> None:
    with piped(EngineLimits(write_ids=3)) as pipe:
        for write_id in "abcd":
            pipe.stdin.try_write(write_id.encode(), write_id)

        pipe.stdin.try_write(b"B", "b")
        pipe.stdin.try_write(b"A", "a")

        assert os.read(pipe.reader, 100) == b"abcdA"


async def test_a_repeat_does_not_make_an_identifier_younger() -> None:
    """The oldest accepted is forgotten first, however often it was repeated."""
    with piped(EngineLimits(write_ids=2)) as pipe:
        for write_id in "aba":
            pipe.stdin.try_write(write_id.encode(), write_id)
        pipe.stdin.try_write(b"c", "c")

        pipe.stdin.try_write(b"A", "a")

        assert os.read(pipe.reader, 100) == b"abcA"


async def test_bytes_of_a_cancelled_call_that_waited_are_not_written() -> None:
    """Invariant 3; and its identifier is not remembered, so that a retry is written."""
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, "fill")
        waiting, after = start(pipe, b"cancelled", "w"), start(pipe, b"after", "x")
        await turns()

        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await pipe.take(len(FILL) + 5) == FILL + b"after"
        assert await after is ACCEPTED

        assert await pipe.stdin.write(b"retry", "w") is ACCEPTED
        assert await pipe.take(5) == b"retry"


async def test_a_call_cancelled_in_the_moment_it_is_taken_stays_written_and_remembered() -> None:
    """Invariant 2 again: what is on its way cannot be taken back, so it must not come twice."""
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, "fill")
        waiting = start(pipe, b"taken", "w")
        await turns()
        os.set_blocking(pipe.reader, True)
        read = 0
        while pipe.stdin.try_write(b"", "probe") is None:  # Not answered before there is room.
            read += len(os.read(pipe.reader, 65536))
            pipe.stdin.on_ready()

        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert pipe.stdin.try_write(b"again", "w") is ACCEPTED
        os.set_blocking(pipe.reader, False)
        assert (await pipe.take(len(FILL) - read + 5))[-5:] == b"taken"
        await turns()
        assert not pipe.has_more()


async def test_a_retry_while_the_first_still_waits_is_written_once() -> None:
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, "fill")
        first, second = start(pipe, b"once", "w"), start(pipe, b"once", "w")
        await turns()

        assert await pipe.take(len(FILL) + 4) == FILL + b"once"

        assert (await first, await second) == (ACCEPTED, ACCEPTED)
        await turns()
        assert not pipe.has_more()


async def test_a_retry_takes_the_place_of_a_first_that_was_cancelled() -> None:
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, "fill")
        first, second = start(pipe, b"once", "w"), start(pipe, b"once", "w")
        await turns()

        first.cancel()

        assert await pipe.take(len(FILL) + 4) == FILL + b"once"
        assert await second is ACCEPTED


@pytest.mark.parametrize(
    "limits", [EngineLimits(stdin_chunks=2), EngineLimits(stdin_bytes=len(FILL))], ids=["chunks", "bytes"]
)
async def test_a_write_waits_while_the_queue_is_full(limits: EngineLimits) -> None:
    with piped(limits) as pipe:
        assert pipe.stdin.try_write(FILL, "a") is ACCEPTED
        assert pipe.stdin.try_write(FILL, "b") is ACCEPTED
        assert pipe.stdin.try_write(b"c", "c") is None
        task = start(pipe, b"c", "c")
        await turns()
        assert not task.done()

        assert await pipe.take(2 * len(FILL) + 1) == FILL + FILL + b"c"
        assert await task is ACCEPTED


async def test_an_identifier_that_was_accepted_is_answered_though_the_queue_is_full() -> None:
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, "fill")

        assert pipe.stdin.try_write(b"x", "fill") is ACCEPTED


async def test_a_newcomer_does_not_overtake_those_in_line() -> None:
    """Even one that would fit: the order of the calls is the order of the bytes."""
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, "fill")
        first = start(pipe, b"1", "1")
        await turns()

        assert pipe.stdin.try_write(b"2", "2") is None
        second = start(pipe, b"2", "2")

        assert (await pipe.take(len(FILL) + 2))[-2:] == b"12"
        assert (await first, await second) == (ACCEPTED, ACCEPTED)


async def test_an_empty_write_is_accepted_and_remembered() -> None:
    with piped() as pipe:
        assert pipe.stdin.try_write(b"", "a") is ACCEPTED
        assert pipe.stdin.try_write(b"x", "a") is ACCEPTED
        assert not pipe.has_more()


# Without an identifier.


async def test_what_has_no_identifier_is_written_as_often_as_it_is_offered() -> None:
    with piped() as pipe:
        assert pipe.stdin.try_write(b"x", None) is ACCEPTED
        assert pipe.stdin.try_write(b"x", None) is ACCEPTED
        assert await pipe.stdin.write(b"x", None) is ACCEPTED

        assert os.read(pipe.reader, 100) == b"xxx"
        assert not pipe.stdin.has_accepted(None)


async def test_what_waits_without_an_identifier_is_written_each_time_too() -> None:
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, None)
        tasks = [start(pipe, b"x", None), start(pipe, b"x", None)]
        await turns()

        assert await pipe.take(len(FILL) + 2) == FILL + b"xx"
        assert await asyncio.gather(*tasks) == [ACCEPTED] * 2


async def test_writes_without_an_identifier_do_not_push_others_out_of_memory() -> None:
    with piped(EngineLimits(write_ids=1)) as pipe:
        pipe.stdin.try_write(b"a", "a")
        pipe.stdin.try_write(b"x", None)

        assert pipe.stdin.try_write(b"A", "a") is ACCEPTED
        assert os.read(pipe.reader, 100) == b"ax"


# Finished: nothing more is taken, and what was offered before is still written.


async def test_an_idle_stdin_is_closed_as_soon_as_it_is_finished() -> None:
    with piped() as pipe:
        pipe.stdin.try_write(b"last", "a")

        pipe.stdin.finish()
        pipe.stdin.finish()

        assert pipe.stdin.closed
        assert os.read(pipe.reader, 100) == b"last"
        assert os.read(pipe.reader, 100) == b""
        assert pipe.stdin.try_write(b"x", "b") is CLOSED
        assert pipe.stdin.try_write(b"x", "a") is ACCEPTED


async def test_what_is_queued_and_who_waits_in_line_come_before_the_end() -> None:
    with piped(EngineLimits(stdin_chunks=2)) as pipe:
        pipe.stdin.try_write(FILL, None)
        pipe.stdin.try_write(b"queued", None)
        tasks = [start(pipe, b"first", "1"), start(pipe, b"second", "2")]
        await turns()

        pipe.stdin.finish()
        refused = pipe.stdin.try_write(b"late", None), pipe.stdin.try_write(b"late", "late")
        data = await pipe.take(len(FILL) + 17)
        await eventually(lambda: pipe.stdin.closed)

        assert refused == (CLOSED, CLOSED)
        assert data == FILL + b"queuedfirstsecond"
        assert await asyncio.gather(*tasks) == [ACCEPTED] * 2
        assert os.read(pipe.reader, 1) == b""


@pytest.mark.parametrize("waits", [False, True])
async def test_the_last_word_comes_after_everything_that_was_offered(*, waits: bool) -> None:
    """A terminal needs one, because closing our side of it would not be the end of its input."""
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        offered = [FILL, b"waits"] if waits else [b"written"]
        tasks = [start(pipe, piece, None) for piece in offered]
        await turns()

        pipe.stdin.finish(b"\n\x04")
        pipe.stdin.finish(b"\n\x04")
        expected = b"".join(offered) + b"\n\x04"
        assert await pipe.take(len(expected)) == expected
        await eventually(lambda: pipe.stdin.closed)
        assert await asyncio.gather(*tasks) == [ACCEPTED] * len(tasks)


async def test_a_call_cancelled_after_the_finish_does_not_keep_stdin_open() -> None:
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, None)
        waiting = start(pipe, b"cancelled", None)
        await turns()
        pipe.stdin.finish()

        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

        assert await pipe.take(len(FILL)) == FILL
        await eventually(lambda: pipe.stdin.closed)
        assert not pipe.has_more()


async def test_a_retry_of_what_was_accepted_is_accepted_also_while_it_is_finishing() -> None:
    with piped() as pipe:
        pipe.stdin.try_write(FILL, "fill")

        pipe.stdin.finish()

        assert pipe.stdin.try_write(FILL, "fill") is ACCEPTED
        assert not pipe.stdin.closed


# The end.


async def test_when_nobody_reads_any_more_stdin_is_closed() -> None:
    with piped() as pipe:
        pipe.close_reader()

        assert pipe.stdin.try_write(b"x", "a") is CLOSED
        assert pipe.stdin.closed
        assert pipe.stdin.try_write(b"x", "a") is CLOSED


async def test_those_who_wait_are_told_when_the_reader_goes() -> None:
    """Found by the poller, not by a write: nobody writes while all wait."""
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        assert pipe.stdin.try_write(FILL, "a") is ACCEPTED
        tasks = [start(pipe, b"x", "b"), start(pipe, b"x", "c"), start(pipe, b"x", "a")]
        await turns()

        pipe.close_reader()

        assert await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE) == [CLOSED, CLOSED, ACCEPTED]
        assert pipe.stdin.closed


async def test_what_was_accepted_stays_accepted_after_the_close() -> None:
    with piped() as pipe:
        pipe.stdin.try_write(b"x", "a")
        pipe.stdin.close()
        pipe.stdin.close()

        assert pipe.stdin.try_write(b"x", "a") is ACCEPTED
        assert pipe.stdin.try_write(b"x", "b") is CLOSED
        assert os.read(pipe.reader, 100) == b"x"
        assert os.read(pipe.reader, 100) == b""


async def test_closing_drops_what_was_not_written_and_answers_those_in_line() -> None:
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, "a")
        task = start(pipe, b"x", "b")
        await turns()

        pipe.stdin.close()

        assert await task is CLOSED
        assert pipe.stdin.try_write(b"x", "c") is CLOSED
