"""Texts that must make sense beyond being texts, and numbers of 64 bits."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import BadRequest
from holdfast.protocol.shapes import Base64Text, PathText, UuidText, check_uuid, checked, within_u64

CHARACTER = "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-]"
UUID = "123e4567-e89b-12d3-a456-426614174000"


def complaint(kind: Any, text: str) -> str | None:
    """What is said of a text of such a type."""
    (meta,) = kind.__metadata__
    said: str | None = meta.extra["complain"](text)
    return said


def test_what_a_reader_refuses_is_what_is_complained_about() -> None:
    def read(text: str) -> None:
        if text != "good":
            raise BadRequest(f"{text} is bad")

    complain = (checked(read).extra or {})["complain"]

    assert (complain("good"), complain("this")) == (None, "this is bad")


@pytest.mark.parametrize("text", [UUID, UUID.upper(), UUID.replace("-", ""), f"urn:uuid:{UUID}"])
def test_a_uuid_may_be_written_in_several_ways(text: str) -> None:
    check_uuid(text)

    assert complaint(UuidText, text) is None


def test_no_uuid_is_none_to_check() -> None:
    check_uuid(None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "invalid length: expected length 32 for simple format, found 0"),
        ("0" * 31, "invalid length: expected length 32 for simple format, found 31"),
        ("0-0", "invalid group count: expected 5, found 2"),
        (UUID[1:], "invalid group length in group 0: expected 8, found 7"),
        (UUID + "0", "invalid group length in group 4: expected 12, found 13"),
        (
            "x" + UUID,
            f"{CHARACTER}, found `x` at 1",
        ),
        (
            UUID[:-1] + "g",
            f"{CHARACTER}, found `g` at 36",
        ),
    ],
)
def test_what_is_no_uuid_is_told_why(text: str, words: str) -> None:
    """In the words of the reference."""
    assert complaint(UuidText, text) == words
    with pytest.raises(ValueError, match="invalid"):
        check_uuid(text)


@pytest.mark.parametrize("counts", [(), (None,), (0,), (2**64 - 1, None, 5)])
def test_a_number_of_64_bits_is_one(counts: tuple[int | None, ...]) -> None:
    within_u64(*counts)


@pytest.mark.parametrize("counts", [(2**64,), (1, None, 2**70)])
def test_a_larger_one_is_none(counts: tuple[int | None, ...]) -> None:
    with pytest.raises(ValueError, match="invalid number"):
        within_u64(*counts)


def test_paths_and_bytes_are_read_by_their_own_modules() -> None:
    assert complaint(PathText, "file:///a") is None
    assert complaint(PathText, "a") == "invalid URI: relative URL without a base"
    assert complaint(Base64Text, "aGk=") is None
    assert complaint(Base64Text, "?") is not None
