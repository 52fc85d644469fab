"""The backend on this host: starts processes, keeps the live ones, ends them all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.config import MIB, EngineLimits, FileLimits, HttpLimits
from holdfast.errors import LimitReached
from holdfast.host.info import own_environment
from holdfast.model import PLAIN, HostInfo, Leftovers, Spec
from holdfast.poller import Poller
from holdfast.value import replace

from .birth import Birth
from .children import Children
from .past import Past
from .process import LocalProcess
from .ring import Budget, Ring
from .watchdog import Watchdog

if TYPE_CHECKING:
    from .files import LocalFiles
    from .http import HostHttp


class LocalBackend:
    """Runs processes on this host.  Implements ``backend.Backend``."""

    def __init__(
        self,
        children: Children,
        look: Callable[[], HostInfo],
        loop: asyncio.AbstractEventLoop,
        *,
        poller: Poller | None = None,
        limits: EngineLimits | None = None,
        http_limits: HttpLimits | None = None,
        file_limits: FileLimits | None = None,
    ) -> None:
        """
        Args:
            look: Finds out what the host is like; asked once, when somebody wants to know.
            poller: The server's.  Without one the backend makes its own and closes it.
        """
        self._look = look
        self._info: HostInfo | None = None
        self._children = children
        self._loop = loop
        self._limits = limits or EngineLimits()
        self._http_limits = http_limits or HttpLimits()
        self._http: HostHttp | None = None
        self._file_limits = file_limits
        self._files: LocalFiles | None = None
        self._own_poller = poller is None
        self._poller = poller or Poller()
        if self._own_poller:
            self._poller.attach(loop)
        self._budget = Budget(self._limits.retained_bytes)
        self._births: set[Birth] = set()
        self._live: set[LocalProcess] = set()
        self._strays: set[LocalProcess] = set()  # Closed, but not without leaving somebody behind.
        self._closing = False
        self._all_gone: asyncio.Future[None] | None = None
        self.closures = 0
        """Processes that have closed, since somebody last set this to 0."""

    @property
    def info(self) -> HostInfo:
        guarantees = self._children.guarantees
        if self._info is None or self._info.sandboxes is not guarantees:
            self._info = replace(self._info or self._look(), sandboxes=guarantees)
        return self._info

    # What many programs never ask for is imported when one does: they start the sooner.

    @property
    def files(self) -> LocalFiles:
        if self._files is None:
            from .files import LocalFiles

            tmpdir = own_environment().get("TMPDIR")
            self._files = LocalFiles(self._loop, self._poller, self._file_limits, tmpdir=tmpdir)
        return self._files

    @property
    def http(self) -> HostHttp:
        if self._http is None:
            from .http import HostHttp

            self._http = HostHttp(own_environment(), self._loop, self._http_limits)
        return self._http

    async def start(self, spec: Spec) -> LocalProcess:
        self._check_room()
        cage = None
        if spec.sandbox is not None:
            cage = await self.files.workers.run(partial(self._children.cage, spec))
            self._check_room()  # Meanwhile others may have started, or everything been closed.
        birth = Birth(self._children.start(spec, cage), loop=self._loop, poller=self._poller)
        self._births.add(birth)
        try:
            child = await birth.child()
        finally:
            self._births.discard(birth)
        process = LocalProcess(
            child,
            Ring(limit=MIB, chunks=self._limits.retained_chunks, budget=self._budget),
            loop=self._loop,
            poller=self._poller,
            limits=self._limits,
            owner=self,
            terms=spec.terms,
        )
        self._live.add(process)
        if spec.terms is not PLAIN:
            Watchdog(process, spec.terms, self._loop)
        return process

    def _check_room(self) -> None:
        most = 0 if self._closing else self._limits.processes
        if len(self._live) + len(self._births) >= most or len(self._strays) > most:
            raise LimitReached("processes", most)

    def unpack(self, data: bytes) -> Past:
        return Past(data, self._budget)

    async def aclose(self) -> None:
        if self._closing:
            return
        self._closing = True
        for birth in list(self._births):
            birth.give_up(LimitReached("processes", 0))
        for process in [*self._live, *self._strays]:
            process.forget(Leftovers.END)
        if self._live or self._strays:
            self._all_gone = self._loop.create_future()
            timer = self._loop.call_later(self._limits.stop_seconds, self._give_up)
            await self._all_gone
            timer.cancel()
        self._children.close()
        if self._files is not None:
            self._files.close()
        if self._http is not None:
            await self._http.aclose()
        if self._own_poller:
            self._poller.close()

    # Implements ``process.Owner``.

    def closed(self, process: LocalProcess) -> None:
        self.closures += 1
        self._live.discard(process)
        if process.has_leftovers:
            self._strays.add(process)
        self._check_end()

    def gone(self, process: LocalProcess) -> None:
        self._strays.discard(process)
        self._check_end()

    def _check_end(self) -> None:
        if self._all_gone is not None and not self._live and not self._strays:
            self._give_up()

    def _give_up(self) -> None:
        """Wait no longer for processes to end."""
        if self._all_gone is not None and not self._all_gone.done():
            self._all_gone.set_result(None)
