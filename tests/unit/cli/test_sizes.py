"""Numbers of bytes and sizes of terminals as people write them."""

from __future__ import annotations

import argparse

import pytest

from holdfast.cli.sizes import byte_count, count, positive, screen, spoken

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
    assert screen("24x80") == (24, 80)


@pytest.mark.parametrize("text", ["", "24", "x80", "0x80", "24x0", "24x99999", "24X80", "24x80x1"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="for example 24x80"):
        screen(text)


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
    assert spoken(size) == text
