"""The keys in the bytes that a terminal sends."""

from __future__ import annotations

import pytest

from holdfast.cli.top_keys import keys_in


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"ab", ["a", "b"]),
        (b"\x1b[A\x1b[B\x1bOA\x1bOB", ["up", "down", "up", "down"]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[F\x1b[1~\x1b[4~", ["page up", "page down", "home", "end", "home", "end"]),
        (b"\r\n\x7f\x15\x03\x0c", ["enter", "enter", "delete", "delete all", "interrupt", "redraw"]),
        (b"\x1b", ["escape"]),
        (b"\x1b\x1b[A", ["escape", "up"]),
        (b"a\x1b[Ab", ["a", "up", "b"]),
        ("é工".encode(), ["é", "工"]),
    ],
)
def test_keys_are_found(data: bytes, keys: list[str]) -> None:
    assert keys_in(data) == keys


@pytest.mark.parametrize(
    "data",
    [b"", b"\x1b[15~", b"\x1b[1;5A", b"\x1bOP", b"\x1b[", b"\x1bO", b"\x00\xff"],
)
def test_what_stands_for_no_key_of_ours_does_nothing(data: bytes) -> None:
    """A key that is pressed by mistake must not end a process."""
    assert keys_in(data) == []


def test_every_piece_of_a_long_input_comes_to_an_end() -> None:
    """Somebody may paste a file."""
    assert len(keys_in(b"\x1b[A" * 1000 + b"x" * 1000)) == 2000
