"""A server as a backend: what the engine offers on its own host, over a connection."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from holdfast.aliases import coin, coin_identifier
from holdfast.allowance import Allowance
from holdfast.config import MIB
from holdfast.errors import BadRequest, LinkLost, NameTaken, ProcessLost, UnknownProcess, Unsupported
from holdfast.model import Chunk, HostInfo, Listing, Spec
from holdfast.place import UNNAMED, Naming
from holdfast.protocol import events
from holdfast.protocol.inspecting import LIST
from holdfast.protocol.processes import (
    FIND,
    FindParams,
    ListedProcess,
    ProcessClosed,
    ProcessExited,
    ProcessOutput,
)
from holdfast.protocol.session import host_info
from holdfast.protocol.shapes import reader
from holdfast.protocol.start import (
    RESTART,
    RestartParams,
    StartParams,
)
from holdfast.protocol.usage import USAGE, UsageParams, read_usage
from holdfast.value import replace

from .address import parse
from .asking import start_params
from .calls import Within
from .cursor import Closed, Exited
from .events import EVENT, RemoteEvents
from .link import Link
from .process import RemoteProcess
from .start import RemoteStart
from .verbs import list_params

if TYPE_CHECKING:
    from holdfast.model import CurrentUsage

    from .files import RemoteFiles
    from .http import RemoteHttp

T = TypeVar("T")

WINDOW = 4 * MIB
"""Bytes that a server goes ahead of us: enough for a fast line of some distance, and what it keeps for us."""

_COINED = 8
"""Names that are tried for a process without one, before it goes by its identifier."""

_GOODBYE_SECONDS = 5.0
"""How long the server may take to say what became of starts that were cancelled, before we leave anyway."""


class RemoteBackend:
    """One server, for one client.  Implements ``backend.Backend`` and ``link.Follower``."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        client_name: str = "holdfast",
        heartbeat: float = 20.0,
        reconnect_timeout: float = 60.0,
        window: int = WINDOW,
        ahead: Allowance | None = None,
        on_connection_change: Callable[[bool], None] | None = None,
    ) -> None:
        """
        Args:
            heartbeat: Seconds of silence after which the server is asked for a sign of life,
                and as many again until the connection is taken for broken.
            reconnect_timeout: Seconds without a connection after which there will be none.
            window: Bytes that a process may say ahead of whoever watches it; then it has to wait.
            ahead: The same of all processes together, without a bound if there is none.  Those that are
                started when much of it is granted may say less, down to one piece.
            on_connection_change: Called with False when the connection is lost, perhaps more than
                once, and with True when there is one again.

        Raises:
            BadRequest: The URL names no server.
        """
        self._link = Link(
            parse(url),
            self,
            token=token,
            client_name=client_name,
            heartbeat=heartbeat,
            reconnect_timeout=reconnect_timeout,
        )
        self._window = window
        self._ahead = ahead or Allowance(sys.maxsize)
        self._on_connection_change = on_connection_change
        self._processes: dict[str, RemoteProcess] = {}
        self._keys: dict[bytes, RemoteProcess] = {}
        self._shared: set[RemoteProcess] = set()
        self._leaving: dict[str, RemoteStart] = {}
        self._info: HostInfo | None = None
        self._files: RemoteFiles | None = None
        self._http: RemoteHttp | None = None
        self.events = RemoteEvents(self._link)

    async def open(self) -> None:
        """Connect.

        Raises:
            LinkLost: There is no server.
        """
        await self._link.open()
        assert self._link.info is not None
        try:
            self._info = host_info(self._link.info)
        except BadRequest as error:
            raise LinkLost(f"what the server says of its host makes no sense: {error}") from None

    # Implements ``backend.Backend``.

    @property
    def info(self) -> HostInfo:
        assert self._info is not None, "not open yet"
        return self._info

    @property
    def files(self) -> RemoteFiles:
        if self._files is None:
            from .files import RemoteFiles

            self._files = RemoteFiles(self._link)
        return self._files

    @property
    def http(self) -> RemoteHttp:
        if self._http is None:
            from .http import RemoteHttp

            self._http = RemoteHttp(self._link)
        return self._http

    async def start(self, spec: Spec, naming: Naming = UNNAMED) -> RemoteProcess:
        """Start a process.  Cancelling leaves none behind: see ``RemoteStart.pid``.

        Raises:
            NameTaken: A process of that name runs.
            Unsupported: The server cannot do something that was asked for.
        """
        if naming.name is None and naming.keep and "names" in self._link.features:
            for _ in range(_COINED):
                with contextlib.suppress(NameTaken):
                    return await self._start(spec, replace(naming, name=coin()))
        return await self._start(spec, naming)

    async def _start(self, spec: Spec, naming: Naming) -> RemoteProcess:
        name, keep = naming.name, naming.keep
        # A server that knows no names beside identifiers is given the name as the identifier.
        is_identifier = name is not None and (naming.idempotent or "names" not in self._link.features)
        called = name if name is not None and is_identifier else coin_identifier()
        if called in self._processes or called in self._leaving:
            raise NameTaken(called)
        has_window = "window" in self._link.features
        # What is kept is asked for piece by piece, and waits on the server.
        held = self._ahead.grant(self._window if has_window and not keep else 0)
        window = (self._window if keep else held.size) if has_window else 0
        params = self._request(spec, called, naming, window=window)
        process = RemoteProcess(
            self._link,
            called,
            name=name,
            terminal=spec.terminal is not None,
            window=window,
            held=held,
            pulled=keep,
            on_over=self._closed,
        )
        if not keep:
            # Before it is asked for: it may speak before we know that it runs.
            self._processes[called] = process
            self._keys[events.key_of(called)] = process
        before = self._link.connections
        start = RemoteStart(
            self._link, params, named=is_identifier, idempotent=naming.idempotent, leaving=self._leaving
        )
        try:
            process.pid = await start.pid()
        except BaseException:
            held.resize(0)
            self._closed(process)
            raise
        if keep:
            self._shared.add(process)
        else:
            process.started(missed=self._link.connections != before)
        return process

    async def find(self, name: str) -> RemoteProcess:
        """A process by its name or identifier: one of ours, or one that is kept for everybody.

        Raises:
            UnknownProcess: There is none.
            NameAmbiguous: Several identifiers begin with it.
        """
        if name in self._processes:
            return self._processes[name]
        listed = await self._find(name, lambda listed: listed)
        if listed.process_id in self._processes:
            return self._processes[listed.process_id]
        process = RemoteProcess(
            self._link,
            listed.process_id,
            name=listed.name or None,
            terminal=listed.tty,
            seen=listed.next_seq - 1,
            held=self._ahead.grant(0),
            pulled=True,
        )
        process.pid = listed.pid
        process.within = Within.ANY if listed.kept else Within.OWN
        return process

    async def restart(self, name: str, *, grace: float = 0.0) -> RemoteProcess:
        """End a kept process, and start the same again; see ``Place.restart``."""
        if "restart" not in self._link.features:
            raise Unsupported("a restart")
        old, new = await self._find(name, lambda listed: listed.process_id), coin_identifier()
        params = RestartParams(old, new, max(0, int(grace * 1000)))
        # Not asked again: what the first request has started has the name by then.
        await self._link.call(RESTART, params, lambda result: result, repeat=False)
        return await self.find(new)

    async def describe(self, name: str) -> Listing:
        """What a list says of the process that ``find`` finds."""
        return await self._find(name, events.read_listing)

    async def _find(self, name: str, read: Callable[[ListedProcess], T]) -> T:
        if "names" in self._link.features:
            return await self._link.call(FIND, FindParams(name), read)
        for process_id, found in await self._list(lambda listed: (listed.process_id, read(listed))):
            if process_id == name:
                return found
        raise UnknownProcess(name)

    async def list(self, *, inspect: bool = False) -> Sequence[Listing]:
        """The processes of this client, and those that are kept for everybody."""
        return await self._list(events.read_listing, inspect=inspect)

    async def usage(self, names: Sequence[str] | None = None) -> Sequence[CurrentUsage]:
        """What those processes use now."""
        if "processUsage" not in self._link.features:
            raise Unsupported("the usage of processes that run")
        params = UsageParams(names=None if names is None else list(names))
        return await self._link.call(
            USAGE, params, lambda result: [read_usage(one) for one in result.processes]
        )

    async def _list(self, read: Callable[[ListedProcess], T], *, inspect: bool = False) -> Sequence[T]:
        params = list_params(self._link, inspect=inspect)
        return await self._link.call(LIST, params, lambda result: [read(each) for each in result.processes])

    async def aclose(self) -> None:
        """End every process that is not kept, and the connection.  May be called twice."""
        self.events.over(None)
        for process in self._shared:
            process.release()
        try:
            # What was started for somebody who has left ends with the session, unless it is kept.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    for start in [each for each in self._leaving.values() if each.is_shared]:
                        await start.settled()
        finally:
            await self._link.aclose()

    # What is asked for.

    def _request(self, spec: Spec, identifier: str, naming: Naming, *, window: int) -> StartParams:
        return start_params(spec, identifier, naming, self._link.features, window=window)

    # Implements ``link.Follower``.

    def output(self, message: bytes | memoryview) -> bool:
        found = events.read_output(message)
        if found is None:
            return False
        key, chunk = found
        process = self._keys.get(key)
        if process is not None:
            process.said(chunk)
        return True

    def notified(self, method: str, params: msgspec.Raw) -> None:
        match method:
            case "process/output":
                output = _output(params)
                process = self._processes.get(output.process_id)
                if process is not None:
                    process.happened(_chunk(output))
            case "process/exited":
                left = _exited(params)
                process = self._processes.get(left.process_id)
                if process is not None:
                    process.happened(Exited(left.seq, events.read_exit(left)))
            case "process/closed":
                over = _over(params)
                process = self._processes.get(over.process_id)
                if process is not None:
                    process.happened(Closed(over.seq))
            case _ if method == EVENT:
                self.events.notified(params)
            case "http/request/bodyDelta" if self._http is not None:
                self._http.notified(params)
            case "fs/missingChanged" if self._files is not None:
                self._files.notified(params)

    def broke(self, reason: str) -> None:
        self._tell(connected=False)
        if self._http is not None:
            self._http.broke(reason)
        if self._files is not None:
            self._files.broke()

    def resumed(self) -> None:
        self._tell(connected=True)
        self.events.resumed()
        for process in list(self._processes.values()):
            process.resumed()

    def forgotten(self, reason: str) -> None:
        self._tell(connected=True)
        self.events.resumed()
        for process in list(self._processes.values()):
            process.lose(ProcessLost(process.name, reason))

    def over(self, error: LinkLost) -> None:
        self.events.over(error)
        for process in list(self._processes.values()):
            process.lose(error)

    def _tell(self, *, connected: bool) -> None:
        # Of a connection that was never there nothing is lost.
        if self._on_connection_change is not None and self._info is not None:
            self._on_connection_change(connected)

    def _closed(self, process: RemoteProcess) -> None:
        self._shared.discard(process)
        if self._processes.get(process.identifier) is process:
            del self._processes[process.identifier]
            del self._keys[events.key_of(process.identifier)]


def _chunk(output: ProcessOutput) -> Chunk:
    try:
        return events.read_chunk(output)
    except (BadRequest, ValueError) as error:
        raise msgspec.DecodeError(str(error)) from None


_output = reader(ProcessOutput)
_exited = reader(ProcessExited)
_over = reader(ProcessClosed)
