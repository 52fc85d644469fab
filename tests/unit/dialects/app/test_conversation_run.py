"""One process from its start to its result.  The process and the clock are moved by hand."""

from __future__ import annotations

import pytest

from holdfast.dialects.app.conversation import TIMED_OUT
from holdfast.model import Exit, Kind, Leftovers, Outcome, Stream
from tests.fakes.app_run import Scene
from tests.fakes.app_talk import HARD, QUIET, Pipes
from tests.fakes.dialects import FakeProcess

ERR = Stream.STDERR


BY_ITSELF = ("forget", Leftovers.END_GROUP)
ENDED = ("forget", Leftovers.END)
KILLED = ("end",)


# Output.


def test_nothing_is_kept_by_the_engine_and_only_what_is_streamed_waits_for_the_client() -> None:
    """Output is told or kept here, and nobody asks for it again."""
    streamed, buffered = Scene(streamed=True), Scene()

    assert streamed.process.calls == buffered.process.calls == [("retain", 0)]
    assert streamed.process.watcher is streamed.run
    assert (streamed.process.valve, buffered.process.valve) == (streamed.valve, None)


def test_streamed_output_is_told_as_it_comes_up_to_the_cap_of_each_stream() -> None:
    scene = Scene(streamed=True, cap=5)

    for data, stream in (
        (b"abc", Stream.STDOUT),
        (b"x", ERR),
        (b"def", Stream.STDOUT),
        (b"g", Stream.STDOUT),
    ):
        scene.process.say(data, stream)

    assert scene.told == [("stdout", b"abc", False), ("stderr", b"x", False), ("stdout", b"de", True)]
    assert (scene.run.stdout.full, scene.run.stderr.full) == (True, False)
    assert scene.run.stdout.data == b""


def test_what_a_terminal_says_is_told_as_stdout() -> None:
    scene = Scene(terminal=True, streamed=True)

    scene.process.say(b"hello", Stream.PTY)

    assert scene.told == [("stdout", b"hello", False)]


def test_buffered_output_is_kept_up_to_the_cap_and_not_told() -> None:
    scene = Scene(cap=4)

    scene.process.say(b"abc")
    scene.process.say(b"def")
    scene.process.say(b"err", ERR)

    assert scene.told == []
    assert (scene.run.stdout.data, scene.run.stderr.data) == (b"abcd", b"err")


# The end.


def test_the_result_comes_when_all_output_has_ended() -> None:
    scene = Scene(FakeProcess())
    scene.process.say(b"x")

    scene.process.exit_with(3)
    between = list(scene.told)
    scene.process.close()

    assert (between, scene.told) == ([], [("over", 3)])
    assert scene.process.calls[1:] == [BY_ITSELF]
    assert scene.loop.timers == []
    assert not scene.run.drain_timed_out
    assert not scene.run.torn


def test_silence_after_the_exit_brings_the_result() -> None:
    scene = Scene()
    scene.process.exit_with(0)

    scene.loop.move(QUIET / 2)
    scene.process.say(b"late")
    scene.loop.move(QUIET / 2)
    assert not scene.run.over
    scene.loop.move(QUIET / 2)

    assert scene.told == [("over", 0)]
    assert scene.run.stdout.data == b"late"
    assert (scene.run.drain_timed_out, scene.run.torn) == (False, True)


def test_whoever_goes_on_talking_is_cut_off_at_the_hard_deadline() -> None:
    scene = Scene()
    scene.process.exit_with(0)

    for _ in range(int(HARD / QUIET * 2) - 1):
        scene.loop.move(QUIET / 2)
        scene.process.say(b".")
    assert not scene.run.over
    scene.loop.move(QUIET / 2)

    assert scene.told == [("over", 0)]
    assert scene.run.drain_timed_out
    assert scene.run.torn


def test_without_a_window_of_silence_a_silent_holder_is_awaited_to_the_hard_deadline() -> None:
    scene = Scene(quiet=None)
    scene.process.exit_with(0)

    scene.loop.move(HARD - QUIET)
    assert not scene.run.over
    scene.loop.move(QUIET)

    assert scene.told == [("over", 0)]
    assert scene.run.drain_timed_out


@pytest.mark.parametrize("stream", [Stream.STDOUT, ERR])
def test_what_is_ready_at_a_deadline_wins_over_it(stream: Stream) -> None:
    """The child wrote in time; that nobody has looked yet is not its fault."""
    scene = Scene(streamed=True)
    scene.process.exit_with(0)

    scene.loop.move(QUIET * 7 / 8)
    scene.pipes.ready.append((stream, b"ready"))
    scene.loop.move(QUIET / 8)
    between = list(scene.told)
    scene.loop.move(QUIET)

    assert between == [(stream.value, b"ready", False)]
    assert scene.told == [*between, ("over", 0)]


def test_what_is_ready_at_the_hard_deadline_is_the_last_that_is_told() -> None:
    scene = Scene(streamed=True, quiet=None)
    scene.process.exit_with(0)

    scene.pipes.ready.append((Stream.STDOUT, b"last"))
    scene.loop.move(HARD)

    assert scene.told == [("stdout", b"last", False), ("over", 0)]
    assert scene.run.drain_timed_out


