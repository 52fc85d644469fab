"""The screen that ``top`` draws on, with a pipe in the place of the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.cli.top_screen import TableScreen
from holdfast.cli.top_view import Line, Style


class Written:
    """What was written to the screen since it was last looked at."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __call__(self) -> str:
        try:
            return os.read(self._fd, 1 << 16).decode()
        except BlockingIOError:
            return ""


@pytest.fixture
def pipe() -> Iterator[tuple[Written, int]]:
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    yield Written(ours), theirs
    os.close(ours)
    os.close(theirs)


def test_only_lines_that_have_changed_are_written_and_all_at_once(pipe: tuple[Written, int]) -> None:
    """A screen that is emptied and filled again flickers, and is slow over a slow line."""
    written, fd = pipe
    screen = TableScreen(fd, colours=True)
    screen.enter()
    screen.draw([Line("head", Style.HEAD), Line("one"), Line("two")])
    written()

    screen.draw([Line("head", Style.HEAD), Line("other"), Line("two")])
    changed = written()
    screen.draw([Line("head", Style.HEAD), Line("other"), Line("two")])

    assert changed == "\x1b[?2026h\x1b[2;1Hother\x1b[K\x1b[?2026l"
    assert written() == ""


def test_lines_that_are_no_longer_there_are_emptied(pipe: tuple[Written, int]) -> None:
    written, fd = pipe
    screen = TableScreen(fd, colours=True)
    screen.enter()
    screen.draw([Line("one"), Line("two")])
    written()

    screen.draw([Line("one")])

    assert "\x1b[2;1H\x1b[K" in written()


def test_the_screen_is_taken_once_and_given_back_once(pipe: tuple[Written, int]) -> None:
    written, fd = pipe
    screen = TableScreen(fd, colours=True)

    screen.draw([Line("before")])
    nothing = written()
    screen.enter()
    screen.enter()
    screen.leave()
    screen.leave()
    screen.draw([Line("after")])

    assert nothing == ""
    assert written() == "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J\x1b[0m\x1b[?25h\x1b[?1049l"


def test_everything_is_drawn_anew_when_others_have_written(pipe: tuple[Written, int]) -> None:
    written, fd = pipe
    screen = TableScreen(fd, colours=True)
    screen.enter()
    screen.draw([Line("one")])
    written()

    screen.forget()
    screen.draw([Line("one")])

    assert "one" in written()


def test_without_colours_there_are_none_and_what_is_chosen_is_still_seen(pipe: tuple[Written, int]) -> None:
    written, fd = pipe
    screen = TableScreen(fd, colours=False)
    screen.enter()
    screen.draw([Line("lost", Style.WARNING), Line("waits", Style.WAITING), Line("chosen", Style.CHOSEN)])

    shown = written()

    assert "\x1b[31m" not in shown
    assert "\x1b[33m" not in shown
    assert "\x1b[7mchosen\x1b[0m" in shown


def test_what_a_terminal_cannot_express_is_replaced(pipe: tuple[Written, int]) -> None:
    written, fd = pipe
    screen = TableScreen(fd, colours=True, encoding="ascii")
    screen.enter()
    screen.draw([Line("工")])

    assert "?" in written()
