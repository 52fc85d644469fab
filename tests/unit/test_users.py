"""How requests name users: by names, or by numbers."""

from __future__ import annotations

import pytest

from holdfast.errors import UserRefused
from holdfast.faults import UserFault
from holdfast.users import HIGHEST, LONGEST, numbers_of


@pytest.mark.parametrize(
    "name", ["nobody", "a b", "build-1", "1st", "-1", "+1", "0x10", "1_000", "\u0661", "N" * LONGEST]
)
def test_what_is_no_number_is_a_name(name: str) -> None:
    assert numbers_of(name) is None


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("0", (0, None)),
        ("1000", (1000, None)),
        ("007", (7, None)),
        ("1000:27", (1000, 27)),
        (f"{HIGHEST}:{HIGHEST}", (HIGHEST, HIGHEST)),
    ],
)
def test_digits_are_a_number(name: str, numbers: tuple[int, int | None]) -> None:
    assert numbers_of(name) == numbers


MALFORMED = (
    *("", "N" * (LONGEST + 1), "a\0", "a\n", "\ud800", ":", "1:", ":1", "a:1", "1:a", "1:2:3", "1: 2"),
    *(f"{HIGHEST + 1}", f"{2**32}", f"1:{HIGHEST + 1}", "9" * LONGEST, "\u0661:1"),
)


@pytest.mark.parametrize("name", MALFORMED)
def test_what_no_user_can_be_called_is_refused(name: str) -> None:
    """Above all the number that the kernel takes for: leave it as it is, which is root."""
    with pytest.raises(UserRefused) as caught:
        numbers_of(name)

    assert (caught.value.user, caught.value.fault) == (name[:LONGEST], UserFault.MALFORMED)
