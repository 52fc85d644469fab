"""The terminal we are used at, and the keys that leave a process there."""

from __future__ import annotations

import argparse
import os
import pty
import termios
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli import terminal
from holdfast.cli.terminal import DEFAULT_DETACH_KEYS, KeyScanner, detach_keys


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


def test_raw_mode_may_leave_the_interrupt_to_the_kernel_and_nothing_else(slave: int) -> None:
    """Without a connection ^C is for us, and nobody reads what is typed."""
    before = termios.tcgetattr(slave)
    with terminal.raw(slave) as screen:
        raw = termios.tcgetattr(slave)
        screen.raw_but_interrupt()
        within = termios.tcgetattr(slave)
        screen.raw()
        again = termios.tcgetattr(slave)

    assert within[3] == raw[3] | termios.ISIG
    assert [within[6][key] for key in (termios.VINTR, termios.VQUIT, termios.VSUSP)] == [
        b"\x03",
        b"\0",
        b"\0",
    ]
    assert again[3] == raw[3]
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


# The keys that leave a process: how they are written, how they are found, what is held back.

KEYS = {
    "ctrl-p,ctrl-q": b"\x10\x11",
    "ctrl-a,d": b"\x01d",
    "Ctrl-A": b"\x01",
    "ctrl-@": b"\0",
    "ctrl-[": b"\x1b",
    "ctrl-\\,ctrl-]": b"\x1c\x1d",
    "~,.": b"~.",
    "": b"",
}


@pytest.mark.parametrize(("text", "keys"), KEYS.items())
def test_keys_are_read_as_docker_writes_them(text: str, keys: bytes) -> None:
    assert detach_keys(text) == keys


@pytest.mark.parametrize("text", ["ctrl-", "ctrl-1", "alt-x", "ab", "ctrl-p,,x", "é", "\x01"])
def test_what_is_no_key_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"for example {DEFAULT_DETACH_KEYS}"):
        detach_keys(text)


def fed(scan: KeyScanner, *pieces: bytes) -> list[tuple[bytes, bool]]:
    return [scan.feed(piece) for piece in pieces]


def test_a_beginning_is_held_back_until_it_is_known_what_it_is() -> None:
    scan = KeyScanner(b"\x10\x11")

    assert fed(scan, b"a\x10", b"b") == [(b"a", False), (b"\x10b", False)]
    assert fed(scan, b"\x10", b"\x11rest") == [(b"", False), (b"", True)]


def test_a_beginning_within_a_beginning_is_found() -> None:
    """After ``aab`` of ``aabaac`` a second ``a`` may begin anew: nothing may be missed."""
    scan = KeyScanner(b"aac")

    assert fed(scan, b"aaac") == [(b"a", True)]


def test_what_is_held_back_at_the_end_is_given_out() -> None:
    scan = KeyScanner(b"xyz")

    assert scan.feed(b"axy") == (b"a", False)
    assert scan.rest() == b"xy"
    assert scan.rest() == b""


def test_without_keys_everything_passes() -> None:
    assert KeyScanner(b"").feed(b"\x10\x11") == (b"\x10\x11", False)


def test_a_scanner_that_passes_keys_holds_nothing_back_and_notices() -> None:
    scan = KeyScanner(b"\x10\x11", passes_keys=True)

    assert fed(scan, b"\x10", b"\x11more", b"x") == [(b"\x10", False), (b"\x11more", True), (b"x", False)]
    assert scan.feed(b"\x10") == (b"\x10", False)
    assert scan.rest() == b""


@given(
    st.lists(st.binary(max_size=6).map(lambda b: bytes(x % 3 for x in b))),
    st.sampled_from([b"\0\1", b"\0\0\1"]),
)
def test_however_it_is_cut_the_keys_are_found_where_they_are(pieces: list[bytes], keys: bytes) -> None:
    text = b"".join(pieces)
    scan = KeyScanner(keys)
    passed = b""
    found = False
    for piece in pieces:
        more, found = scan.feed(piece)
        passed += more
        if found:
            break

    place = text.find(keys)
    assert found == (place >= 0)
    assert passed + (b"" if found else scan.rest()) == (text[:place] if found else text)
