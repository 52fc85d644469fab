"""Times, byte counts and other numbers, as people write and read them."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.quantities import (
    byte_count,
    byte_range,
    count,
    duration,
    format_bytes,
    format_duration,
    positive,
    positive_duration,
    terminal_size,
)

# Times.

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


DURATIONS = {0.0: "0s", 0.3: "0.3s", 5.0: "5s", 45.4: "45s", 200.0: "3m20s", 7500.0: "2h5m", 3600.0: "1h"}


@pytest.mark.parametrize(("seconds", "text"), [*DURATIONS.items(), (1036800.0, "12d"), (3605.0, "1h")])
def test_a_time_is_told_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(1, 10**7))
def test_what_is_told_can_be_read_and_is_not_far_off(seconds: int) -> None:
    assert duration(format_duration(seconds)) == pytest.approx(seconds, rel=0.5)


# Sizes and counts.

BYTES = {
    "1": 1,
    "17b": 17,
    "64k": 65536,
    "512m": 512 << 20,
    "2g": 2 << 30,
    "2G": 2 << 30,
    "1.5k": 1536,
    "1MiB": 1 << 20,
    "1mb": 1 << 20,
    "1t": 1 << 40,
}


@pytest.mark.parametrize(("text", "size"), BYTES.items())
def test_a_number_of_bytes_is_read(text: str, size: int) -> None:
    assert byte_count(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "m", "1x", "1e3", "0.1b", "99999999999t", "1 2"])
def test_what_is_none_is_refused_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write for example 512m, 2g"):
        byte_count(text)


def test_a_size_of_a_terminal_is_rows_and_columns() -> None:
    assert terminal_size("24x80") == (24, 80)


@pytest.mark.parametrize("text", ["", "24", "x80", "0x80", "24x0", "24x99999", "24X80", "24x80x1"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="for example 24x80"):
        terminal_size(text)


@pytest.mark.parametrize("text", ["", "-1", "1.0", "x", "²", "٣"])
def test_only_digits_are_a_number(text: str) -> None:
    for read in (positive, count):
        with pytest.raises(argparse.ArgumentTypeError):
            read(text)


def test_nothing_is_a_number_but_not_a_positive_one() -> None:
    assert (count("0"), positive("1")) == (0, 1)
    with pytest.raises(argparse.ArgumentTypeError, match="0 is not a positive number"):
        positive("0")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (512 << 20, "512 MiB"), (3 << 40, "3.0 TiB")],
)
def test_a_number_of_bytes_is_told_in_its_unit(size: int, text: str) -> None:
    assert format_bytes(size) == text


# Ranges.


@pytest.mark.parametrize(
    ("text", "found"),
    [("0-99", (0, 99)), ("5-5", (5, 5)), ("100-", (100, None)), ("0-", (0, None)), ("-100", (-100, None))],
)
def test_a_range_of_bytes_is_that_of_http(text: str, found: tuple[int, int | None]) -> None:
    assert byte_range(text) == found


@pytest.mark.parametrize(
    "text", ["", "-", "-0", "9-1", "1", "1-2-3", "a-b", "1:2", "٣-٤", "0-9999999999999999999"]
)
def test_what_is_no_range_of_bytes_is_told_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"0-99, 100- or"):
        byte_range(text)
