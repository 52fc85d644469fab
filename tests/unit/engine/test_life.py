"""The states of a process."""

from __future__ import annotations

from holdfast.engine.life import State, may_become


def test_the_states_are_listed_in_the_order_of_a_life() -> None:
    """Code that compares them, and readers, rely on it."""
    names = [state.name for state in sorted(State, key=lambda state: state.value)]

    assert names == ["RUNNING", "STOPPING", "KILLED", "EXITED", "CLOSED"]


def test_a_process_never_goes_back_and_always_gets_to_its_close() -> None:
    for state in State:
        following = [other for other in State if may_become(state, other)]

        assert all(other.value > state.value for other in following)
        assert bool(following) is (state is not State.CLOSED)
    assert not may_become(State.RUNNING, State.CLOSED)
