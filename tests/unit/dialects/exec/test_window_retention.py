"""How much output is retained, from what is known of the client."""

from __future__ import annotations

import pytest

from holdfast.dialects.exec.window import Retention


@pytest.mark.parametrize(
    ("asked", "attached", "absent"), [(None, 10, 99), (50, 50, 99), (500, 500, 500), (0, 1, 99)]
)
def test_a_client_that_said_how_much_never_gets_less(asked: int | None, attached: int, absent: int) -> None:
    retention = Retention(asked, attached=10, detached=99)

    before = retention.size
    retention.is_for_absent = True

    assert (before, retention.size) == (attached, absent)


@pytest.mark.parametrize(
    ("unacknowledged", "attached", "absent"), [(5, 10, 99), (20, 20, 99), (200, 200, 200)]
)
def test_what_was_not_acknowledged_is_retained_in_any_case(
    unacknowledged: int, attached: int, absent: int
) -> None:
    retention = Retention(None, attached=10, detached=99)

    retention.unacknowledged = unacknowledged
    before = retention.size
    retention.is_for_absent = True

    assert (before, retention.size) == (attached, absent)
