"""Text that stands for bytes."""

from __future__ import annotations

import pytest

from holdfast.host.text import to_bytes, to_text


@pytest.mark.parametrize("data", [b"", b"plain", "ü€😀".encode(), b"\xff\xfe", b"a\x80b", bytes(range(256))])
def test_any_bytes_survive_the_way_to_text_and_back(data: bytes) -> None:
    """A file name or variable that is not UTF-8 must reach the child as it was."""
    assert to_bytes(to_text(data)) == data


def test_text_is_utf_8_whatever_the_locale() -> None:
    """Two servers with different locales give the same child the same bytes."""
    assert to_bytes("é") == b"\xc3\xa9"
    assert to_text(b"\xc3\xa9") == "é"


def test_bytes_that_are_not_utf_8_become_lone_surrogates() -> None:
    """The form that Python's own interfaces to the operating system understand."""
    assert to_text(b"a\xff") == "a\udcff"
