"""Times as people write them."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.durations import duration, positive_duration, spoken

TIMES = {
    "30s": 30.0,
    "5m": 300.0,
    "1h30m": 5400.0,
    "500ms": 0.5,
    "1.5s": 1.5,
    "2d": 172800.0,
    "1h0m5s": 3605.0,
    "30": 30.0,
    "0.25": 0.25,
    "0": 0.0,
    "0s": 0.0,
}


@pytest.mark.parametrize(("text", "seconds"), TIMES.items())
def test_a_time_is_read(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "5x", "5 s", "-5s", "1h-", "m5", "5s5", "nan", "inf", "1e3", "٣s"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write for example 30s, 5m, 1h30m, 500ms"):
        duration(text)


def test_a_typing_error_of_a_century_is_refused() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="longer than ten years"):
        duration("100000d")


def test_a_limit_of_no_time_is_refused() -> None:
    """It could mean no limit or an end at once; nobody should have to guess."""
    assert positive_duration("1ms") == 0.001
    with pytest.raises(argparse.ArgumentTypeError, match="leave the option out"):
        positive_duration("0s")


SPOKEN = {0.0: "0s", 0.3: "0.3s", 5.0: "5s", 45.4: "45s", 200.0: "3m20s", 7500.0: "2h5m", 3600.0: "1h"}


@pytest.mark.parametrize(("seconds", "text"), [*SPOKEN.items(), (1036800.0, "12d"), (3605.0, "1h")])
def test_a_time_is_told_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert spoken(seconds) == text


@given(st.integers(1, 10**7))
def test_what_is_told_can_be_read_and_is_not_far_off(seconds: int) -> None:
    assert duration(spoken(seconds)) == pytest.approx(seconds, rel=0.5)
