"""Terminals that are found again: what is shown then, what is not asked again, and how they are left."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.cursors import CursorShape
from holdfast.model import Size
from holdfast.terminal.emulator import Emulator
from tests.fakes.mortal import kill_server, mortal_at
from tests.fakes.server import eventually_sync, program_at
from tests.fakes.terminal import SIZE_TELLER, holdfast, person_at

pytestmark = pytest.mark.slow

DETACH = b"\x10\x11"
WAYS = pytest.mark.parametrize("options", [(), ("--screens", "off")], ids=["drawn", "replayed"])

ASKER = r"""
import os, sys, termios, tty
tty.setraw(0)
os.write(1, b"before\x1b[6nafter\x1b[c\x1b[?2004h\x1b[?1049h\x1b[2J\x1b[?1000h\x1b[3;5H\x1b[?25lfull")
while (keys := os.read(0, 100)) != b"q":
    os.write(1, b"\r\ngot " + repr(keys).encode())
"""
"""A program that asks its terminal, takes the whole screen and the mouse, and tells what is typed."""

FLOODER = r"""
import pathlib, sys
line = b"\x1b[31mflood\x1b[m " + b"x" * 60 + b"\r\n"
for _ in range(50_000_000 // len(line) // 100):
    sys.stdout.buffer.write(line * 100)
sys.stdout.buffer.write(b"over\r\n")
sys.stdout.flush()
pathlib.Path(sys.argv[1]).touch()
sys.stdin.read()
"""


def screen(shown: bytes, *, rows: int = 24, cols: int = 80) -> bytes:
    """What a terminal shows that was shown this."""
    emulator = Emulator(Size(rows, cols))
    emulator.feed(shown)
    return emulator.snapshot(0, complete=True).data


def started(url: str, name: str, program: str, *more: str) -> None:
    command = (sys.executable, "-c", program, *more)
    done = holdfast("run", "-d", "-t", "-i", "-H", url, "--name", name, "--", *command)
    assert done.returncode == 0, done.stderr


@WAYS
def test_nothing_is_asked_again(options: tuple[str, ...]) -> None:
    """The answers would be typed into the program that runs by then."""
    with program_at(*options) as (_, url):
        started(url, "asker", ASKER)
        with person_at("attach", "-H", url, "asker") as person:
            person.expect(b"full")
            person.type(b"x")
            person.expect(b"got b'x'")
            person.type(DETACH)
            person.expect(b"comes back")
            person.wait()

    assert b"\x1b[6n" not in person.shown
    assert b"\x1b[c" not in person.shown


@WAYS
def test_the_terminal_is_usable_after_it_was_left(options: tuple[str, ...]) -> None:
    """Without this every movement of the mouse types into the shell."""
    with program_at(*options) as (_, url):
        started(url, "asker", ASKER)
        with person_at("attach", "-H", url, "asker") as person:
            person.expect(b"full")
            person.type(DETACH)
            person.expect(b"comes back")
            person.wait()

    shown = screen(person.shown)
    for mode in (b"\x1b[?1049h", b"\x1b[?1000h", b"\x1b[?2004h", b"\x1b[?25l"):
        # What the reset begins with switches off, and nothing is switched on behind it.
        assert mode not in shown
    assert b"full" not in shown
    assert b"before" in shown


def test_the_screen_below_a_full_screen_program_is_there_too() -> None:
    with program_at() as (_, url):
        started(url, "asker", ASKER)
        with person_at("attach", "-H", url, "asker") as person:
            person.expect(b"full")
            person.type(b"q")
            person.wait()

    assert b"beforeafter" in screen(person.shown)


@pytest.mark.timeout(180)
def test_after_a_flood_one_screen_is_sent(tmp_path: Path) -> None:
    """Who comes back over a phone's link does not wait for 50 MB."""
    with program_at() as (_, url):
        started(url, "flooder", FLOODER, str(tmp_path / "over"))
        eventually_sync((tmp_path / "over").exists, within=150)
        with person_at("attach", "-H", url, "flooder") as person:
            person.expect(b"over")
            person.type(DETACH)
            person.expect(b"comes back")
            person.wait()

    assert b"flood" in person.shown
    assert len(person.shown) < 24 * 80 * 3


def test_the_one_who_types_has_the_size() -> None:
    """Two people look at one terminal: it cannot have two sizes."""
    with program_at() as (_, url):
        # What is typed must not be shown in the midst of what the program says.
        started(url, "teller", f"import os; os.system('stty -echo'); {SIZE_TELLER}")
        with person_at("attach", "-H", url, "teller", rows=30, cols=90) as one:
            one.expect(b"size 90 30")
            with person_at("attach", "-H", url, "teller", rows=20, cols=70) as other:
                one.expect(b"size 70 20")
                one.insist(b"x\r", b"size 90 30")
                other.insist(b"y\r", b"size 70 20")
                other.type(DETACH)
                other.wait()
            one.type(DETACH)
            one.wait()


def test_no_viewer_makes_a_terminal_unusable() -> None:
    with program_at() as (_, url):
        started(url, "teller", SIZE_TELLER)
        with person_at("attach", "-H", url, "teller", rows=3, cols=10) as person:
            person.expect(b"size 20 8")
            person.type(DETACH)
            person.wait()


def test_the_screen_is_there_after_the_server_has_died() -> None:
    with mortal_at() as (running, url):
        started(url, "asker", ASKER)
        with person_at("attach", "-H", url, "asker") as person:
            person.expect(b"full")
            person.type(DETACH)
            person.wait()
        kill_server(running)
        with person_at("attach", "-H", url, "asker") as again:
            again.expect(b"full")
            again.type(b"q")
            again.wait()

    assert b"\x1b[6n" not in again.shown
    assert b"beforeafter" in screen(again.shown)


INSERTING = "import sys; sys.stdout.write('\\x1b[6 qinserting'); sys.stdout.flush(); sys.stdin.read()"


@WAYS
def test_the_cursor_looks_as_the_program_wants_it_and_as_before_once_it_is_left(
    options: tuple[str, ...],
) -> None:
    with program_at(*options) as (_, url):
        started(url, "editor", INSERTING)
        with person_at("attach", "-H", url, "editor") as person:
            person.expect(b"inserting")
            meanwhile = Emulator(Size(24, 80))
            meanwhile.feed(person.shown)
            person.type(DETACH)
            person.expect(b"comes back")
            person.wait()
        afterwards = Emulator(Size(24, 80))
        afterwards.feed(person.shown)

    assert meanwhile.snapshot(0, complete=True).cursor_shape is CursorShape.BAR
    assert afterwards.snapshot(0, complete=True).cursor_shape is CursorShape.DEFAULT
