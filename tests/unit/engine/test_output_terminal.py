"""A terminal that nobody has open may be opened again, as long as the child lives."""

from __future__ import annotations

import asyncio
import os

import pytest

from holdfast.backend import Valve
from holdfast.engine.local import LocalBackend
from tests.fakes.gate import Gate
from tests.fakes.line import line, turns
from tests.fakes.process import TERMINAL, command, eventually
from tests.fakes.recorder import record


async def test_a_terminal_that_nobody_has_open_for_a_moment_is_heard_again() -> None:
    """The child can open it by its name, and so can whoever it has started."""
    with line(terminal=True) as made:
        name = os.ttyname(made.child)
        for word in (b"one", b"two"):
            os.write(made.child, word)
            made.hang_up()
            await made.listener.when(lambda word=word: made.listener.data.endswith(word))  # type: ignore[misc]
            await eventually(lambda: made.output._hung_up)
            assert not made.listener.over
            made.child = os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)

        os.write(made.child, b"three")
        await made.listener.when(lambda: made.listener.data == b"onetwothree")
        total = made.fill()
        await made.listener.when(lambda: len(made.listener.data) == 11 + total)
        made.hang_up()
        made.output.finish()

        assert made.listener.over


async def test_a_terminal_that_nobody_has_open_does_not_keep_the_loop_busy() -> None:
    """A program may close its terminal and compute for an hour."""
    with line(terminal=True) as made:
        calls: list[int] = []

        class Counted:
            def on_ready(self, events: int) -> None:
                calls.append(events)
                made.output.on_ready(events)

        made.poller.hand_over(made.fd, Counted())
        made.hang_up()
        await eventually(lambda: made.output._hung_up)
        await turns()
        before = len(calls)

        for _ in range(100):
            await asyncio.sleep(0)

        assert len(calls) == before


async def test_who_is_behind_holds_up_a_terminal_that_was_opened_again_too() -> None:
    with line(terminal=True) as made:
        name, valve = os.ttyname(made.child), Valve()
        made.listener.valves = (valve,)
        made.hang_up()
        await eventually(lambda: made.output._hung_up)
        valve.shut()
        made.child = os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        os.write(made.child, b"late")
        await turns()
        assert made.listener.data == b""

        valve.open()

        await made.listener.when(lambda: made.listener.data == b"late")


@pytest.mark.parametrize("size", [4, 300_000])
async def test_a_program_that_leaves_its_terminal_and_comes_back_is_heard(
    backend: LocalBackend, gate: Gate, size: int
) -> None:
    """It would wait for ever once the terminal is full."""
    words = f"head -c {size} /dev/zero | tr '\\0' x"
    script = f"exec 0<&- 1>&- 2>&-; {gate.shell}; exec >/dev/tty; {words}; exit 7"
    recorder = record(await backend.start(command("sh", "-c", script, terminal=TERMINAL)))
    await gate.reached()

    gate.open()

    await recorder.until("closed")
    assert recorder.said() == b"x" * size
    assert recorder.told[-2:] == [("exited", 7), ("closed",)]
