"""``holdfast serve``: puts a server together, runs it until a signal stops it, and closes its parts."""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import json
import os
import resource
import signal
import ssl
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.config import ServerLimits
from holdfast.dialects.dialect import Endpoint
from holdfast.dialects.endpoints import AutoEndpoint, Services, find_row
from holdfast.engine.local import LocalBackend
from holdfast.errors import HostUnfit
from holdfast.host.environ import Environment
from holdfast.host.info import host_info, own_environment
from holdfast.host.keeper import KeeperOrder, KeptForkServer
from holdfast.host.limits import find_groups
from holdfast.host.sandbox.confinement import Confiner
from holdfast.host.shim import ForkServer, compiled
from holdfast.host.spawn import Spawner
from holdfast.poller import Poller
from holdfast.server.app import Server
from holdfast.server.auth import Auth
from holdfast.server.listen import BadListen, Listen, Stdio, check_exposure, parse_listen
from holdfast.server.routes import HttpAnswer, Route, Routes
from holdfast.value import value
from holdfast.webhooks import WebhookPolicy
from holdfast.wire import websocket as frames

from .options import wants_json
from .serve_access import BadAccess, make_auth, make_tls
from .serve_durable import NotDurable, Takeover, be_spare, begin
from .serve_memory import MemoryTrimmer
from .serve_observation import BadAudit, Observation, make_audit, observe, set_up_logs
from .serve_options import SANDBOX_AUTO, SANDBOX_OFF, ignored_limits, limit_values, limits_of
from .serve_screens import NoScreens, screens_of
from .serve_webhooks import BadWebhooks, webhooks_of
from .streams import open_standard_files

if TYPE_CHECKING:
    from holdfast.observe.audit import AuditLog

_FAILED = 1
"""The exit code of a server that cannot start.  ``serve`` never exits with the code of a process."""

_REFUSALS = (BadListen, BadAccess, BadAudit, BadWebhooks, HostUnfit, NotDurable, NoScreens)
"""What is wrong with the command line or with the host, in words for the user."""

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_SETTLE = 0.5
"""Seconds after the start at which the server is assumed to go on running."""

_GC_THRESHOLD = 50_000
"""Objects that are made between two runs of the collector.  Its pauses dominate the highest latencies."""


@value
class ServerAccess:
    """Who may connect, and with what certificate the server answers."""

    auth: Auth | None = None
    tls: ssl.SSLContext | None = None


@value
class ServerPlan:
    """What a server is put together from: the command line, checked and understood."""

    arguments: argparse.Namespace
    where: list[Listen]
    access: ServerAccess
    limits: ServerLimits
    files_limit: tuple[int, int] | None
    """The limits of open files for children, if the server has raised its own."""
    webhooks: WebhookPolicy | None
    """Where clients may have the ends of processes told to; None: nowhere."""

    def make_confiner(self) -> Confiner:
        """Return what enforces sandboxes, and begin to try it out."""
        return make_confiner(self.arguments.sandbox, self.limits.sandbox.trial_seconds)


def serve(arguments: argparse.Namespace) -> int:
    """Run a server until a signal, or the end of standard input if that is served; return the exit code."""
    try:
        where = [parse_listen(url) for url in arguments.listen or ("ws://127.0.0.1:0",)]
        auth = make_auth(arguments, where)
        for listen in where:
            check_exposure(listen, auth=auth is not None)
        tls = make_tls(arguments, where)
        open_standard_files()
        for sentence in ignored_limits(arguments.limit):
            print(f"Warning: {sentence}", file=sys.stderr)
        files_limit = _raise_files_limit()
        screens_of(arguments.screens)
        webhooks = webhooks_of(arguments)
        set_up_logs(arguments)
        plan = ServerPlan(
            arguments, where, ServerAccess(auth, tls), limits_of(arguments), files_limit, webhooks
        )
        control = begin(arguments.durability, where, plan.limits.engine, files_limit)
        if control is None:
            return _run(plan, None)
        return be_spare(
            control, plan.make_confiner, lambda takeover: _run(plan, takeover), plan.limits.engine
        )
    except _REFUSALS as bad:
        # In the format of other servers of this protocol.
        print(f"Error: {bad}", file=sys.stderr)
        return _FAILED


