"""The interface of files: its values."""

from __future__ import annotations

import pytest

from holdfast.files import DirEntry, Purpose, Walk, WalkEntry, WalkError, watch_callback


def test_purposes_have_the_names_that_clients_use() -> None:
    assert [purpose.value for purpose in Purpose] == ["read", "replace"]


def test_values_are_compared_as_wholes() -> None:
    found = Walk([WalkEntry("/a", directory=True)], [WalkError("/b", 13)], truncated=False)

    assert found == Walk([WalkEntry("/a", directory=True)], [WalkError("/b", 13)], truncated=False)
    assert DirEntry("a", directory=True, file=False) != DirEntry("a", directory=False, file=False)


def test_a_watch_takes_its_callback_by_the_old_name_and_says_the_new_one() -> None:
    """Programs were written with the old one."""
    with pytest.warns(DeprecationWarning, match="^told is now called on_change$"):
        old = watch_callback(None, print)

    assert (old, watch_callback(print, None)) == (print, print)
    with pytest.raises(TypeError, match="needs on_change"):
        watch_callback(None, None)
