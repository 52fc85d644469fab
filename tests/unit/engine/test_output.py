"""The way out: one read, one call; joined for terminals, paced for small pieces, bounded at the end."""

from __future__ import annotations

import array
import asyncio
import fcntl
import os
import termios

import pytest

from holdfast.backend import Valve
from holdfast.engine.output import READ_SIZE
from holdfast.model import Size, Stream
from tests.fakes.line import Line, line, turns
from tests.fakes.process import eventually

BOTH = pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "pty"])


@BOTH
async def test_what_is_there_is_passed_on_as_one_piece(*, terminal: bool) -> None:
    with line(terminal=terminal) as made:
        os.write(made.child, b"hello")
        os.write(made.child, b" world")
        await made.listener.when(lambda: made.listener.data == b"hello world")

        assert made.listener.streams == {Stream.PTY if terminal else Stream.STDOUT}


@BOTH
async def test_the_end_is_told_after_the_last_piece(*, terminal: bool) -> None:
    with line(terminal=terminal) as made:
        os.write(made.child, b"last words")
        made.hang_up()
        await made.listener.when(lambda: bool(made.listener.pieces))

        made.output.finish()

        await made.listener.when(lambda: made.listener.over)

        assert made.listener.pieces == [b"last words"]


@BOTH
async def test_no_piece_is_larger_than_one_read(*, terminal: bool) -> None:
    with line(terminal=terminal) as made:
        total = made.fill()

        await made.listener.when(lambda: len(made.listener.data) == total)

        assert max(map(len, made.listener.pieces)) <= READ_SIZE


def waiting(fd: int) -> int:
    """Bytes that one read would give."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


async def test_what_a_terminal_gives_in_parts_is_joined() -> None:
    """A terminal gives at most 4 KiB per read: one chunk of each would be many small messages."""
    with line(terminal=True) as made:
        made.output.pause()
        assert made.fill() > 8192
        await eventually(lambda: waiting(made.fd) == 4095)

        made.output.resume()
        await made.listener.when(lambda: bool(made.listener.pieces))

        assert len(made.listener.pieces[0]) > 4096


async def test_a_full_pipe_is_made_larger_and_read_several_times_in_one_turn() -> None:
    with line() as made:
        first = made.fill()
        await made.listener.when(lambda: len(made.listener.data) == first)

        assert made.fill() > first


# Held back.


@BOTH
async def test_behind_a_shut_valve_nothing_is_read_until_it_opens(*, terminal: bool) -> None:
    with line(terminal=terminal) as made:
        valve = Valve()
        valve.shut()
        made.listener.valves = (valve,)
        os.write(made.child, b"held back")
        made.hang_up()
        await turns()
        assert made.listener.pieces == []

        valve.open()

        await made.listener.when(lambda: bool(made.listener.pieces))
        made.output.finish()
        await made.listener.when(lambda: made.listener.over)
        assert made.listener.pieces == [b"held back"]


async def test_every_valve_has_to_be_open() -> None:
    with line() as made:
        one, two = Valve(), Valve()
        one.shut()
        two.shut()
        made.listener.valves = (one, two)
        os.write(made.child, b"x")
        await turns()

        one.open()
        await turns()
        assert made.listener.pieces == []
        two.open()

        await made.listener.when(lambda: made.listener.pieces == [b"x"])


async def test_a_valve_that_is_shut_on_the_way_stops_the_rush() -> None:
    """A slow client is behind after the first of several reads already."""
    with line() as made:
        made.fill()
        await made.listener.when(lambda: bool(made.listener.pieces))  # Now the pipe is larger.
        await turns()
        made.listener.pieces.clear()
        valve = Valve()
        made.listener.valves = (valve,)
        made.listener.then = valve.shut
        made.fill()

        await made.listener.when(lambda: bool(made.listener.pieces))
        await turns()

        assert list(map(len, made.listener.pieces)) == [READ_SIZE]


async def test_pause_and_resume_may_be_called_twice_and_after_the_close() -> None:
    with line() as made:
        made.output.pause()
        made.output.pause()
        os.write(made.child, b"x")
        await turns()
        assert made.listener.pieces == []

        made.output.resume()
        made.output.resume()
        await made.listener.when(lambda: made.listener.pieces == [b"x"])

        made.output.close()
        made.output.close()
        made.output.resume()
        made.output.pause()


@BOTH
async def test_an_output_may_be_closed_by_whoever_is_told(
    caplog: pytest.LogCaptureFixture, *, terminal: bool
) -> None:
    """A watcher may give up the process because of what it said, also in the middle of a rush."""
    with line(terminal=terminal) as made:
        made.listener.then = made.output.close
        made.fill()

        await made.listener.when(lambda: bool(made.listener.pieces))
        await turns()

        assert len(made.listener.pieces) == 1
        assert caplog.messages == []


# Small pieces.


async def feed_slowly(made: Line, count: int) -> bytes:
    """Write small pieces, each when the one before was read or gathers with others."""
    sent = b""
    for number in range(count):
        piece = b"%05d\n" % number
        os.write(made.child, piece)
        sent += piece
        await asyncio.sleep(0)
    return sent


@BOTH
async def test_small_pieces_that_gather_lose_nothing_and_keep_their_order(*, terminal: bool) -> None:
    with line(terminal=terminal) as made:
        sent = await feed_slowly(made, 500)
        made.hang_up()
        made.output.finish()

        await made.listener.when(lambda: made.listener.over)

        assert made.listener.data == sent


async def test_a_long_run_of_small_pieces_is_let_gather() -> None:
    """Each piece alone would cost as much as a large one."""
    with line() as made:
        sent = await feed_slowly(made, 3000)
        await made.listener.when(lambda: made.listener.data == sent)

        assert len(made.listener.pieces) < 3000
        assert made.listener.data == sent


async def test_a_lone_piece_after_a_run_is_told_and_the_end_too() -> None:
    """What gathers is never forgotten: the last piece comes, and so does the end."""
    with line() as made:
        sent = await feed_slowly(made, 200)
        await made.listener.when(lambda: made.listener.data == sent)

        os.write(made.child, b"alone")
        await made.listener.when(lambda: made.listener.data == sent + b"alone")

        made.hang_up()
        await made.listener.when(lambda: made.listener.over)


async def test_the_answer_to_a_write_is_not_kept_waiting() -> None:
    """A dialogue of small lines, however quick, is not a run: each is read in its own turn."""
    with line() as made:
        for number in range(200):
            made.listener.writes += 1
            os.write(made.child, b"%d\n" % number)
            expected = number + 1
            await made.listener.when(lambda expected=expected: len(made.listener.pieces) == expected)  # type: ignore[misc]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What gathers does so until the test ends it."""
    monkeypatch.setattr("holdfast.engine.output._PACE", 3600.0)