def _raise_files_limit() -> tuple[int, int] | None:
    """Raise our limit of open files to the hard limit; return the limits for children if that changed it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard


def _run(plan: ServerPlan, takeover: Takeover | None) -> int:
    """Run one server, alone or as the keeper's."""
    # They wait until ``_serve`` handles them, which ends the trials that begin here, too.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    if takeover is None:
        fork_server: ForkServer = ForkServer(files_limit=plan.files_limit)
        # Both of these start programs, which get ready while we go on.
        fork_server.prepare()
        confiner, groups = plan.make_confiner(), find_groups()
    elif takeover.inheritance is None:
        fork_server = takeover.fork_server
        fork_server.prepare()
        confiner, groups = plan.make_confiner(), find_groups(takeover.keeper)
    else:
        fork_server = takeover.fork_server
        confiner, groups = takeover.inheritance.confiner, takeover.inheritance.groups.renewed()
    spawner = Spawner(Environment(own_environment()), fork_server, groups=groups, confiner=confiner)
    poller, code = Poller(), _FAILED
    try:
        with asyncio.Runner(loop_factory=poller.new_loop) as runner:
            if os.getpid() == 1:
                # As the first process of a container we have to reap the orphans of others, too.
                runner.get_loop().add_signal_handler(signal.SIGCHLD, fork_server.adopt)
            code = runner.run(_serve(plan, spawner, poller, takeover))
    except _REFUSALS:
        # No other server would fare better: this is not a crash.
        if takeover is not None:
            takeover.fork_server.stop(_FAILED)
        raise
    if takeover is not None:
        takeover.fork_server.stop(code)
    return code


def make_confiner(choice: str, patience: float) -> Confiner:
    """Return what enforces sandboxes.

    Args:
        choice: ``auto``, ``off``, or the name of a sandbox backend.
        patience: Seconds that a trial of a sandbox may take.
    """
    only = None if choice in (SANDBOX_AUTO, SANDBOX_OFF) else choice
    return Confiner(compiled(), only=only, off=choice == SANDBOX_OFF, patience=patience)


@value
class RunningServer:
    """The parts of a server that have to be closed."""

    server: Server
    endpoint: Endpoint
    backend: LocalBackend
    observation: Observation
    audit: AuditLog | None

    async def stop(self) -> None:
        """Close all parts, each before those that it uses."""
        await self.server.stop()
        self.endpoint.close()
        await self.backend.aclose()
        self.observation.close()
        if self.audit is not None:
            self.audit.close()


async def _serve(plan: ServerPlan, spawner: Spawner, poller: Poller, takeover: Takeover | None) -> int:
    loop = asyncio.get_running_loop()
    stop, code, is_ready = asyncio.Event(), 0, False

    def halt() -> None:
        stop.set()
        if not is_ready:
            spawner.stop_trials()

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, halt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    running = _put_together(plan, spawner, poller, loop, stop.set, takeover)
    if takeover is not None:
        loop.add_reader(takeover.fork_server, _obey, takeover.fork_server, halt, running)
    # Now, before there is any client: an object that is frozen while it lives is never collected.
    gc.freeze()
    try:
        # Otherwise the first client that asks about sandboxes would have to wait, and others with it.
        await running.backend.ready()
        is_ready = True
        if not stop.is_set():
            await _listen(plan, running.server, takeover)
        loop.call_later(_SETTLE / 5, lambda: running.backend.info)
        loop.call_later(_SETTLE, _settle)
        MemoryTrimmer(running.backend, loop)
        await stop.wait()
    finally:
        for number in _STOP_SIGNALS:
            # A second signal must not interrupt the stop.
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
        if takeover is not None:
            loop.remove_reader(takeover.fork_server)
            code = _FAILED if takeover.fork_server.is_lost else 0
        await running.stop()
    return code


def _obey(keeper: KeptForkServer, stop: Callable[[], None], running: RunningServer) -> None:
    """Do what the keeper says, or stop because it is gone."""
    match keeper.receive():
        case KeeperOrder.HANGUP if running.audit is not None:
            running.audit.reopen()
        case KeeperOrder.HANGUP if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            pass  # Started by nohup, to go on when its terminal is closed.
        case KeeperOrder.TERMINATE | KeeperOrder.HANGUP | KeeperOrder.LOST:
            stop()  # Whoever closes the terminal of a server without an audit log ends it.


