"""``holdfast serve``: puts a server together and runs it until it is told to stop."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import resource
import signal as signals
import sys
from typing import TYPE_CHECKING

from holdfast.config import EngineLimits, SessionLimits
from holdfast.host.guardian import Guardian
from holdfast.wire import masking

if TYPE_CHECKING:
    from holdfast.poller import Poller
    from holdfast.server.listen import Listen

_GC_THRESHOLD = 50_000
"""Objects made before the collector looks at the youngest: its pauses are what a tail latency is made of."""


_SETTLE = 0.5
"""Seconds after the start at which the server is assumed to go on running."""


class Refusal(Exception):
    """The server does not start; ``str`` of this says why."""


def serve(arguments: argparse.Namespace) -> int:
    """Run the server; return the exit code."""
    from holdfast.server.listen import BadListen, check_exposure, parse_listen

    if arguments.endpoint == "app":
        raise Refusal("the app endpoint is not available in this version; use --endpoint exec")
    try:
        where = [parse_listen(url) for url in arguments.listen or ("ws://127.0.0.1:0",)]
        for listen in where:
            check_exposure(listen)
    except BadListen as bad:
        raise Refusal(str(bad)) from None
    _open_standard_files()
    files_limit = _raise_files_limit()
    # Before anything that a fork would copy, or that a fork would disturb.
    guardian = Guardian()
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")

    import asyncio  # After the fork: the guardian has no use for it.

    from holdfast.poller import Poller

    poller = Poller()
    try:
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(poller.selector())) as runner:
            return runner.run(_run(arguments, where, guardian, files_limit, poller))
    except BadListen as bad:
        raise Refusal(str(bad)) from None
    finally:
        guardian.close()


async def _run(
    arguments: argparse.Namespace,
    where: list[Listen],
    guardian: Guardian,
    files_limit: tuple[int, int] | None,
    poller: Poller,
) -> int:
    import asyncio

    from holdfast.dialects.exec.endpoint import ExecEndpoint
    from holdfast.dialects.exec.methods import METHODS
    from holdfast.engine.local import LocalBackend
    from holdfast.engine.starter import Starter
    from holdfast.host.environ import Environment
    from holdfast.host.info import host_info, own_environment
    from holdfast.host.spawn import Spawner, seal_descriptors
    from holdfast.server.app import Server
    from holdfast.server.http import Routes
    from holdfast.server.listen import Stdio
    from holdfast.telemetry import Silent

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signals.SIGTERM, signals.SIGINT):
        loop.add_signal_handler(number, stop.set)

    seal_descriptors()
    spawner = Spawner(Environment(own_environment()), guardian=guardian, files_limit=files_limit)
    backend = LocalBackend(
        Starter(spawner.start, loop), host_info(), loop, poller=poller, limits=_engine_limits(arguments)
    )
    telemetry = Silent()
    endpoint = ExecEndpoint(
        backend, METHODS, loop=loop, telemetry=telemetry, limits=_session_limits(arguments)
    )
    server = Server(
        endpoint,
        routes=Routes(healthz=arguments.endpoint != "exec"),
        telemetry=telemetry,
        loop=loop,
        poller=poller,
        on_idle=stop.set,
    )
    try:
        for listen in where:
            url = await server.listen(listen)
            if url != "stdio":
                # Standard output may be the protocol's: then it carries nothing else.
                stream = sys.stderr if Stdio() in where else sys.stdout
                print(url, file=stream, flush=True)
                if arguments.hint:
                    print(arguments.hint.replace("{url}", url), file=stream, flush=True)
        loop.call_later(_SETTLE, _settle)
        await stop.wait()
    finally:
        for number in (signals.SIGTERM, signals.SIGINT):
            # We are stopping already; a second signal must not cut that short.
            loop.remove_signal_handler(number)
            signals.signal(number, signals.SIG_IGN)
        await server.stop()
        endpoint.close()
        await backend.aclose()
    return 0


def _settle() -> None:
    """What makes a long-running server faster, and its start slower."""
    masking.load()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 20, 50)


def _engine_limits(arguments: argparse.Namespace) -> EngineLimits:
    if arguments.retain_total_bytes is None:
        return EngineLimits()
    return EngineLimits(retained_bytes=arguments.retain_total_bytes)


def _session_limits(arguments: argparse.Namespace) -> SessionLimits:
    if arguments.retain_detached_bytes is None:
        return SessionLimits()
    return SessionLimits(detached_bytes=arguments.retain_detached_bytes)


def _open_standard_files() -> None:
    """Make sure that descriptors 0 to 2 are taken, so that no pipe of a child gets one of them."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def _raise_files_limit() -> tuple[int, int] | None:
    """Allow ourselves all the files we may have; return what children get instead."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard
