"""Processes as people and programs are shown them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from holdfast.cli.show import (
    chunk_document,
    is_live,
    json_line,
    listing_document,
    listing_row,
    outcome_document,
    table,
    tell_json,
    usage_document,
)
from holdfast.model import Chunk, Kind, Listing, Outcome, Stream, Usage

# Tables.


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


def listing(
    *, argv: Sequence[str] = ("sh", "-c", "x y"), pid: int | None = 7, state: str = "running"
) -> Listing:
    identifier = "0123456789abcdef"
    return Listing("n", pid, argv, "/", False, 100.0, state, None, None, 1, 0, identifier=identifier)


def test_a_row_tells_who_since_when_and_what() -> None:
    row = ("n", "0123456789ab", "7", "running", "2m ago", "sh -c 'x y'")

    assert listing_row(listing(), now=220.0, whole=False) == row


def test_a_process_that_starts_has_no_number_and_clocks_may_differ() -> None:
    starting = listing(pid=None, state="starting")

    assert listing_row(starting, now=90.0, whole=False)[2:5] == ("-", "starting", "0s ago")


def test_a_long_command_is_cut_unless_it_is_wanted() -> None:
    long = listing(argv=["x" * 100])

    assert listing_row(long, now=0.0, whole=False)[5] == "x" * 45 + "..."
    assert listing_row(long, now=0.0, whole=True)[5] == "x" * 100


def test_what_has_ended_does_not_live() -> None:
    states = ("starting", "running", "exited", "closed")

    assert [is_live(listing(state=state)) for state in states] == [True, True, False, False]


# JSON.


def test_a_document_is_one_line_of_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    tell_json({"a": "é\n"})

    (line,) = capsys.readouterr().out.splitlines()
    assert line.isascii()
    assert json.loads(line) == {"a": "é\n"}


def test_a_process_has_the_members_of_the_protocol() -> None:
    found = Listing(
        "n",
        7,
        ["a", "\udcff"],
        "/x",
        True,
        1.5,
        "closed",
        143,
        Outcome(Kind.SIGNAL, signal=15),
        4,
        9,
        identifier="i",
    )

    shown = listing_document(found)

    assert json.loads(json.dumps(shown)) == {
        "name": "n",
        "id": "i",
        "pid": 7,
        "argv": ["a", "\ufffd"],
        "cwd": "/x",
        "tty": True,
        "startedAtMs": 1500,
        "state": "closed",
        "exitCode": 143,
        "outcome": {"kind": "signal", "exitCode": None, "signal": "SIGTERM", "by": None, "detail": None},
        "nextSeq": 4,
        "retainedBytes": 9,
        "kept": False,
    }


def test_a_chunk_is_its_bytes_in_base64() -> None:
    shown = chunk_document(Chunk(3, Stream.PTY, b"\xff\0"))

    assert shown == {"seq": 3, "stream": "pty", "data": "/wA="}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"", ""),
        ("\u00e4\U0001f600\x1b[0m\0".encode(), "\u00e4\U0001f600\x1b[0m\0"),
        ("\u00e4".encode()[:1], None),
        (b"\xed\xa0\x80", None),
    ],
    ids=["ASCII", "nothing", "any characters", "a half", "a surrogate"],
)
def test_a_chunk_that_is_text_has_it_beside_its_bytes(data: bytes, text: str | None) -> None:
    """A reader with jq sees at once what was said; what is no text is not guessed at."""
    shown = chunk_document(Chunk(3, Stream.STDOUT, data))

    assert shown.get("text") == text
    assert json.loads(json_line(shown)) == shown


def test_what_is_not_known_is_null() -> None:
    assert (outcome_document(None), usage_document(None)) == (None, None)


def test_times_are_milliseconds() -> None:
    assert usage_document(Usage(1999, 0, 5)) == {"userMs": 1, "systemMs": 0, "maxRssBytes": 5}
