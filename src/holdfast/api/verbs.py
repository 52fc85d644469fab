"""What programs ask of a process beyond its life: does it wait for input, is it ready, what stood there?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.model import Stream
from holdfast.value import replace

from .waiting import condition_of, wait_for

if TYPE_CHECKING:
    from holdfast.conditions import Waited
    from holdfast.inspection import Inspection
    from holdfast.place import NamedProcess
    from holdfast.ranges import OutputRange, Ranged


class HandleVerbs:
    """Mixed into ``Handle``."""

    _process: NamedProcess

    async def inspect(self) -> Inspection:
        """Return whether the process waits for input at this moment, and how its terminal is set.

        Raises:
            Unsupported: The server does not support it.
        """
        return await self._process.inspect()

    async def wait_for(
        self,
        *,
        port: int | None = None,
        url: str | None = None,
        output: str | None = None,
        file: str | os.PathLike[str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Waited:
        """Wait until the process has brought one of these about: what was so before counts.

        Far away the server waits, and nothing is asked again and again over the network.

        Args:
            port: A TCP port at the loopback address of its host takes a connection.
            url: A GET is answered with a status below 400.  Other hosts than its own need a token that
                allows ``http/request``.
            output: A regular expression is found in its output, from the begin; without lookaround,
                backreferences, lazy repetitions and word borders.  The result has the line.
            file: Something is at this absolute path on its host.
            timeout: Seconds; None is no bound.

        Raises:
            WaitTimedOut: It was not so in time; the process runs on.
            ProcessEnded: The process has ended before.
            BadRequest: What to wait for makes no sense, or is not exactly one thing.
            Forbidden: The token does not allow to find that out.
            Unsupported: The server does not support it.
        """
        condition = condition_of(port=port, url=url, output=output, file=file)
        return await wait_for(self._process, condition, timeout)

    async def read_range(
        self, stream: Stream | str | None = None, *, offset: int = 0, length: int | None = None
    ) -> OutputRange:
        """Return bytes of one stream, counted from the start of the process, as far as its host keeps them.

        It does not matter who has read them, nor whether the process has ended.  If the host no longer keeps
        the byte at ``offset``, there is no data: ``first_offset`` of the result says from where on there is.

        Args:
            stream: ``"stdout"``, ``"stderr"`` or ``"pty"``; by default the terminal, if it has one, and else
                ``stdout``.
            offset: Where to begin; negative counts from the end of what there is now.
            length: How many bytes at the most; by default all that there is now.

        Raises:
            BadRequest: It has no such stream.
            ProcessLost: Its host does not know it any more.
            Unsupported: The server does not support it.
        """
        wanted = None if stream is None else Stream(stream)
        return await whole_range(self._process, wanted, offset, length)


async def whole_range(process: Ranged, stream: Stream | None, offset: int, length: int | None) -> OutputRange:
    """Return a range that may be larger than one answer: see ``HandleVerbs.read_range``."""
    if length is not None and length < 0:
        raise ValueError("length must be at least 0")
    if offset < 0 or length is None:
        total = (await process.read_range(stream, 0, 0)).total
        offset = max(0, total + offset) if offset < 0 else offset
        length = max(0, total - offset) if length is None else length
    found = await process.read_range(stream, offset, length)
    pieces, size = [found.data], len(found.data)
    while found.data and size < length and found.next < found.total:
        found = await process.read_range(stream, found.next, length - size)
        pieces.append(found.data)
        size += len(found.data)
    return replace(found, offset=offset, data=b"".join(pieces), next=offset + size if size else found.next)
