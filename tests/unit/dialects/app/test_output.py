"""One stream's output up to its cap."""

from __future__ import annotations

import pytest

from holdfast.dialects.app.output import Capped, OutputRoom


@pytest.mark.parametrize(
    ("cap", "pieces", "told"),
    [
        (None, [b"abc", b"d" * 9], [(b"abc", False), (b"d" * 9, False)]),
        (5, [b"abc"], [(b"abc", False)]),
        (5, [b"abcde"], [(b"abcde", True)]),
        (5, [b"abcdef"], [(b"abcde", True)]),
        (5, [b"abc", b"de"], [(b"abc", False), (b"de", True)]),
        (5, [b"abc", b"def"], [(b"abc", False), (b"de", True)]),
        (1, [b"abc"], [(b"a", True)]),
        (0, [b"abc"], [(b"", True)]),
        (2**64 - 1, [b"abc"], [(b"abc", False)]),
    ],
)
def test_a_stream_is_cut_exactly_at_its_cap(
    cap: int | None, pieces: list[bytes], told: list[tuple[bytes, bool]]
) -> None:
    """The piece that reaches the cap says so, also when the output ends right there."""
    capped = Capped(cap, OutputRoom(1000))

    assert [capped.cut(piece) for piece in pieces] == told
    assert capped.full is told[-1][1]


@pytest.mark.parametrize(
    ("cap", "kept", "full"), [(None, b"abcdef", [False] * 3), (4, b"abcd", [False, True, True])]
)
def test_what_fits_is_kept_in_order(cap: int | None, kept: bytes, full: list[bool]) -> None:
    """What comes after the cap is dropped, whoever goes on offering it."""
    capped = Capped(cap, OutputRoom(1000))

    assert [capped.keep(piece) for piece in (b"abc", b"de", b"f")] == full
    assert capped.data == kept


def test_a_silent_stream_has_not_reached_its_cap() -> None:
    """Not even a cap of nothing: there was nothing to cut."""
    capped = Capped(0, OutputRoom(1000))

    assert (capped.full, capped.data) == (False, b"")


def test_what_is_kept_shares_its_room_and_says_so_when_it_is_cut() -> None:
    """However many run at once, and whatever their caps are."""
    room = OutputRoom(5)
    first, second = Capped(10, room), Capped(10, room)

    full = [first.keep(b"abc"), second.keep(b"defg"), second.keep(b"h")]

    assert full == [False, True, True]
    assert (first.data, second.data, room.left) == (b"abc", b"de", 0)
    assert (first.crowded, second.crowded) == (False, True)
    first.give_back()
    assert room.left == 3


def test_what_is_only_told_takes_no_room() -> None:
    room = OutputRoom(1)

    assert Capped(None, room).cut(b"abc") == (b"abc", False)
    assert room.left == 1
