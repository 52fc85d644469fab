"""The synchronous twin of ``verbs``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.conditions import Waited
    from holdfast.inspection import Inspection
    from holdfast.model import Stream
    from holdfast.ranges import OutputRange

    from .handle import Handle
    from .thread import LoopThread


class SyncHandleVerbs:
    """Mixed into the synchronous ``Handle``."""

    _handle: Handle
    _thread: LoopThread

    def inspect(self) -> Inspection:
        """Return whether the process waits for input at this moment, and how its terminal is set.

        Raises:
            Unsupported: The server does not support it.
        """
        return self._thread.call(self._handle.inspect())

    def wait_for(
        self,
        *,
        port: int | None = None,
        url: str | None = None,
        output: str | None = None,
        file: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
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
        waiting = self._handle.wait_for(port=port, url=url, output=output, file=file, timeout=timeout)
        return self._thread.call(waiting)

    def read_range(
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
        return self._thread.call(self._handle.read_range(stream, offset=offset, length=length))
