"""What is done with the records of processes: rm and prune forget them, restart starts from them."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from holdfast.api.host import Host
from holdfast.errors import HoldfastError, LinkLost, UnknownProcess
from holdfast.model import Listing

from .explain import explain
from .options import wants_json
from .report import ExitCode, say, tell_names
from .show import is_live, tell_json
from .target import perform

_AT_ONCE = 32
"""Requests under way at one moment."""


def remove(arguments: argparse.Namespace) -> int:
    """Forget processes that have ended, and with ``--force`` end those that run first.

    A process that cannot be forgotten is reported, the others are forgotten all the same, and the exit code
    is 125.
    """

    async def work(host: Host) -> int:
        async def one(name: str) -> str | None:
            process = await host.place.find(name)
            if arguments.force:
                await process.end(grace=arguments.grace)
            await process.remove()
            return name

        return await _of_all(arguments, [one(name) for name in arguments.names])

    return perform(arguments, work)


def restart(arguments: argparse.Namespace) -> int:
    """Start processes again; report those that cannot be, and return 125 then."""

    async def work(host: Host) -> int:
        async def one(name: str) -> str | None:
            return (await host.place.restart(name, grace=arguments.grace)).name

        return await _of_all(arguments, [one(name) for name in arguments.names])

    return perform(arguments, work)


def prune(arguments: argparse.Namespace) -> int:
    """Forget every process that has ended."""

    async def work(host: Host) -> int:
        async def one(found: Listing) -> str | None:
            try:
                await host.remove(found.identifier)
            except UnknownProcess:
                return None  # Somebody else was faster, or its time was over.
            return found.name

        ended = [each for each in await host.processes() if not is_live(each)]
        return await _of_all(arguments, [one(each) for each in ended])

    return perform(arguments, work)


async def _of_all(arguments: argparse.Namespace, removals: Sequence[Coroutine[Any, Any, str | None]]) -> int:
    """Do all of them, some at a time; report names and failures; return the exit code."""
    results: list[str | HoldfastError | None] = []
    for start in range(0, len(removals), _AT_ONCE):
        results += await asyncio.gather(*map(_result, removals[start : start + _AT_ONCE]))
    names = [each for each in results if isinstance(each, str)]
    if wants_json(arguments):
        tell_json([{"name": name} for name in names])
    elif not arguments.quiet:
        tell_names(names)
    failures = [each for each in results if isinstance(each, HoldfastError)]
    for failure in failures:
        say(str(explain(failure)))
    return ExitCode.FAILED if failures else 0


async def _result(removal: Coroutine[Any, Any, str | None]) -> str | HoldfastError | None:
    try:
        return await removal
    except LinkLost:
        raise
    except HoldfastError as error:
        return error
