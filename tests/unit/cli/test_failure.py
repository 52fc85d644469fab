"""A command that cannot do what it was asked for."""

from __future__ import annotations

from holdfast.cli.failure import OWN, Failure


def test_a_failure_is_ours_unless_it_says_otherwise() -> None:
    assert (str(Failure("words")), Failure("words").code, Failure("words", 7).code) == ("words", OWN, 7)
