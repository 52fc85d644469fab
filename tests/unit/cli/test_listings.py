"""Processes of a server, found by name and shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.api.host import local
from holdfast.cli.listings import find, is_live, row
from holdfast.errors import UnknownProcess
from holdfast.model import Listing


def listing(
    *, argv: Sequence[str] = ("sh", "-c", "x y"), pid: int | None = 7, state: str = "running"
) -> Listing:
    return Listing("n", pid, argv, "/", False, 100.0, state, None, None, 1, 0)


def test_a_row_tells_who_since_when_and_what() -> None:
    assert row(listing(), now=220.0, whole=False) == ("n", "7", "running", "2m ago", "sh -c 'x y'")


def test_a_process_that_starts_has_no_number_and_clocks_may_differ() -> None:
    starting = listing(pid=None, state="starting")

    assert row(starting, now=90.0, whole=False)[1:4] == ("-", "starting", "0s ago")


def test_a_long_command_is_cut_unless_it_is_wanted() -> None:
    long = listing(argv=["x" * 100])

    assert row(long, now=0.0, whole=False)[4] == "x" * 45 + "..."
    assert row(long, now=0.0, whole=True)[4] == "x" * 100


def test_what_has_ended_does_not_live() -> None:
    states = ("starting", "running", "exited", "closed")

    assert [is_live(listing(state=state)) for state in states] == [True, True, False, False]


async def test_a_process_is_found_by_its_name() -> None:
    async with local() as host:
        await host.start(["sleep", "1000"], name="p")

        found = await find(host, "p")
        with pytest.raises(UnknownProcess):
            await find(host, "q")

    assert (found.name, found.argv) == ("p", ["sleep", "1000"])
