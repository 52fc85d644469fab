"""The interface of files: its values."""

from __future__ import annotations

from holdfast.files import DirEntry, Purpose, Walk, WalkEntry, WalkError


def test_purposes_have_the_names_that_clients_use() -> None:
    assert [purpose.value for purpose in Purpose] == ["read", "replace"]


def test_values_are_compared_as_wholes() -> None:
    found = Walk([WalkEntry("/a", directory=True)], [WalkError("/b", 13)], truncated=False)

    assert found == Walk([WalkEntry("/a", directory=True)], [WalkError("/b", 13)], truncated=False)
    assert DirEntry("a", directory=True, file=False) != DirEntry("a", directory=False, file=False)