async def gather(made: Line) -> None:
    """Write small pieces until they gather; from then on nothing is read before ``resume``."""
    while len(made.listener.pieces) < 32:
        os.write(made.child, b"small")
        await turns()


@pytest.mark.usefixtures("patient")
async def test_small_pieces_that_fill_the_pipe_go_on_gathering() -> None:
    """Else each time it is full would be followed by another run that is read piece by piece."""
    with line() as made:
        await gather(made)
        assert made.fill() == READ_SIZE
        await turns()
        assert len(made.listener.pieces) == 32
        made.output.resume()
        await made.listener.when(lambda: len(made.listener.pieces) == 33)

        os.write(made.child, b"small")
        await turns()

        assert len(made.listener.pieces) == 33


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("size", [5, READ_SIZE * 4], ids=["little", "much"])
async def test_little_or_much_at_once_ends_the_gathering(size: int) -> None:
    """Then a line is read when it comes, and a large output as fast as it can be."""
    with line() as made:
        made.fill()
        await made.listener.when(lambda: len(made.listener.data) == READ_SIZE)
        made.listener.pieces.clear()
        await gather(made)
        assert os.write(made.child, b"m" * size) == size
        before = len(made.listener.data)
        made.output.resume()
        await made.listener.when(lambda: len(made.listener.data) == before + size)

        os.write(made.child, b"at once")

        await made.listener.when(lambda: made.listener.data.endswith(b"at once"))


# The last look.


@BOTH
async def test_draining_passes_on_what_is_there_though_the_valve_is_shut(*, terminal: bool) -> None:
    with line(terminal=terminal) as made:
        valve = Valve()
        valve.shut()
        made.listener.valves = (valve,)
        total = made.fill()

        made.output.drain()

        assert len(made.listener.data) == total
        assert not made.listener.over


async def test_draining_ends_though_somebody_goes_on_writing() -> None:
    """A grandchild that floods the pipe must not keep the exit of its parent from being told."""
    with line() as made:
        total = made.fill()
        made.listener.then = lambda: _ignore(made.fill())

        made.output.drain()

        assert total <= len(made.listener.data) < 2 * total + READ_SIZE


@BOTH
async def test_whoever_is_told_may_close_the_output_that_is_drained(*, terminal: bool) -> None:
    with line(terminal=terminal) as made:
        made.listener.then = made.output.close
        made.output.pause()
        os.write(made.child, b"x")
        await eventually(lambda: waiting(made.fd) == 1)

        made.output.drain()
        made.output.resume()

        assert made.listener.pieces == [b"x"]


async def test_a_closed_output_has_nothing_to_drain() -> None:
    """Another output of the same process may have been the reason to close it, a moment ago."""
    with line() as made:
        os.write(made.child, b"x")
        made.output.close()

        made.output.drain()

        assert made.listener.pieces == []


# Size.


async def test_a_terminal_is_resized_until_it_is_closed() -> None:
    with line(terminal=True) as made:
        made.output.resize(Size(rows=11, cols=22))
        assert os.get_terminal_size(made.child) == os.terminal_size((22, 11))

        made.output.close()
        made.output.resize(Size(rows=33, cols=44))  # Nobody is left to be told.


def _ignore(count: int) -> None:
    """For a callback whose result is of no interest."""


@BOTH
async def test_draining_an_empty_or_ended_output_is_nothing(*, terminal: bool) -> None:
    with line(terminal=terminal) as made:
        made.output.drain()
        made.hang_up()
        made.output.drain()

        assert made.listener.pieces == []
        made.output.finish()
        await made.listener.when(lambda: made.listener.over)
