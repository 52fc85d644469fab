"""A process at a terminal that another object goes on with.

The system hands a terminal's bytes over when it finds the time, so these lives are not drawn at random.
"""

from __future__ import annotations

import pytest

from holdfast.model import PLAIN, Cause, Kind, ProcessTerms, Stream, WriteStatus
from tests.property.scripted import Deed, Life


@pytest.mark.parametrize("suspends", [False, True])
def test_a_terminal_that_is_held_open_after_the_exit_closes_when_it_is_let_go(*, suspends: bool) -> None:
    """Before the exit a terminal that nobody has open is not at its end: somebody may open it again."""
    life = Life(PLAIN, suspends=suspends, terminal=True)
    life.do(Deed("exit", 3))
    life.do(Deed("restart"))
    assert (life.process.exit_code, life.process.closed) == (3, False)

    life.do(Deed("let go"))

    assert life.process.closed
    life.bury()


@pytest.mark.parametrize("suspends", [False, True])
async def test_the_end_of_the_input_is_written_behind_what_a_full_terminal_has_not_taken(
    *, suspends: bool
) -> None:
    """It was accepted, so it must reach the program, also if there was no room for it when it came."""
    life = Life(PLAIN, suspends=suspends, terminal=True)
    said = bytes([7]) * 50_000
    while life.process.try_write(said) is not None:
        pass
    assert life.process.close_stdin_now() is WriteStatus.ACCEPTED
    life.do(Deed("restart"))

    got = b""
    while not got.endswith(b"\n\x04"):
        got += life.child.hear_input().replace(b"(nothing)", b"")
        life.settle()

    assert set(got[:-2]) == {7}
    assert len(got) % 50_000 == 2
    life.child.let_go(Stream.PTY)
    life.bury()


@pytest.mark.parametrize("was_asked", [False, True])
def test_who_was_to_be_asked_to_end_is_asked_and_nobody_twice(*, was_asked: bool) -> None:
    """A server may die after it has written down that it ends a process, and before it has done anything."""
    life = Life(PLAIN, suspends=True)
    life.process.end_for(Cause(Kind.TERMINATED, "client"), 60.0)
    life.child.orders.clear()

    life.restart(was_asked=was_asked)

    assert life.child.orders == ([] if was_asked else ["signal 15 to all"])
    life.bury()


@pytest.mark.parametrize("suspends", [False, True])
def test_what_was_left_behind_is_ended_by_the_limit_of_output_and_the_close_comes_last(
    *, suspends: bool
) -> None:
    """Everybody who watches is told of the bytes that were too many before the close."""
    life = Life(ProcessTerms(output=60), suspends=suspends)
    for deed in (Deed("say", 31), Deed("exit", 0), Deed("restart"), Deed("say", 30), Deed("wait", 1)):
        life.do(deed)
    told = [
        event[0] for event in life.ledger if isinstance(event, tuple) and event[0] in ("output", "closed")
    ]

    assert told == ["output", "output", "closed"]
    assert "kill" in life.child.orders
    assert life.process._watchdog is None  # Two that know each other are not freed when nobody needs them.
    life.bury()
