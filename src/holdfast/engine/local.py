"""The backend on this host: starts processes, keeps the live ones, ends them all."""

from __future__ import annotations

import asyncio

from holdfast.config import MIB, EngineLimits
from holdfast.errors import LimitReached
from holdfast.model import HostInfo, Spec
from holdfast.poller import Poller

from .children import Children
from .process import LocalProcess
from .ring import Budget, Ring


class LocalBackend:
    """Runs processes on this host.  Implements ``backend.Backend``."""

    def __init__(
        self,
        children: Children,
        info: HostInfo,
        loop: asyncio.AbstractEventLoop,
        *,
        poller: Poller | None = None,
        limits: EngineLimits | None = None,
    ) -> None:
        """Without a ``poller`` of the server's, the backend makes its own and closes it."""
        self.info = info
        self._children = children
        self._loop = loop
        self._limits = limits or EngineLimits()
        self._own_poller = poller is None
        self._poller = poller or Poller()
        if self._own_poller:
            self._poller.attach(loop)
        self._budget = Budget(self._limits.retained_bytes)
        self._live: set[LocalProcess] = set()
        self._starting = 0
        self._closing = False
        self._all_closed: asyncio.Future[None] | None = None
        self._remove = self._on_closed  # One for all: a method is made anew whenever it is named.
        self.closed = 0
        """Processes that have closed, since somebody last set this to 0."""

    async def start(self, spec: Spec) -> LocalProcess:
        most = 0 if self._closing else self._limits.processes
        if len(self._live) + self._starting >= most:
            raise LimitReached("processes", most)
        self._starting += 1
        try:
            child = await self._children.start(spec)
        finally:
            self._starting -= 1
        if self._closing:
            self._children.discard(child)
            raise LimitReached("processes", 0)
        process = LocalProcess(
            child,
            Ring(limit=MIB, chunks=self._limits.retained_chunks, budget=self._budget),
            loop=self._loop,
            poller=self._poller,
            limits=self._limits,
            on_closed=self._remove,
        )
        self._live.add(process)
        return process

    async def aclose(self) -> None:
        if self._closing:
            return
        self._closing = True
        for process in list(self._live):
            process.forget()
        if self._live:
            self._all_closed = self._loop.create_future()
            timer = self._loop.call_later(self._limits.stop_seconds, self._give_up)
            await self._all_closed
            timer.cancel()
        self._children.close()
        if self._own_poller:
            self._poller.close()

    def _on_closed(self, process: LocalProcess) -> None:
        self._live.discard(process)
        self.closed += 1
        if self._all_closed is not None and not self._live:
            self._give_up()

    def _give_up(self) -> None:
        """Wait no longer for processes to close."""
        if self._all_closed is not None and not self._all_closed.done():
            self._all_closed.set_result(None)
