"""One output as a stream of bytes, side by side with that of asyncio where both can be compared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.api.reader import LIMIT, Reader
from holdfast.errors import LinkLost, OutputGap

GAP = OutputGap(3, 5, 100)


class Script:
    """What comes, piece by piece, when a reader waits.  Implements ``reader.Source``."""

    def __init__(self, *pieces: bytes | OutputGap | LinkLost) -> None:
        self._pieces = list(pieces)
        self._error: LinkLost | None = None
        self.reader = Reader(self, asyncio.get_running_loop())

    @property
    def complete(self) -> bool:
        return not self._pieces

    def claim(self) -> None:
        pass

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def balance(self) -> None:
        pass

    async def pull(self) -> None:
        await asyncio.sleep(0)
        piece = self._pieces.pop(0)
        if isinstance(piece, LinkLost):
            self._error = piece
        else:
            self.reader.add(piece)


def ours(*pieces: bytes) -> asyncio.StreamReader:
    return Script(*pieces).reader


def theirs(*pieces: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    for piece in pieces:
        reader.feed_data(piece)
    reader.feed_eof()
    return reader


Make = Callable[..., asyncio.StreamReader]
EITHER = pytest.mark.parametrize("make", [ours, theirs])


async def outcome(awaitable: Awaitable[bytes]) -> object:
    """What comes of it, an error included."""
    try:
        return await awaitable
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        return type(error), error.args, getattr(error, "partial", None)


@EITHER
async def test_everything_is_read(make: Make) -> None:
    reader = make(b"one ", b"two")

    assert not reader.at_eof()
    assert (await reader.read(), await reader.read(), await reader.read(5)) == (b"one two", b"", b"")
    assert reader.at_eof()


@EITHER
async def test_as_much_is_read_as_is_there(make: Make) -> None:
    reader = make(b"abcdef")

    assert [await reader.read(size) for size in (0, 2, 100)] == [b"", b"ab", b"cdef"]


@EITHER
async def test_lines_are_read(make: Make) -> None:
    assert [line async for line in make(b"one\ntw", b"o\n", b"\nrest")] == [
        b"one\n",
        b"two\n",
        b"\n",
        b"rest",
    ]


@EITHER
async def test_as_much_is_read_as_was_asked_for(make: Make) -> None:
    reader = make(b"ab", b"cdef")

    assert await reader.readexactly(0) == b""
    assert await reader.readexactly(3) == b"abc"
    with pytest.raises(asyncio.IncompleteReadError) as short:
        await reader.readexactly(5)
    assert (short.value.partial, short.value.expected) == (b"def", 5)


@EITHER
async def test_reading_ends_behind_a_separator(make: Make) -> None:
    reader = make(b"one-", b"-two--three")

    assert [await reader.readuntil(b"--") for _ in range(2)] == [b"one--", b"two--"]
    with pytest.raises(asyncio.IncompleteReadError) as short:
        await reader.readuntil(b"--")
    assert short.value.partial == b"three"


@pytest.mark.parametrize("tail", [b"\nnext\n", b""])
async def test_a_line_that_is_too_long_is_refused_as_asyncio_does(tail: bytes) -> None:
    long = b"x" * (LIMIT + 1)

    both = [make(long + tail) for make in (ours, theirs)]

    first, second = [[await outcome(reader.readline()), await reader.read()] for reader in both]
    assert first == second
    first, second = [[await outcome(make(long).readuntil(b"\n"))] for make in (ours, theirs)]
    assert first == second


@EITHER
async def test_wishes_that_make_no_sense_are_refused(make: Make) -> None:
    with pytest.raises(ValueError, match="zero"):
        await make(b"a").readexactly(-1)
    with pytest.raises(ValueError, match="Separator"):
        await make(b"a").readuntil(b"")


# What asyncio does not have.


async def test_a_gap_is_raised_where_it_is_and_once() -> None:
    reader = Script(b"before", GAP, b"after").reader

    assert await reader.read(100) == b"before"
    with pytest.raises(OutputGap):
        await reader.read(100)
    assert await reader.read() == b"after"


async def test_a_read_over_a_gap_loses_nothing_of_what_is_there() -> None:
    """Whoever reads on gets everything that was left."""
    reader = Script(b"be", b"fore", GAP, b"after", GAP, b"end").reader

    for _ in range(2):
        with pytest.raises(OutputGap):
            await reader.readexactly(12)

    assert await reader.readexactly(12) == b"beforeaftere"


async def test_what_is_left_of_an_output_can_be_joined() -> None:
    reader = Script().reader
    for item in (b"a", GAP, b"b", OutputGap(8, 9, None), b"c"):
        reader.add(item)

    assert reader.unread == 3
    assert reader.join() is GAP
    assert reader.join() is None
    assert await reader.read() == b"abc"


async def test_a_loss_is_raised_behind_what_came_before_it_and_again_and_again() -> None:
    reader = Script(b"before", LinkLost("gone")).reader

    assert await reader.read(100) == b"before"
    for _ in range(2):
        with pytest.raises(LinkLost):
            await reader.read(100)


async def test_an_output_that_has_ended_is_not_lost() -> None:
    script = Script(LinkLost("gone"))
    script.reader.add(b"all")
    script.reader.finish()

    assert await script.reader.read() == b"all"


async def test_two_tasks_do_not_read_the_same_output() -> None:
    """Each would get a part, and neither know which."""
    reader = Script(b"x", b"y").reader
    async with asyncio.TaskGroup() as group:
        group.create_task(reader.read())
        await asyncio.sleep(0)

        with pytest.raises(RuntimeError, match="another task"):
            await reader.read()
