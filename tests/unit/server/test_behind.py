"""Messages that wait behind a long one."""

from __future__ import annotations

from holdfast.server.behind import NOTHING_BEHIND, Behind


def test_what_waits_is_counted_and_taken_in_order() -> None:
    behind = Behind()
    for parts in ((b"a", b"bc"), (b"d",)):
        behind.put(parts)
    size = behind.size

    assert list(behind.take()) == [(b"a", b"bc"), (b"d",)]
    assert (size, behind.size) == (4, 0)
    assert list(behind.take()) == []


def test_nothing_is_behind_those_who_say_nothing_long() -> None:
    assert NOTHING_BEHIND.size == 0
