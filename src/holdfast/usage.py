"""What processes use at this moment, found out for many of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from .model import CurrentUsage
from .reports import Load

if TYPE_CHECKING:
    from .backend import HostedProcess

AT_ONCE = 32
"""Processes that are looked at together: whoever enforces limits waits for the same threads."""


MeasuredName: TypeAlias = "tuple[str, str, HostedProcess]"
"""A process behind its name and its identifier."""


async def current_usage(
    processes: Sequence[MeasuredName],
) -> AsyncIterator[CurrentUsage]:
    """Look at processes, in threads; leave out those of which nobody is left."""
    for start in range(0, len(processes), AT_ONCE):
        for found in await _together(processes[start : start + AT_ONCE]):
            yield found


async def _together(processes: Sequence[MeasuredName]) -> Sequence[CurrentUsage]:
    looked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    found: dict[int, CurrentUsage] = {}
    left = len(processes)

    def take(number: int, load: Load | None, age: float) -> None:
        nonlocal left
        left -= 1
        if load is not None:
            name, identifier, process = processes[number]
            output = process.output_bytes()
            found[number] = CurrentUsage(
                name, identifier, load.cpu_us, load.memory, load.processes, output, age
            )
        if not left and not looked.done():  # Whoever has asked may have left.
            looked.set_result(None)

    for number, (_, _, process) in enumerate(processes):
        process.look_at_load(partial(take, number))
    await looked
    return [found[number] for number in sorted(found)]
