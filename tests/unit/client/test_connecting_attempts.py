"""Attempts to connect, and the pauses between them."""

from __future__ import annotations

from holdfast.client.connecting import Attempts


def test_pauses_grow_up_to_a_bound_and_are_never_the_same() -> None:
    """Clients of a server that was restarted must not all come back at the same moment, again and again."""
    attempts = Attempts(1000.0)

    pauses = [attempts.pause() for _ in range(8)]

    for pause, most in zip(pauses, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0), strict=True):
        assert most / 2 <= pause <= most


def test_attempts_are_over_when_there_is_no_time_for_another_pause() -> None:
    attempts = Attempts(10.0)

    assert not attempts.are_over(9.9)
    assert attempts.are_over(9.95)
    attempts.pause()
    assert attempts.are_over(9.9)
