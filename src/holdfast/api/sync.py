"""Hosts for programs without an event loop: the contents of ``holdfast.sync``."""

from __future__ import annotations

import atexit
import os
from collections.abc import Coroutine, Sequence
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from holdfast import renamed
from holdfast.errors import OutOfTurn
from holdfast.model import HostInfo, Listing

from . import host as asynchronous
from . import sync_commands
from .completed import Completed
from .options import Options, Text
from .sync_handle import Handle, Reader, Stdin
from .thread import LoopThread

if TYPE_CHECKING:
    from typing import Unpack

    from holdfast.model import CurrentUsage

    from . import http as asynchronous_http
    from .sync_events import ProcessEvents
    from .sync_files import Files
    from .sync_http import HttpClient

__all__ = ["Completed", "Handle", "Host", "Reader", "Stdin", "connect", "local", "run"]

T = TypeVar("T")


def connect(
    url: str,
    *,
    token: str | None = None,
    name: str = "holdfast",
    heartbeat: float = 20.0,
    reconnect_timeout: float = 60.0,
    unread_bytes: int = asynchronous.UNREAD,
    give_up: float | None = None,
) -> Host:
    """Return the host of a server; open it with ``with`` or ``open``.  See ``holdfast.connect``."""
    if give_up is not None:
        reconnect_timeout = give_up
        renamed("give_up", "reconnect_timeout")
    return Host(
        asynchronous.connect(
            url,
            token=token,
            name=name,
            heartbeat=heartbeat,
            reconnect_timeout=reconnect_timeout,
            unread_bytes=unread_bytes,
        )
    )


def local(*, processes: int | None = None, retained_bytes: int | None = None) -> Host:
    """Return this host; open it with ``with`` or ``open``.  See ``holdfast.local``."""
    return Host(asynchronous.local(processes=processes, retained_bytes=retained_bytes))


class Host:
    """A host that processes run on.  The synchronous ``holdfast.Host``; usable from any thread."""

    def __init__(self, host: asynchronous.Host) -> None:
        self._host = host
        self._thread: LoopThread | None = None

    # Opening and closing.

    def open(self) -> Host:
        """Connect to the server, or set up the engine; return this host.  Call ``close`` afterwards."""
        if self._thread is None:
            thread = LoopThread()
            try:
                thread.call(self._host.open())
            except BaseException:
                try:
                    # It may be open: Ctrl-C can come after it was opened and before the call returned.
                    thread.call(self._host.aclose())
                finally:
                    thread.stop()
                raise
            self._thread = thread
        return self

    def close(self) -> None:
        """End every process that was started here and is not kept by a server.  May be called twice.

        After a fork this does nothing in the child: the processes are the parent's.
        """
        thread, self._thread = self._thread, None
        if thread is not None and thread.is_ours:
            try:
                thread.call(self._host.aclose())
            finally:
                thread.stop()

    def __enter__(self) -> Host:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _loop(self) -> LoopThread:
        if self._thread is None:
            raise OutOfTurn("the host is not open: use it in 'with', or call open()")
        return self._thread

    def _call(self, coroutine: Coroutine[object, object, T]) -> T:
        try:
            thread = self._loop()
        except BaseException:
            coroutine.close()
            raise
        return thread.call(coroutine)

    # Facts.

    @property
    def info(self) -> HostInfo:
        """Facts about the host: its shell, its directories, how well it enforces sandboxes."""
        return self._call(self._info())

    async def _info(self) -> HostInfo:
        return self._host.info

    @property
    def files(self) -> Files:
        """The files of the host."""
        from .sync_files import Files  # Here: most programs only run something.

        return Files(self._host, self._loop())

    @property
    def http(self) -> HttpClient:
        """HTTP requests from the host."""
        from .sync_http import HttpClient  # Here: most programs make none.

        return HttpClient(self._call(self._http()), self._loop())

    async def _http(self) -> asynchronous_http.HttpClient:
        return self._host.http

    # Processes.

    def start(self, argv: Sequence[Text], **options: Unpack[Options]) -> Handle:
        """Start a program, without a shell.  See ``holdfast.Host.start``."""
        return Handle(self._call(self._host.start(argv, **options)), self._loop())

    def create_subprocess_exec(self, program: Text, *args: Text, **options: Unpack[Options]) -> Handle:
        """Start a program; ``start`` with the signature of the function in ``asyncio``."""
        return self.start([program, *args], **options)

    def create_subprocess_shell(self, cmd: str, **options: Unpack[Options]) -> Handle:
        """Start a command line in the shell of the host; ``start`` with ``shell=True``."""
        return Handle(self._call(self._host.create_subprocess_shell(cmd, **options)), self._loop())

    def attach(self, name: str, *, after: int = 0, snapshot: bool = False) -> Handle:
        """Return a process by its name, whoever has started it.  See ``holdfast.Host.attach``."""
        return Handle(self._call(self._host.attach(name, after=after, snapshot=snapshot)), self._loop())

    def restart(self, name: str, *, grace: float = 5.0) -> Handle:
        """End a kept process, and start the same under its name.  See ``holdfast.Host.restart``."""
        return Handle(self._call(self._host.restart(name, grace=grace)), self._loop())

    def processes(self, *, inspect: bool = False) -> Sequence[Listing]:
        """Return the processes that ``attach`` finds, the oldest first."""
        return self._call(self._host.processes(inspect=inspect))

    def remove(self, name: str) -> None:
        """Forget a process that has ended, and its output.  See ``holdfast.Host.remove``."""
        self._call(self._host.remove(name))

    def usage(self, *names: str) -> Sequence[CurrentUsage]:
        """Return what processes use now, with everything they have started.  See ``holdfast.Host.usage``."""
        return self._call(self._host.usage(*names))

    def events(self) -> ProcessEvents:
        """Return what happens to all processes of the host, for ``with`` and ``for``."""
        from .sync_events import ProcessEvents  # Here: most programs follow only what they start.

        return ProcessEvents(self._host.events(), self._loop())

    # Commands.

    run = sync_commands.run
    map = sync_commands.map_commands


class _SharedHost(Host):
    """The host of ``run``: opened by the first call, opened again after a fork, closed at exit."""

    # Finalizers may run when the globals of this module are gone; attributes are still there.
    _OutOfTurn = OutOfTurn

    def __init__(self) -> None:
        self._ended = False
        self._begin()
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self._end)

    def _begin(self) -> None:
        super().__init__(asynchronous.local())
        self._opening = Lock()

    def _end(self) -> None:
        with self._opening:  # After this, no thread opens it any more.
            self._ended = True
        self.close()

    def _loop(self) -> LoopThread:
        if self._ended:
            raise self._OutOfTurn("the interpreter is shutting down")
        if self._thread is None:
            with self._opening:  # Several threads may call at the same time.
                if self._ended:
                    raise self._OutOfTurn("the interpreter is shutting down")
                self.open()
        return super()._loop()


_SHARED = _SharedHost()

run = _SHARED.run
