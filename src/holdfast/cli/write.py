"""``holdfast write`` and ``holdfast resize``: input and another size for a process of a server."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from . import options
from .failure import Failure
from .sizes import screen
from .target import perform

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.api.host import Host


def configure_write(parser: options.Parser) -> None:
    """The options of ``write``."""
    parser.description = (
        "Write to the standard input of a process: DATA as it is, or what comes on our standard input.\n"
        "Nothing is added; for the end of a line write it, as in $'ls\\n'."
    )
    options.add_names(parser, several=False)
    parser.add_argument("data", metavar="DATA", nargs="?", help="what to write (default: standard input)")
    parser.add_argument(
        "--eof", action="store_true", help="end its input after that; in a terminal, type what means the end"
    )
    options.add_output(parser)
    options.add_server(parser)


def configure_resize(parser: options.Parser) -> None:
    """The options of ``resize``."""
    parser.description = "Give the terminal of a process another size."
    options.add_names(parser, several=False)
    parser.add_argument("size", metavar="ROWSxCOLS", type=screen, help="such as 24x80")
    options.add_output(parser)
    options.add_server(parser)


def write(arguments: argparse.Namespace) -> int:
    """Write it all; returns when the server has it."""

    async def work(host: Host) -> int:
        from uuid import uuid4

        from holdfast.model import WriteStatus

        process = await host.place.find(arguments.name)
        # With a name for each piece, one that has to be sent again is not written twice.
        key = uuid4().hex
        number = size = 0
        async for data in _given(arguments):
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


async def _given(arguments: argparse.Namespace) -> AsyncIterator[bytes]:
    """What is to be written, piece by piece."""
    import asyncio

    from .inlet import Inlet, is_given
    from .terminal import is_terminal

    if arguments.data is not None:
        yield os.fsencode(arguments.data)
    elif is_given(0) or (is_terminal(0) and not arguments.eof):
        inlet = Inlet(0, asyncio.get_running_loop())
        while data := await inlet.read():
            yield data


def resize(arguments: argparse.Namespace) -> int:
    """Tell it."""

    async def work(host: Host) -> int:
        from holdfast.model import Size

        process = await host.place.find(arguments.name)
        await process.resize(Size(*arguments.size))
        rows, cols = arguments.size
        _tell(arguments, {"name": arguments.name, "rows": rows, "cols": cols})
        return 0

    return perform(arguments, work)


def _tell(arguments: argparse.Namespace, document: dict[str, Any]) -> None:
    """Say what was done, to whoever reads documents; others see that nothing failed."""
    if arguments.output == "json":
        from .report import tell_json

        tell_json(document)