async def _listen(plan: ServerPlan, server: Server, takeover: Takeover | None) -> None:
    """Serve the listeners of the server before, and open those that it had not opened."""
    adopted = () if takeover is None else takeover.handover.listeners
    for url, fd in adopted:
        server.adopt(url, fd)
    for listen in plan.where[len(adopted) :]:
        url = await server.listen(listen)
        if takeover is not None:
            # Before anybody knows the URL, so that it stays the same.
            takeover.fork_server.listen(*server.sockets()[-1])
        if listen != Stdio():
            # If standard output carries the protocol, it must carry nothing else.
            _announce(url, plan.arguments, to_stderr=Stdio() in plan.where)
    if takeover is not None:
        takeover.fork_server.ready()


def _put_together(
    plan: ServerPlan,
    spawner: Spawner,
    poller: Poller,
    loop: asyncio.AbstractEventLoop,
    stop: Callable[[], None],
    takeover: Takeover | None,
) -> RunningServer:
    arguments, access, limits = plan.arguments, plan.access, plan.limits
    observation = observe(arguments, loop, poller.stalls)
    telemetry = observation.telemetry
    audit = make_audit(arguments, failed=telemetry.audit_failed)
    if audit is not None:
        loop.add_signal_handler(signal.SIGHUP, audit.reopen)
    backend = LocalBackend(
        spawner,
        host_info,
        loop,
        poller=poller,
        limits=limits.engine,
        http_limits=limits.http,
        file_limits=limits.file,
        environment_limits=limits.environment,
        sandbox_limits=limits.sandbox,
        audit=audit,
        telemetry=telemetry,
        store=None if takeover is None else takeover.store,
        screens=screens_of(arguments.screens),
    )
    if takeover is not None:
        _recover(takeover, backend, spawner, audit)
    services = Services(backend, loop, telemetry, limits, plan.webhooks)
    row = find_row(arguments.endpoint)
    endpoint: Endpoint = AutoEndpoint(services) if row is None else row.make(services)
    if isinstance(endpoint, AutoEndpoint):
        loop.call_later(_SETTLE / 2, endpoint.load)
    routes = Routes(
        healthz=row is None or row.healthz,
        any_path=row is not None and row.any_path,
        auth=access.auth,
        table=() if observation.metrics is None else (_metrics(observation.metrics),),
    )
    server = Server(
        endpoint,
        routes=routes,
        telemetry=telemetry,
        loop=loop,
        poller=poller,
        limits=limits.connection,
        tls=access.tls,
        audit=audit,
        on_idle=stop,
    )
    observation.limits(limit_values(limits), lambda: server.usage() | backend.usage())
    if takeover is not None:
        store = takeover.store
        observation.durable(takeover.restarts, lambda: store.used_cells)
    return RunningServer(server, endpoint, backend, observation, audit)


def _recover(takeover: Takeover, backend: LocalBackend, spawner: Spawner, audit: AuditLog | None) -> None:
    """Go on with the processes of the server before."""
    if audit is not None and takeover.restarts:
        audit.restarted(takeover.restarts)  # Before the ends of those that have ended meanwhile.
    backend.recover(takeover.handover.shims, spawner)


_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def _metrics(show: Callable[[], bytes]) -> Route:
    """Return the route of the figures, for clients whose token allows it."""
    fields = {"content-type": _METRICS_TYPE}
    return Route("/metrics", lambda call: HttpAnswer(show(), fields=fields), grant="metrics")


def _announce(url: str, arguments: argparse.Namespace, *, to_stderr: bool) -> None:
    """Print the URL of a listener."""
    stream = sys.stderr if to_stderr else sys.stdout
    if wants_json(arguments):
        print(json.dumps({"url": url}, separators=(",", ":")), file=stream, flush=True)
        return
    print(url, file=stream, flush=True)
    if arguments.hint:
        print(arguments.hint.replace("{url}", url), file=stream, flush=True)


def _settle() -> None:
    """Do what makes a server faster in the long run, and would delay its start."""
    frames.load()
    # The backend imports these when a client first needs them.  By then there may be no descriptor left
    # with which to read their files.
    for name in ("files", "http"):
        importlib.import_module(f"holdfast.engine.{name}")
    gc.collect()
    gc.set_threshold(_GC_THRESHOLD, 20, 50)
