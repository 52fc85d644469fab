"""``holdfast logs``: what a process said, as far as it is kept."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from . import options
from .failure import BROKEN_PIPE
from .lines import LastLines
from .report import say
from .sizes import count
from .target import perform

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from holdfast.api.host import Host
    from holdfast.backend import Process
    from holdfast.model import Chunk

_PAGE = 1 << 20
"""Bytes asked for at once."""

_WAIT = 30.0
"""Seconds that a request for more may take; then it is made again."""


def configure(parser: options.Parser) -> None:
    """The options of ``logs``."""
    parser.description = "Print what a process of a server said, also after its end."
    options.add_names(parser, several=False)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until it has ended")
    parser.add_argument(
        "--tail", metavar="N", type=count, help="begin with the last N lines (default: all that is kept)"
    )
    parser.add_argument(
        "--since-seq", metavar="N", type=count, default=0, help="only what comes after number N"
    )
    options.add_output(parser, "a line per piece of output, with its number and its bytes in base64")
    options.add_quiet(parser, "do not tell of output that is no longer kept")
    options.add_server(parser)


def logs(arguments: argparse.Namespace) -> int:
    """Print it."""

    async def work(host: Host) -> int:
        import asyncio

        from .sink import Sink

        process = await host.place.find(arguments.name)
        pages = Pages(process, after=arguments.since_seq)
        sink = Sink(asyncio.get_running_loop(), json=arguments.output == "json")
        try:
            if arguments.tail is not None:
                for chunk in await pages.last_lines(arguments.tail):
                    await sink.pass_on(chunk)
            async for chunk in pages.chunks(follow=arguments.follow):
                await sink.pass_on(chunk)
        except BrokenPipeError:
            return BROKEN_PIPE
        finally:
            sink.close()
        if pages.missing is not None and not arguments.quiet:
            say(pages.missing)
        return 0

    return perform(arguments, work)


class Pages:
    """What a process said, asked for page by page: nothing is sent to us that we do not take."""

    def __init__(self, process: Process, *, after: int = 0) -> None:
        self._process = process
        self.after = after
        """The last number that was seen."""
        self.missing: str | None = None
        """Words about what is no longer kept; None if nothing is missing."""
        self._complete = False

    async def chunks(self, *, follow: bool) -> AsyncIterator[Chunk]:
        """What there is, and with ``follow`` what will be until the end of its output."""
        while not self._complete:
            chunks = await self._next(wait=_WAIT if follow else 0.0)
            for chunk in chunks:
                yield chunk
            if not follow and not chunks:
                return

    async def last_lines(self, count: int) -> list[Chunk]:
        """The last lines of what there is; what comes later is asked for with ``chunks``."""
        kept = LastLines(count)
        async for chunk in self.chunks(follow=False):
            kept.add(chunk)
        return kept.take()

    async def _next(self, *, wait: float) -> Sequence[Chunk]:
        page = await self._process.read(after=self.after, limit=_PAGE, wait=wait)
        self.after = max(self.after, page.next_seq - 1)
        # That it has closed does not mean that this was the last page.
        self._complete = page.closed and not page.chunks
        if page.gap is not None:
            size = "an unknown number of" if page.gap.size is None else str(page.gap.size)
            self.missing = f"{size} bytes of its output are no longer kept; a larger --retain keeps more"
        return page.chunks
