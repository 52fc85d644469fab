"""``holdfast serve``: a server put together, run until it is told to stop, and taken apart."""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import signal as signals
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from holdfast.backend import KeptBackend
from holdfast.config import AppLimits, Limits
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
from holdfast.server.auth import Auth
from holdfast.server.http import Routes
from holdfast.server.listen import Listen, Stdio
from holdfast.telemetry import Telemetry
from holdfast.value import replace
from holdfast.wire import masking

from . import bounds, observing
from .auditing import make_audit
from .tidying import Tidying

if TYPE_CHECKING:
    from holdfast.observe.audit import AuditLog

_STOPS = (signals.SIGTERM, signals.SIGINT)

_SETTLE = 0.5
"""Seconds after the start at which the server is assumed to go on running."""

_GC_THRESHOLD = 50_000
"""Objects made before the collector looks at the youngest: its pauses are what a tail latency is made of."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Who may connect, and with what certificate we answer."""

    auth: Auth | None = None
    tls: ssl.SSLContext | None = None


def run(
    arguments: argparse.Namespace,
    where: list[Listen],
    files_limit: tuple[int, int] | None,
    guard: Guard,
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
        return runner.run(_serve(arguments, where, guard, spawner, poller))


def make_ladder(choice: str) -> Ladder:
    """What keeps sandboxes: ``auto``, one of the ways by its name, or ``off``."""
    only = None if choice in ("auto", "off") else Backing(choice)
    return Ladder(compiled(), only=only, off=choice == "off")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a server consists of."""

    server: Server
    exec_endpoint: ExecEndpoint
    backend: LocalBackend
    observation: observing.Observation
    audit: AuditLog | None

    async def take_apart(self) -> None:
        """End everything, in the order in which nobody misses anybody."""
        await self.server.stop()
        self.exec_endpoint.close()
        await self.backend.aclose()
        self.observation.close()
        if self.audit is not None:
            self.audit.close()


async def _serve(
    arguments: argparse.Namespace, where: list[Listen], guard: Guard, spawner: Spawner, poller: Poller
) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in _STOPS:
        loop.add_signal_handler(number, stop.set)
    parts = _put_together(arguments, guard, spawner, poller, loop, stop.set)
    # Now, before there is any client: of what is frozen alive, the collector never frees a cycle.
    gc.freeze()
    try:
        for listen in where:
            url = await parts.server.listen(listen)
            if listen != Stdio():
                # Standard output may be the protocol's: then it carries nothing else.
                _announce(url, arguments, to_stderr=Stdio() in where)
        # By now it is known what sandboxes are worth.
        loop.call_later(_SETTLE / 5, lambda: parts.backend.info)
        loop.call_later(_SETTLE, _settle)
        Tidying(parts.backend, loop)
        await stop.wait()
    finally:
        for number in _STOPS:
            # We are stopping already; a second signal must not cut that short.
            loop.remove_signal_handler(number)
            signals.signal(number, signals.SIG_IGN)
        await parts.take_apart()
    return 0


def _put_together(
    arguments: argparse.Namespace,
    guard: Guard,
    spawner: Spawner,
    poller: Poller,
    loop: asyncio.AbstractEventLoop,
    stop: Callable[[], None],
) -> Parts:
    limits = _limits(arguments)
    observation = observing.observe(arguments, loop)
    telemetry = observation.telemetry
    audit = make_audit(arguments, failed=telemetry.audit_failed)
    if audit is not None:
        loop.add_signal_handler(signals.SIGHUP, audit.reopen)
    backend = LocalBackend(
        spawner,
        host_info,
        loop,
        poller=poller,
        limits=limits.engine,
        http_limits=limits.http,
        file_limits=limits.file,
        audit=audit,
    )
    exec_endpoint = ExecEndpoint(
        backend,
        METHODS,
        loop=loop,
        telemetry=telemetry,
        limits=limits.session,
        http_limits=limits.http,
        file_limits=limits.file,
    )
    routes = Routes(
        healthz=arguments.endpoint != "exec",
        any_path=arguments.endpoint == "app",
        auth=guard.auth,
        metrics=observation.metrics,
    )
    server = Server(
        _choose(arguments, exec_endpoint, cache(partial(_app, backend, loop, telemetry, limits.app))),
        routes=routes,
        telemetry=telemetry,
        loop=loop,
        poller=poller,
        limits=limits.connection,
        tls=guard.tls,
        audit=audit,
        on_idle=stop,
    )
    observation.limits(bounds.values(limits), lambda: server.usage() | backend.usage())
    return Parts(server, exec_endpoint, backend, observation, audit)


def _app(
    backend: KeptBackend, loop: asyncio.AbstractEventLoop, telemetry: Telemetry, limits: AppLimits
) -> Endpoint:
    from holdfast.dialects.app.endpoint import AppEndpoint  # Here: the server listens sooner without it.
    from holdfast.dialects.app.methods import METHODS

    return AppEndpoint(backend, METHODS, loop=loop, telemetry=telemetry, limits=limits)


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
    # Now: when the first client asks for one there may be no descriptor left to read it with.
    for name in ("files", "http"):
        importlib.import_module(f"holdfast.engine.{name}")
    gc.collect()
    gc.set_threshold(_GC_THRESHOLD, 20, 50)


def _limits(arguments: argparse.Namespace) -> Limits:
    """The defaults, what options of their own say, and what ``--limit`` says."""
    limits = Limits(app=_app_limits(arguments))
    if arguments.retain_total_bytes is not None:
        limits = replace(limits, engine=replace(limits.engine, retained_bytes=arguments.retain_total_bytes))
    if arguments.retain_detached_bytes is not None:
        detached = replace(limits.session, detached_bytes=arguments.retain_detached_bytes)
        limits = replace(limits, session=detached)
    return bounds.apply(limits, arguments.limit)


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
