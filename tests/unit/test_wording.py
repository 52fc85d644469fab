"""Numbers with words."""

from __future__ import annotations

import pytest

from holdfast.wording import counted


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (1.0, "1 second"),
        (0.03, "0.03 seconds"),
        (1.5, "1.5 seconds"),
        (2, "2 seconds"),
        (12_345_678_901, "12345678901 seconds"),
    ],
)
def test_one_of_a_thing_is_one(number: float, words: str) -> None:
    assert counted(number, "second") == words
