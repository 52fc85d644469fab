"""The table of ``top`` as a person steers it."""

from __future__ import annotations

import pytest

from holdfast.cli.top_sample import ProcessRow
from holdfast.cli.top_table import cells
from holdfast.cli.top_view import Style, Verb, View, Wish
from holdfast.model import CurrentUsage, ProcessState
from tests.unit.cli.test_top_sample import listed


def row(name: str, cpu: float = 0.0, *, state: str = "running", command: str = "sleep") -> ProcessRow:
    listing = listed(name, state=ProcessState.RUNNING if state in ("running", "waiting") else state)
    return ProcessRow(
        listing, name, state, command, 5.0, CurrentUsage(name, f"id-{name}", 0, 1 << 20, 1, 0), cpu, 0.0
    )


def view_of(*rows: ProcessRow) -> View:
    view = View(where="ws://host:1")
    view.update(rows)
    return view


def press(view: View, *keys: str) -> Wish | None:
    """Press keys one after the other; give what the last one has led to."""
    wish = None
    for key in keys:
        wish = view.press(key)
    return wish


def texts(view: View, rows: int = 24, cols: int = 80) -> list[str]:
    return [line.text for line in view.lines(rows, cols)]


def chosen(view: View) -> str:
    return next(text for text in texts(view) if text.startswith("> ")).split()[1]


ABC = row("a", 3.0), row("b", 2.0), row("c", 1.0)


def test_the_choice_moves_with_the_keys_and_stops_at_the_ends() -> None:
    view = view_of(*ABC)

    places = [
        (view.press(key), chosen(view))[1] for key in ("up", "down", "end", "down", "home", "page down")
    ]

    assert places == ["a", "b", "c", "c", "a", "c"]


def test_the_choice_stays_with_its_process_when_the_order_changes() -> None:
    """Whoever presses a key means what they were looking at."""
    view = view_of(*ABC)
    press(view, "down")

    view.update([row("a", 1.0), row("b", 9.0), row("c", 5.0)])

    assert chosen(view) == "b"
    assert [text[2:3] for text in texts(view)[3:6]] == ["b", "c", "a"]


def test_the_choice_goes_to_the_next_when_its_process_is_gone() -> None:
    view = view_of(*ABC)
    press(view, "down")

    view.update([ABC[0], ABC[2]])

    assert chosen(view) == "c"


@pytest.mark.parametrize(("key", "verb"), [("enter", Verb.ATTACH), ("a", Verb.ATTACH), ("l", Verb.LOG)])
def test_what_others_do_is_asked_for_with_the_identifier(key: str, verb: Verb) -> None:
    assert press(view_of(*ABC), "down", key) == Wish(verb, "id-b", "b")


def test_without_a_row_nothing_can_be_asked_for() -> None:
    view = view_of()

    assert [press(view, key) for key in ("enter", "a", "l", "k", "up", "down")] == [None] * 6
    assert press(view, "y") is None


def test_a_process_is_ended_only_when_that_is_confirmed() -> None:
    view = view_of(*ABC)

    asked = press(view, "k")
    question = texts(view)[-1]
    confirmed = press(view, "y")

    assert (asked, confirmed) == (None, Wish(Verb.END, "id-a", "a"))
    assert question == "end a and everything it has started? (y/n)"


@pytest.mark.parametrize("key", ["n", "enter", "escape", "k", "q", "up"])
def test_any_other_key_spares_it(key: str) -> None:
    view = view_of(*ABC)

    assert press(view, "k", key) is None
    assert press(view, "y") is None
    assert chosen(view) == "a"


def test_the_process_that_was_asked_about_is_ended_even_if_the_table_has_changed() -> None:
    """Between the question and the answer there is another sample."""
    view = view_of(*ABC)
    press(view, "k")

    view.update([row("c", 9.0), row("b", 8.0)])

    assert press(view, "y") == Wish(Verb.END, "id-a", "a")


def test_words_are_typed_and_taken_away_again() -> None:
    view = view_of(row("web"), row("build"), row("wait"))

    press(view, "/", "w")
    typing = texts(view)[-1], [text[2:5] for text in texts(view)[3:5]]
    press(view, "e", "q")
    none = texts(view)[1]
    press(view, "delete", "delete", "enter")
    kept = texts(view)[0]
    press(view, "escape")

    assert typing == ("/w_", ["wai", "web"])
    assert none.startswith("0 of 3 processes")
    assert "with 'w'" in kept
    assert texts(view)[1].startswith("3 processes")


def test_keys_are_letters_while_words_are_typed() -> None:
    """A person who looks for ``quick`` does not want to leave."""
    view = view_of(row("quick"), row("other"))

    assert [view.press(key) for key in "/quick"] == [None] * 6
    assert view.words == "quick"
    view.press("delete all")
    assert view.words == ""
    assert view.press("interrupt") == Wish(Verb.INTERRUPT)


def test_sorting_goes_through_all_columns_and_back_to_the_first() -> None:
    view = view_of(*ABC)

    orders = [(view.press("s"), view.sort)[1] for _ in range(6)]
    view.press("r")

    assert orders == ["memory", "output", "age", "name", "state", "cpu"]
    assert "by cpu, backwards" in texts(view)[0]


def test_leaving_and_drawing_anew_are_left_to_others() -> None:
    view = view_of(*ABC)

    assert [view.press(key) for key in ("q", "interrupt", "redraw")] == [
        Wish(Verb.LEAVE),
        Wish(Verb.INTERRUPT),
        Wish(Verb.REDRAW),
    ]
    assert [view.press(key) for key in ("x", "1", "e")] == [None] * 3
    assert view.ended


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7, 24, 100])
@pytest.mark.parametrize("cols", [1, 5, 20, 40, 80, 200])
def test_the_screen_is_filled_and_nothing_is_beside_it(rows: int, cols: int) -> None:
    view = view_of(*(row(f"process-{number}", command="工" * 100) for number in range(50)))
    view.notice = "a message that is rather long " * 5
    for key in ("up", "end", "k", "n", "/", "escape"):
        view.press(key)
        lines = texts(view, rows, cols)

        assert len(lines) == rows
        assert max(map(cells, lines)) <= cols


def test_the_choice_is_on_the_screen_however_long_the_table_is() -> None:
    view = view_of(*(row(f"p{number:02}") for number in range(50)))

    seen = []
    for key in ("end", "up", "home", "page down", "page down", "page up"):
        view.press(key)
        seen.append(chosen(view))

    assert seen == ["p49", "p48", "p00", "p20", "p40", "p20"]


def test_a_message_stands_in_the_place_of_the_sums() -> None:
    view = view_of(*ABC)
    sums = texts(view)[1]
    view.notice = "connection lost, trying again..."

    assert sums == "3 processes  CPU 6.0%  MEM 3.0M"
    assert view.lines(24, 80)[1].text == "connection lost, trying again..."
    assert view.lines(24, 80)[1].style is Style.WARNING


def test_before_the_first_answer_it_says_so() -> None:
    assert texts(View())[1] == "asking the server..."
    assert texts(view_of())[1].startswith("0 processes")


def test_rows_look_as_their_state_is() -> None:
    view = view_of(row("a", 3.0), row("b", 2.0, state="waiting"), row("c", 1.0, state="exit 3"), row("d"))

    assert [line.style for line in view.lines(24, 80)[3:7]] == [
        Style.CHOSEN,
        Style.WAITING,
        Style.DIM,
        Style.PLAIN,
    ]
