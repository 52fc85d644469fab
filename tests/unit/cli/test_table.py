"""Tables for people."""

from __future__ import annotations

from holdfast.cli.table import cut, table


def test_columns_are_as_wide_as_what_is_in_them_and_lines_have_no_blanks_at_their_end() -> None:
    assert table(("A", "BB"), [("long", "x"), ("s", "")]) == ["A      BB", "long   x", "s"]


def test_the_last_column_is_cut_to_the_width_and_keeps_something_of_it() -> None:
    assert table(("A", "B"), [("a", "x" * 50)], width=20) == ["A   B", "a   " + "x" * 13 + "..."]
    assert table(("A", "B"), [("a" * 30, "x" * 50)], width=20)[1].endswith("   xxxxx...")


def test_colour_has_no_width_and_the_head_has_none() -> None:
    lines = table(("A", "B"), [("x", "y")], paint=lambda column, text: f"<{text}>" if column == 0 else text)

    assert lines == ["A   B", "<x>   y"]


def test_what_would_move_the_cursor_is_shown_as_an_escape() -> None:
    """A command line is somebody else's text."""
    assert table(("A",), [("a\x1b[2J\n\udcff",)]) == ["A", r"a\x1b[2J\n\udcff"]


def test_a_cut_says_so() -> None:
    assert (cut("abcdef", 6), cut("abcdef", 5), cut("abcdef", 2)) == ("abcdef", "ab...", "...")
