"""From the request for a child to the report that it runs."""

from __future__ import annotations

import asyncio
import os

from holdfast.host.orders import News, Report
from holdfast.poller import Poller

from .children import Child


class PendingStart:
    """A child that was asked for, until somebody has it.  Implements ``poller.Source``."""

    __slots__ = ("_child", "_poller", "_report")

    def __init__(self, child: Child, *, loop: asyncio.AbstractEventLoop, poller: Poller) -> None:
        self._child = child
        self._poller = poller
        self._report: asyncio.Future[Report] = loop.create_future()
        try:
            poller.add(child.fileno(), self)
        except OSError:
            self._discard()
            raise

    def on_ready(self, events: int = 0) -> None:
        # Reports after the first are left to whoever takes the child.
        if not self._report.done():
            report = self._child.receive()
            if report is not None:
                self._report.set_result(report)

    async def child(self) -> Child:
        """The child, once it runs; the poller still watches it, for whoever hands it another source.

        Cancelling leaves nothing behind, though it may take a while until a start
        that is stuck in the system is undone.

        Raises:
            SpawnFailed: It does not run.
        """
        try:
            report = await self._report
            if report.news is not News.STARTED:
                raise self._child.failure(report)
        except asyncio.CancelledError:
            self.give_up()
            raise
        except BaseException:
            self._discard()
            raise
        return self._child

    def give_up(self, error: Exception | None = None) -> None:
        """End the child, whether it runs or not; ``child`` raises ``error``."""
        self._discard()
        if error is not None and not self._report.done():
            self._report.set_exception(error)

    def _discard(self) -> None:
        """Close everything of the child.  May be called twice."""
        if self._child.fileno() < 0:
            return
        self._poller.remove(self._child.fileno())
        files = {fd for _, fd in self._child.outputs}
        for fd in files if self._child.stdin is None else files | {self._child.stdin}:
            self._poller.remove(fd)  # Somebody may have been about to take it.
            os.close(fd)
        self._child.close()
