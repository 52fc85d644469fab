"""A terminal that edits lines and hands over the detach keys at once."""

from __future__ import annotations

import os
import pty
import termios
from collections.abc import Iterator

import pytest

from holdfast.cli.line_keys import handing_over, is_in_foreground

Ends = tuple[int, int]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Both ends of a terminal: ours, and that of whoever types."""
    master, slave = pty.openpty()
    yield slave, master
    os.close(master)
    os.close(slave)


@pytest.mark.parametrize(
    "keys", [b"\x10\x11", b"\x11", b"\x13\x03", b"\x04", b"\x1a\x1a", b"ab", b"\x7f\x15"], ids=repr
)
def test_what_was_typed_is_handed_over_with_the_last_of_the_keys(keys: bytes, ends: Ends) -> None:
    """Also those that would stop the output, end the input, or take back what was typed."""
    slave, master = ends
    with handing_over(slave, keys):
        os.write(master, b"hello\n")
        assert os.read(slave, 100) == b"hello\n"
        os.write(master, b"x" + keys)
        handed = b""
        while not handed.endswith(keys):
            handed += os.read(slave, 100)

    assert handed == b"x" + keys


def test_lines_are_edited_as_ever(ends: Ends) -> None:
    slave, master = ends
    with handing_over(slave, b"\x10\x11"):
        os.write(master, b"hellp\x7fo\nwrong\x15right\n")

        assert os.read(slave, 100) + os.read(slave, 100) == b"hello\nright\n"


def test_everything_is_as_before_afterwards_also_after_a_stop(ends: Ends) -> None:
    slave, _ = ends
    before = termios.tcgetattr(slave)
    with handing_over(slave, b"\x10\x11") as terminal:
        within = termios.tcgetattr(slave)
        termios.tcsetattr(slave, termios.TCSANOW, before)  # As a shell does to a job that it stops.
        terminal.enter()
        assert termios.tcgetattr(slave) == within

    assert within != before
    assert termios.tcgetattr(slave) == before


def test_a_terminal_that_is_not_ours_and_no_terminal_are_not_in_the_foreground(ends: Ends) -> None:
    slave, _ = ends
    reader, writer = os.pipe()

    assert not is_in_foreground(slave)
    assert not is_in_foreground(reader)
    os.close(reader)
    os.close(writer)
