"""How far a copy is, as its user sees it."""

from __future__ import annotations

from holdfast.cli.cp import Progress, progress_line


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_short_copy_shows_nothing() -> None:
    shown: list[str] = []
    progress = Progress(shown.append, Clock(), lambda: 80)
    progress.begin("file", 10)
    progress.advance(10)
    progress.end()

    assert shown == []


def test_a_long_copy_is_shown_now_and_then_and_taken_away() -> None:
    shown: list[str] = []
    clock = Clock()
    progress = Progress(shown.append, clock, lambda: 80)
    progress.begin("file", 2 << 20)
    clock.now += 1.0
    progress.advance(1 << 20)
    progress.advance(1)
    clock.now += 1.0
    progress.advance((1 << 20) - 1)
    progress.end()
    progress.end()

    assert len(shown) == 3
    assert "[############............]  50%    1.0 MiB  1.0 MiB/s" in shown[0]
    assert "100%" in shown[1]
    assert shown[2] == "\r\x1b[K"


def test_without_a_size_there_is_no_bar() -> None:
    assert "[" not in progress_line("x" * 100, 5, None, 1.0)
    assert progress_line("x" * 100, 5, None, 1.0).startswith("x" * 17 + "...")
    assert "100%" in progress_line("grown", 20, 10, 1.0)


def test_on_a_narrow_terminal_it_stays_on_one_line_and_a_name_cannot_leave_it() -> None:
    """What is taken away at the end is one line."""
    shown: list[str] = []
    clock = Clock()
    progress = Progress(shown.append, clock, lambda: 10)
    progress.begin("a\nb\x1b[2J", 10)
    clock.now += 1.0
    progress.advance(5)

    assert shown == ["\ra\\nb\\x1b[\x1b[K"]
