"""Commands that ask a server about its processes, or change them: ps, wait, kill, signal, write, resize."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

from holdfast.api.host import Host
from holdfast.errors import HoldfastError, LinkLost
from holdfast.model import Exit, Size, WriteStatus

from .explain import code_of, explain, remark, signal_name
from .options import wants_json
from .report import ExitCode, Failure, in_colour, is_terminal_stream, paint, say, tell, tell_names
from .show import (
    LISTING_HEAD,
    STATE_COLUMN,
    is_live,
    listing_document,
    listing_row,
    outcome_document,
    table,
    tell_json,
)
from .streams import DescriptorReader, is_given
from .target import perform
from .terminal import is_terminal, screen_size

_STATE_COLOURS = {"running": "green", "starting": "yellow", "exit 0": "dim"}
"""Colours of states in ``ps``; all others are red."""

_LONG_WAIT = 3600.0
"""Seconds after which a request that waits for an end is repeated."""


# ps.


def ps(arguments: argparse.Namespace) -> int:
    """Print the processes of the server, the oldest first."""

    async def work(host: Host) -> int:
        found = sorted(await host.processes(), key=lambda one: (one.started, one.name))
        shown = [one for one in found if arguments.all or is_live(one)]
        if wants_json(arguments):
            tell_json([listing_document(one) for one in shown])
        elif arguments.quiet:
            tell_names(one.name for one in shown)
        else:
            now = time.time()
            rows = [listing_row(one, now=now, whole=arguments.no_trunc) for one in shown]
            size = screen_size() if is_terminal_stream(sys.stdout) else None
            width = None if arguments.no_trunc or size is None else size[1]
            tell(
                *table(LISTING_HEAD, rows, width=width, paint=_paint_cell if in_colour(sys.stdout) else None)
            )
        return 0

    return perform(arguments, work)


def _paint_cell(column: int, text: str) -> str:
    return paint(_STATE_COLOURS.get(text, "red"), text) if column == STATE_COLUMN else text


# wait.


def wait(arguments: argparse.Namespace) -> int:
    """Wait for the end of processes; return the exit code of the first that did not exit with 0."""

    async def work(host: Host) -> int:
        ends = []
        # One after the other takes as long as all at once: until the last one ends.
        for process in [await host.place.find(name) for name in arguments.names]:
            end: Exit | None = None
            while end is None:
                end = await process.wait(_LONG_WAIT)
            ends.append((process.name, end.outcome))
            words = remark(end.outcome)
            if words and not arguments.quiet and not wants_json(arguments):
                say(f"{process.name}: {words}")
        if wants_json(arguments):
            tell_json(
                [
                    {"name": name, "exitCode": code_of(outcome), "outcome": outcome_document(outcome)}
                    for name, outcome in ends
                ]
            )
        elif len(ends) > 1 and not arguments.quiet:
            tell(*(str(code_of(outcome)) for _, outcome in ends))
        return next((code for _, outcome in ends if (code := code_of(outcome))), 0)

    return perform(arguments, work)


# kill and signal.


def kill(arguments: argparse.Namespace) -> int:
    """End processes and everything they have started.

    A process that cannot be found or ended is reported, the others are ended all the same, and the exit
    code is 125.
    """

    async def work(host: Host) -> int:
        ended = []
        code = 0
        for name in arguments.names:
            try:
                process = await host.place.find(name)
                result = await process.end(grace=arguments.grace)
            except LinkLost:
                raise
            except HoldfastError as error:
                say(str(explain(error)))
                code = ExitCode.FAILED
                continue
            ended.append((name, result))
            if result.survivors:
                pids = ", ".join(map(str, result.survivors))
                say(f"{name}: these processes could not be ended: {pids}")
                code = ExitCode.FAILED
        if wants_json(arguments):
            tell_json(
                [
                    {"name": name, "running": result.running, "survivors": list(result.survivors)}
                    for name, result in ended
                ]
            )
        elif not arguments.quiet:
            tell_names(name for name, _ in ended)
        return code

    return perform(arguments, work)


def send_signal(arguments: argparse.Namespace) -> int:
    """Send a signal to the process group of a process, or to its whole tree."""

    async def work(host: Host) -> int:
        process = await host.place.find(arguments.name)
        await process.signal(arguments.signal, tree=arguments.tree)
        signal = signal_name(arguments.signal)
        _tell(arguments, {"name": arguments.name, "signal": signal, "tree": arguments.tree})
        return 0

    return perform(arguments, work)


# write and resize.


def write(arguments: argparse.Namespace) -> int:
    """Write to the standard input of a process; return when the server has everything."""

    async def work(host: Host) -> int:
        process = await host.place.find(arguments.name)
        # With an identifier for each write, one that is sent again after a lost connection is not
        # written twice.
        key = uuid4().hex
        number = size = 0
        async for data in _input(arguments):
            number, size = number + 1, size + len(data)
            if await process.write(data, write_id=f"{key}-{number}") is WriteStatus.STDIN_CLOSED:
                raise Failure(
                    f"{arguments.name} takes no input: it was started without -i, has closed it, or has ended"
                )
        if arguments.eof:
            await process.close_stdin(write_id=f"{key}-end")
        _tell(arguments, {"name": arguments.name, "bytes": size, "eof": arguments.eof})
        return 0

    return perform(arguments, work)


async def _input(arguments: argparse.Namespace) -> AsyncIterator[bytes]:
    """Yield the bytes to write: the argument, or our standard input."""
    if arguments.data is not None:
        yield os.fsencode(arguments.data)
    elif is_given(0) or (is_terminal(0) and not arguments.eof):
        reader = DescriptorReader(0, asyncio.get_running_loop())
        while data := await reader.read():
            yield data


def resize(arguments: argparse.Namespace) -> int:
    """Change the size of the terminal of a process."""

    async def work(host: Host) -> int:
        rows, cols = arguments.size
        process = await host.place.find(arguments.name)
        await process.resize(Size(rows, cols))
        _tell(arguments, {"name": arguments.name, "rows": rows, "cols": cols})
        return 0

    return perform(arguments, work)


def _tell(arguments: argparse.Namespace, document: Mapping[str, Any]) -> None:
    """Print what was done, if JSON was asked for.  Otherwise success is silent."""
    if wants_json(arguments):
        tell_json(document)
