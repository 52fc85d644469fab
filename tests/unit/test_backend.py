"""The interface's one piece of behaviour: the valve."""

from __future__ import annotations

from holdfast.backend import Valve


def test_a_valve_is_open_at_first() -> None:
    assert Valve().is_open


def test_who_waits_is_called_once_when_the_valve_opens() -> None:
    valve, calls = Valve(), list[str]()
    valve.shut()
    valve.wait(lambda: calls.append("resume"))
    before = list(calls)

    valve.open()
    valve.open()

    assert (before, calls, valve.is_open) == ([], ["resume"], True)


def test_the_same_process_waits_only_once() -> None:
    """It finds the valve shut at each of its streams."""
    valve, calls = Valve(), list[str]()
    valve.shut()

    def resume() -> None:
        calls.append("resume")

    valve.wait(resume)
    valve.wait(resume)
    valve.open()

    assert calls == ["resume"]


def test_who_waits_again_while_being_called_is_kept_for_the_next_time() -> None:
    """What one says may fill the client's buffer, and the others have to wait again."""
    valve, calls = Valve(), list[str]()

    def resume() -> None:
        calls.append("resume")
        valve.shut()
        valve.wait(resume)

    valve.shut()
    valve.wait(resume)
    valve.open()
    first = list(calls)
    valve.open()

    assert (first, calls) == (["resume"], ["resume", "resume"])


def test_opening_with_nobody_waiting_is_fine() -> None:
    valve = Valve()
    valve.shut()

    valve.open()

    assert valve.is_open
