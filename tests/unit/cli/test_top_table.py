"""The table of ``top`` in lines of any width."""

from __future__ import annotations

import pytest

from holdfast.cli.top_sample import ProcessRow
from holdfast.cli.top_table import cells, columns_for, fit, percent, short_size, short_time, table_lines
from holdfast.model import CurrentUsage
from tests.unit.cli.test_top_sample import listed


def row(name: str = "web", command: str = "sleep 1000") -> ProcessRow:
    usage = CurrentUsage(name, name, 0, 5 << 20, 2, 10)
    return ProcessRow(listed(name), name, "running", command, 65.0, usage, 99.51, 1536.0)


def test_on_a_usual_terminal_every_column_is_there() -> None:
    head, line = table_lines([row()], 78)

    assert head.split() == ["NAME", "STATE", "CPU%", "MEM", "OUT/S", "AGE", "COMMAND"]
    assert line.split() == ["web", "running", "99.5", "5.0M", "1.5K", "1m", "sleep", "1000"]


def test_a_narrow_terminal_does_without_some_and_always_has_the_name() -> None:
    titles = {width: [column.title for column in columns_for(width)] for width in (78, 50, 30, 16, 1)}

    assert len(titles[78]) == 7
    assert titles[50] == ["NAME", "STATE", "CPU%", "MEM", "AGE", "COMMAND"]
    assert titles[30] == ["NAME", "STATE", "CPU%"]
    assert titles[16] == ["NAME", "CPU%"]
    assert titles[1] == ["NAME"]


@pytest.mark.parametrize("width", range(1, 130, 3))
@pytest.mark.parametrize("name", ["w", "a-name-longer-than-most", "工作" * 20, "e\u0301" * 30])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    """A line that is broken in two moves everything below it."""
    lines = table_lines([row(name, "command " * 30), row()], width)

    assert max(map(cells, lines)) <= width


def test_columns_are_below_each_other_whatever_the_names_are() -> None:
    lines = table_lines([row("工作"), row("a-long-name-of-a-job"), row()], 100)

    # A wide character takes two cells.
    places = {cells(line[: line.index("running")]) for line in lines[1:]}
    assert len(places) == 1


def test_without_a_width_nothing_is_cut() -> None:
    """Scripts read it."""
    _, line = table_lines([row("n" * 100, "c" * 300)], None)

    assert "n" * 100 in line
    assert line.endswith("c" * 300)


def test_an_empty_table_is_its_head() -> None:
    assert len(table_lines([], 80)) == len(table_lines([], None)) == 1


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, "-"), (0, "0"), (999, "999"), (1000, "1.0K"), (1536, "1.5K"), (10_240, "10K"), (1 << 20, "1.0M")],
)
def test_sizes_are_short(size: float | None, text: str) -> None:
    assert short_size(size) == text


@pytest.mark.parametrize("exponent", range(46))
def test_sizes_of_any_machine_fit_their_column(exponent: int) -> None:
    assert max(len(short_size(2**exponent * part / 16)) for part in range(16, 33)) <= 5


def test_times_and_percents_are_short() -> None:
    assert [short_time(each) for each in (0, 59.9, 60, 3600, 86_400, 40_000_000)] == [
        "0s",
        "59s",
        "1m",
        "1h",
        "1d",
        "462d",
    ]
    assert [percent(each) for each in (None, 0.0, 99.95, 1600.0)] == ["-", "0.0", "100.0", "1600"]


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [("ab", 4, "ab  "), ("abcd", 3, "ab~"), ("工作", 3, "工~"), ("工作", 2, "~ "), ("a", 0, "")],
)
def test_text_is_cut_with_a_mark(text: str, width: int, fitted: str) -> None:
    assert fit(text, width) == fitted
    assert fit("7", 3, right=True) == "  7"
