"""What ``run`` and ``map`` refuse, and what ``map`` leaves behind."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import HeadTail


async def test_what_cannot_be_is_refused() -> None:
    async with holdfast.local() as host:
        with pytest.raises(ValueError, match="limit"):
            host.map([], limit=0)
        with pytest.raises(ValueError, match="at least 0"):
            await host.run(["true"], capture=HeadTail(-1, 0))

        assert await host.processes() == []


async def test_the_options_of_many_commands_are_those_of_each() -> None:
    options: list[str] = ["one", "two"]
    async with holdfast.local() as host:
        done = host.map(
            (f"echo {each}; echo err >&2" for each in options), shell=True, stderr=holdfast.STDOUT
        )

        assert [[*sorted(each.stdout.split()), each.stderr] async for each in done] == [
            [b"err", b"one", b""],
            [b"err", b"two", b""],
        ]
