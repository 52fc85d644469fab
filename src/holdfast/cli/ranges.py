"""``holdfast logs --bytes`` and ``--stderr``: a part of what a process said, by its place."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from binascii import b2a_base64
from typing import Any

from holdfast.api.host import Host
from holdfast.api.verbs import whole_range
from holdfast.model import Stream
from holdfast.place import NamedProcess
from holdfast.ranges import OutputRange
from holdfast.wording import counted

from .options import wants_json
from .report import ExitCode, Failure, say
from .show import tell_json
from .streams import DescriptorWriter

_PIECE = 1 << 20
"""Bytes that are asked for at once: a range may be larger than memory."""


def ranged_logs(arguments: argparse.Namespace) -> Any:
    """Return the work of ``logs`` with ``--bytes`` or ``--stderr``.

    Raises:
        Failure: Another option disagrees.
    """
    for option, given in (
        ("-f", arguments.follow),
        ("--tail", arguments.tail is not None),
        ("--since-seq", arguments.since_seq > 0),
    ):
        if given:
            ours = "--stderr" if arguments.bytes is None else "--bytes"
            raise Failure(f"{ours} and {option} exclude each other: leave one of them out", ExitCode.USAGE)

    async def work(host: Host) -> int:
        process = await host.place.find(arguments.name)
        stream = Stream.STDERR if arguments.stderr else None
        first, last = arguments.bytes or (0, None)
        if wants_json(arguments):
            length = None if last is None else last + 1 - first
            return _tell(await whole_range(process, stream, first, length))
        return await _print(process, stream, first, last, quiet=arguments.quiet)

    return work


def _tell(found: OutputRange) -> int:
    document = {
        "stream": found.stream.value,
        "offset": found.offset,
        "data": b2a_base64(found.data, newline=False).decode(),
        "next": found.next,
        "total": found.total,
        "firstOffset": found.first_offset,
        "ended": found.ended,
    }
    with contextlib.suppress(UnicodeDecodeError):
        document["text"] = found.data.decode()
    tell_json(document)
    return 0


async def _print(
    process: NamedProcess, stream: Stream | None, first: int, last: int | None, *, quiet: bool
) -> int:
    """Print the bytes on standard output, and say what is missing.

    It ends where the output ended when it began: whoever talks on is not followed.
    """
    end = (await process.read_range(stream, 0, 0)).total
    at = max(0, end + first) if first < 0 else first
    end = end if last is None else min(end, last + 1)
    writer = DescriptorWriter(1, asyncio.get_running_loop())
    try:
        while at < end:
            found = await process.read_range(stream, at, min(_PIECE, end - at))
            if found.is_lost and not quiet:
                size = counted(min(found.next, end) - at, "byte")
                say(f"not kept any more: {size} from byte {at} on; a larger --retain keeps more")
            await writer.write(found.data)
            at = found.next
    except BrokenPipeError:
        return ExitCode.BROKEN_PIPE
    finally:
        writer.close()
    return 0
