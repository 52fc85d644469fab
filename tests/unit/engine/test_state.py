"""The states of a process."""

from __future__ import annotations

from holdfast.engine.state import State


def test_the_states_are_listed_in_the_order_of_a_life() -> None:
    """Code that compares them, and readers, rely on it."""
    names = [state.name for state in sorted(State, key=lambda state: state.value)]

    assert names == ["RUNNING", "STOPPING", "TERMINATING", "EXITED", "CLOSED"]
