"""The lines of a recording, against the description of asciicast v3."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import Size
from holdfast.terminal.asciicast import Recording


def test_the_header_tells_the_terminal_and_the_command() -> None:
    line = Recording.header(
        Size(24, 80),
        timestamp=1504467315.9,
        command=["ls", "-l"],
        title="Demo",
        env={"TERM": "xterm", "SHELL": "/bin/sh", "SECRET": "1"},
    )

    assert line.endswith("\n")
    assert json.loads(line) == {
        "version": 3,
        "term": {"cols": 80, "rows": 24, "type": "xterm"},
        "timestamp": 1504467315,
        "command": "ls -l",
        "title": "Demo",
        "env": {"SHELL": "/bin/sh"},
    }


def test_a_header_says_no_more_than_is_known() -> None:
    line = Recording.header(Size(2, 3), timestamp=0)

    assert json.loads(line) == {"version": 3, "term": {"cols": 3, "rows": 2}, "timestamp": 0}


def test_events_tell_the_time_since_the_one_before() -> None:
    recording = Recording(100.0)

    lines = [
        recording.output(100.25, b"\x1b[1mhi\r\n"),
        recording.input(101.0, b"x"),
        recording.resized(101.0, Size(50, 132)),
        recording.ended(103.0, 3),
    ]

    assert [json.loads(line) for line in lines] == [
        [0.25, "o", "\x1b[1mhi\r\n"],
        [0.75, "i", "x"],
        [0.0, "r", "132x50"],
        [2.0, "x", "3"],
    ]


def test_a_character_in_two_pieces_is_one() -> None:
    recording = Recording(0.0)
    character = "漢".encode()

    assert recording.output(1.0, character[:2]) == ""
    assert json.loads(recording.output(2.0, character[2:])) == [2.0, "o", "漢"]


def test_what_is_no_text_is_replaced() -> None:
    recording = Recording(0.0)

    assert json.loads(recording.output(1.0, b"a\xffb")) == [1.0, "o", "a\ufffdb"]
    assert "?" in Recording.header(Size(), timestamp=0, command=["\udcff"])


@given(st.lists(st.floats(0, 3), max_size=200))
def test_what_is_rounded_does_not_add_up(pauses: list[float]) -> None:
    """A player would show a long recording too fast or too slowly."""
    recording, now, told = Recording(0.0), 0.0, 0.0
    for pause in pauses:
        now += pause
        told += json.loads(recording.output(now, b"x"))[0]

    assert abs(told - now) < 0.002


def test_a_mark_has_words() -> None:
    assert json.loads(Recording(1.0).marked(2.5, "here")) == [1.5, "m", "here"]
