"""``holdfast serve``: a server put together, run until it is told to stop, and taken apart."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import signal as signals
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Protocol

from holdfast.backend import KeptBackend
from holdfast.config import AppLimits, EngineLimits, SessionLimits
from holdfast.dialects.auto import AutoEndpoint
from holdfast.dialects.dialect import Endpoint
from holdfast.dialects.exec.endpoint import ExecEndpoint
from holdfast.dialects.exec.methods import METHODS
from holdfast.engine.local import LocalBackend
from holdfast.host.environ import Environment
from holdfast.host.groups import find_groups
from holdfast.host.info import host_info, own_environment
from holdfast.host.sandbox.ladder import Ladder
from holdfast.host.spawn import Spawner
from holdfast.host.warden import Nursery, compiled
from holdfast.poller import Poller
from holdfast.sandbox import Backing
from holdfast.server.app import Server
from holdfast.server.http import Routes
from holdfast.server.listen import Listen, Stdio
from holdfast.telemetry import Silent, Telemetry
from holdfast.value import replace
from holdfast.wire import masking

_STOPS = (signals.SIGTERM, signals.SIGINT)

_SETTLE = 0.5
"""Seconds after the start at which the server is assumed to go on running."""

_TIDY = 10.0
"""Seconds between looks at whether there was a burst."""

_BURST = 1000
"""Processes within that time that make one."""

_GC_THRESHOLD = 50_000
"""Objects made before the collector looks at the youngest: its pauses are what a tail latency is made of."""


def run(
    arguments: argparse.Namespace,
    where: list[Listen],
    files_limit: tuple[int, int] | None,
) -> int:
    """Serve until a signal, or the end of standard input; return the exit code.

    Raises:
        BadListen: A listener cannot be had.
    """
    nursery = Nursery(files_limit=files_limit)
    nursery.prepare()  # It gets ready while we do.
    ladder = make_ladder(arguments.sandbox)  # The same.
    spawner = Spawner(Environment(own_environment()), nursery, groups=find_groups(), ladder=ladder)
    poller = Poller()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(poller.selector())) as runner:
        return runner.run(_serve(arguments, where, spawner, poller))


def make_ladder(choice: str) -> Ladder:
    """What keeps sandboxes: ``auto``, one of the ways by its name, or ``off``."""
    only = None if choice in ("auto", "off") else Backing(choice)
    return Ladder(compiled(), only=only, off=choice == "off")


async def _serve(arguments: argparse.Namespace, where: list[Listen], spawner: Spawner, poller: Poller) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in _STOPS:
        loop.add_signal_handler(number, stop.set)
    telemetry = Silent()
    backend = LocalBackend(spawner, host_info, loop, poller=poller, limits=_engine_limits(arguments))
    exec_endpoint = ExecEndpoint(
        backend, METHODS, loop=loop, telemetry=telemetry, limits=_session_limits(arguments)
    )
    endpoint = _choose(arguments, exec_endpoint, cache(partial(_app, arguments, backend, loop, telemetry)))
    server = Server(
        endpoint,
        routes=Routes(healthz=arguments.endpoint != "exec", any_path=arguments.endpoint == "app"),
        telemetry=telemetry,
        loop=loop,
        poller=poller,
        on_idle=stop.set,
    )
    try:
        for listen in where:
            url = await server.listen(listen)
            if listen != Stdio():
                # Standard output may be the protocol's: then it carries nothing else.
                _announce(url, arguments, to_stderr=Stdio() in where)
        loop.call_later(_SETTLE / 5, lambda: backend.info)  # By now it is known what sandboxes are worth.
        loop.call_later(_SETTLE, _settle)
        Tidying(backend, loop)
        await stop.wait()
    finally:
        for number in _STOPS:
            # We are stopping already; a second signal must not cut that short.
            loop.remove_signal_handler(number)
            signals.signal(number, signals.SIG_IGN)
        await server.stop()
        exec_endpoint.close()
        await backend.aclose()
    return 0


def _app(
    arguments: argparse.Namespace, backend: KeptBackend, loop: asyncio.AbstractEventLoop, telemetry: Telemetry
) -> Endpoint:
    from holdfast.dialects.app.endpoint import AppEndpoint  # Here: the server listens sooner without it.
    from holdfast.dialects.app.methods import METHODS

    return AppEndpoint(backend, METHODS, loop=loop, telemetry=telemetry, limits=_app_limits(arguments))


def _choose(
    arguments: argparse.Namespace, exec_endpoint: ExecEndpoint, app_endpoint: Callable[[], Endpoint]
) -> Endpoint:
    """The endpoint that was asked for."""
    match arguments.endpoint:
        case "exec":
            return exec_endpoint
        case "app":
            return app_endpoint()
        case _:
            exec_endpoint.loop.call_later(_SETTLE / 2, app_endpoint)
            return AutoEndpoint(exec_endpoint=exec_endpoint, app_endpoint=app_endpoint)


def _announce(url: str, arguments: argparse.Namespace, *, to_stderr: bool) -> None:
    stream = sys.stderr if to_stderr else sys.stdout
    if arguments.output == "json":
        import json  # Here: who reads lines of text need not wait for it.

        print(json.dumps({"url": url}, separators=(",", ":")), file=stream, flush=True)
        return
    print(url, file=stream, flush=True)
    if arguments.hint:
        print(arguments.hint.replace("{url}", url), file=stream, flush=True)


def _settle() -> None:
    """What makes a long-running server faster, and its start slower."""
    masking.load()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 20, 50)


class Counting(Protocol):
    """A backend that counts the processes that have closed."""

    closures: int


class Tidying:
    """Gives memory back some time after a burst of processes.

    The interpreter keeps freed objects for later use, a few in every block of
    memory, which keeps the blocks from going back to the system.  One live
    object does the same to a mebibyte: hence numbers of the time of the burst
    are not kept, here and elsewhere, once they have served.
    """

    def __init__(self, backend: Counting, loop: asyncio.AbstractEventLoop) -> None:
        self._backend = backend
        self._loop = loop
        self._rounds = 0
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        loop.call_later(_TIDY, self.on_time)

    def on_time(self) -> None:
        """Look, tidy up if there is reason to, and come back later."""
        if self._backend.closures >= _BURST:
            # What closed up to now is forgotten in 30 s, the tail of the burst one look later.
            self._rounds = 5
        self._backend.closures = 0
        if self._rounds:
            self._rounds -= 1
            gc.collect()
            if self._trim is not None:
                self._trim(0)
        self._loop.call_later(_TIDY, self.on_time)


def _engine_limits(arguments: argparse.Namespace) -> EngineLimits:
    given = {"retained_bytes": arguments.retain_total_bytes}
    return replace(EngineLimits(), **{name: value for name, value in given.items() if value is not None})


def _session_limits(arguments: argparse.Namespace) -> SessionLimits:
    given = {"detached_bytes": arguments.retain_detached_bytes}
    return replace(SessionLimits(), **{name: value for name, value in given.items() if value is not None})


def _app_limits(arguments: argparse.Namespace) -> AppLimits:
    limits = AppLimits()
    if arguments.drain is not None:
        limits = replace(limits, drain_seconds=arguments.drain)
    # No silence at all would end everything at once: 0 stands for no such end.
    if arguments.process_quiet is not None:
        limits = replace(limits, process_quiet_seconds=arguments.process_quiet or None)
    if arguments.command_quiet is not None:
        limits = replace(limits, command_quiet_seconds=arguments.command_quiet or None)
    return replace(limits, command_policy=arguments.command_sandbox)
