"""The terminal we are used at."""

from __future__ import annotations

import os
import pty
import termios
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.cli import terminal


@pytest.fixture
def slave() -> Iterator[int]:
    master, slave = pty.openpty()
    yield slave
    os.close(master)
    os.close(slave)


def test_raw_passes_keys_on_and_is_undone_whatever_happens(slave: int) -> None:
    before = termios.tcgetattr(slave)
    within: list[Any] = []

    def fail() -> None:
        with terminal.raw(slave) as screen:
            within.extend(termios.tcgetattr(slave))
            screen.raw()  # Again, as after a stop: what was before is not forgotten.
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert not within[3] & (termios.ECHO | termios.ICANON | termios.ISIG)
    assert not within[1] & termios.OPOST
    assert termios.tcgetattr(slave) == before


def test_what_was_never_raw_is_left_alone(slave: int) -> None:
    before = termios.tcgetattr(slave)

    terminal.Terminal(slave).restore()

    assert termios.tcgetattr(slave) == before


def test_a_terminal_that_is_gone_needs_no_restoring() -> None:
    master, slave = pty.openpty()
    screen = terminal.Terminal(slave)
    screen.raw()
    os.close(master)
    os.close(slave)

    screen.restore()


def test_only_a_terminal_is_one(slave: int) -> None:
    assert terminal.is_terminal(slave)
    with open(os.devnull) as nothing:
        assert not terminal.is_terminal(nothing.fileno())
    assert not terminal.is_terminal(1 << 20)


def test_the_size_is_that_of_the_first_terminal_that_has_one(
    slave: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(terminal, "_STREAMS", (nothing.fileno(), slave))
        assert terminal.screen_size() is None  # It has none yet.
        termios.tcsetwinsize(slave, (30, 90))
        assert terminal.screen_size() == (30, 90)