def test_when_the_last_look_finds_the_end_there_is_one_result() -> None:
    class Ending(Pipes):
        def drain(self) -> None:
            self.close()

    scene = Scene(Ending())
    scene.process.exit_with(0)

    scene.loop.move(QUIET)

    assert scene.told == [("over", 0)]
    assert scene.process.calls.count(BY_ITSELF) == 1


def test_output_beyond_the_cap_is_no_reason_to_wait() -> None:
    """Nobody will hear it."""
    scene = Scene(cap=1)
    scene.process.say(b"ab")
    scene.process.exit_with(0)

    scene.loop.move(QUIET / 2)
    scene.process.say(b"c")
    scene.loop.move(QUIET / 2)

    assert scene.told == [("over", 0)]


def test_when_every_cap_is_reached_after_the_exit_the_result_comes_at_once() -> None:
    scene = Scene(streamed=True, cap=1, quiet=None)
    scene.process.exit_with(0)

    scene.process.say(b"ab")
    scene.process.say(b"cd", ERR)
    scene.loop.move(0)

    assert scene.told == [("stdout", b"a", True), ("stderr", b"c", True), ("over", 0)]
    assert not scene.run.drain_timed_out


@pytest.mark.parametrize("quiet", [None, QUIET])
def test_when_every_cap_was_reached_before_the_exit_the_result_comes_with_it(quiet: float | None) -> None:
    """Nothing more is wanted of a process that left somebody behind who holds its output open."""
    scene = Scene(streamed=True, cap=1, quiet=quiet)
    scene.process.say(b"ab")
    scene.process.say(b"cd", ERR)

    scene.process.exit_with(0)
    scene.loop.move(0)

    assert scene.told[2:] == [("over", 0)]
    assert not scene.run.drain_timed_out


@pytest.mark.parametrize("ended_first", [False, True])
def test_when_one_stream_ends_and_the_other_is_at_its_cap_the_result_comes_at_once(
    *, ended_first: bool
) -> None:
    """Whether that is before the exit or after it."""
    scene = Scene(cap=1, quiet=None)
    scene.process.say(b"ab")

    if ended_first:
        scene.run.ended(ERR)
        assert not scene.run.over
        scene.process.exit_with(0)
    else:
        scene.process.exit_with(0)
        scene.loop.move(0)
        assert not scene.run.over
        scene.run.ended(ERR)
    scene.loop.move(0)

    assert scene.told == [("over", 0)]
    assert not scene.run.drain_timed_out


def test_the_end_of_a_terminal_is_the_end_of_everything() -> None:
    scene = Scene(terminal=True, streamed=True, quiet=None)
    scene.process.exit_with(0)

    scene.run.ended(Stream.PTY)
    scene.loop.move(0)

    assert scene.told == [("over", 0)]


def test_output_that_ends_though_late_was_not_cut_off() -> None:
    """A server that was held up finds the last words and the end of the output together."""
    scene = Scene(FakeProcess(), quiet=None)
    scene.process.exit_with(0)
    scene.loop.now += HARD + 1

    scene.process.say(b"last words")
    scene.process.close()

    assert scene.told == [("over", 0)]
    assert not scene.run.drain_timed_out
    assert not scene.run.torn


# Time.


def test_the_code_of_a_process_whose_time_was_over_says_so() -> None:
    """The engine has ended it; its output so far is kept, and whatever it has left is ended, too."""
    scene = Scene(FakeProcess())
    scene.process.say(b"so far")

    scene.process.exit_with(end=Exit(137, Outcome(Kind.TIMEOUT, signal=9, by="limit")))
    scene.process.close()

    assert scene.process.calls[-1] == ENDED
    assert scene.told == [("over", TIMED_OUT)]
    assert scene.run.stdout.data == b"so far"
    assert scene.run.torn
    assert not scene.run.drain_timed_out


# Killed.


def test_a_killed_process_takes_everybody_along_whom_it_has_started() -> None:
    """Also whoever has left its group; what was said may end in the middle of a character then."""
    scene = Scene(FakeProcess())

    scene.run.kill()
    scene.process.exit_with(137)
    scene.process.close()

    assert scene.process.calls[1:] == [KILLED, ENDED]
    assert scene.told == [("over", 137)]
    assert scene.run.torn


# Given up.


@pytest.mark.parametrize("exited", [False, True])
def test_a_run_that_is_given_up_has_no_result_and_leaves_nothing(*, exited: bool) -> None:
    scene = Scene(FakeProcess())
    if exited:
        scene.process.exit_with(0)

    scene.run.abandon()
    scene.run.abandon()

    assert scene.told == ["lost"]
    assert scene.process.calls[1:] == [ENDED]
    assert scene.loop.timers == []


def test_a_run_that_is_over_cannot_be_given_up() -> None:
    scene = Scene(FakeProcess())
    scene.process.exit_with(0)
    scene.process.close()

    scene.run.abandon()

    assert scene.told == [("over", 0)]
    assert scene.process.calls.count(BY_ITSELF) == 1


@pytest.mark.parametrize("stdin", [False, True])
def test_a_run_knows_whether_it_may_be_written_to(*, stdin: bool) -> None:
    scene = Scene(stdin=stdin)

    assert (scene.run.takes_stdin, scene.run.stdin_open) == (stdin, stdin)
