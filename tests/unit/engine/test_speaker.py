"""Output that nobody hears is read on, and counted if that is wanted."""

from __future__ import annotations

import os

import pytest

from holdfast.backend import Valve
from tests.fakes.line import line
from tests.fakes.process import eventually

BOTH = pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "pty"])


@BOTH
async def test_nothing_is_told_of_a_muted_output_but_its_end(*, terminal: bool) -> None:
    with line(terminal=terminal) as made:
        made.output.mute()
        os.write(made.child, b"hello")
        made.hang_up()

        made.output.finish()

        await made.listener.when(lambda: made.listener.over)
        assert made.listener.pieces == []


@BOTH
async def test_what_is_dropped_is_counted_and_the_end_is_told(*, terminal: bool) -> None:
    """Much of it, too: a flood is read with pauses, and whole."""
    dropped: list[int] = []
    with line(terminal=terminal) as made:
        made.output.truncate(dropped.append)
        written = 0
        for _ in range(3):
            written += made.fill()
            await eventually(lambda: sum(dropped) == written)  # noqa: B023  (it is called at once)
        made.hang_up()

        made.output.finish()

        await made.listener.when(lambda: made.listener.over)
        assert made.listener.pieces == []


async def test_a_valve_that_held_an_output_up_holds_it_no_more() -> None:
    """Nobody is behind with what is dropped."""
    dropped: list[int] = []
    valve = Valve()
    with line() as made:
        made.listener.valves = (valve,)
        valve.shut()
        os.write(made.child, b"hello")
        await eventually(lambda: not made.output._watched)

        made.output.truncate(dropped.append)

        await eventually(lambda: sum(dropped) == 5)
