"""The methods of the exec dialect."""

from __future__ import annotations

import os.path
import signal as signals
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from holdfast.dialects import base64, paths, spawning
from holdfast.dialects.dialect import Method, UnknownMethod
from holdfast.dialects.scope import Starting
from holdfast.dialects.shapes import Nothing, camel, decoded
from holdfast.errors import BadRequest, StillStarting, UnknownProcess, Unsupported
from holdfast.model import EnvPolicy, HostInfo, Inherit, Page, Size, Spec, WriteStatus
from holdfast.wire.jsonrpc import Parts

from . import messages as m
from .endpoint import ExecConversation
from .feed import Feed

_LONGEST_WAIT = 365 * 24 * 3600.0
"""Seconds; longer waits are legal and mean the same, but clocks overflow."""


# The handshake and the host.


async def initialize(talk: ExecConversation, params: m.InitializeParams) -> m.InitializeResult:
    """Open or resume a session."""
    session = await talk.begin(params.resume_session_id)
    return m.InitializeResult(session.key, _environment_info(talk.endpoint.backend.info))


def environment_info(talk: ExecConversation, params: None) -> m.EnvironmentInfo:
    return _environment_info(talk.endpoint.backend.info)


def environment_status(talk: ExecConversation, params: None) -> m.StatusResult:
    return _READY


_READY = m.StatusResult()


def _environment_info(host: HostInfo) -> m.EnvironmentInfo:
    return m.EnvironmentInfo(
        shell=m.ShellInfo(os.path.basename(host.shell), host.shell),
        executor_version=host.version,
        provider_id=host.provider,
        cwd=paths.to_uri(host.cwd),
        user_home_dir=m.optional(host.home and paths.to_uri(host.home)),
        platform_os="linux",
        prepend_path_dirs=[],
        temporary_directories=[paths.to_uri(path) for path in host.temp_dirs],
        temp_dir=paths.to_uri(host.temp),
        capabilities=m.Capabilities(),
    )


# Processes.


def start(talk: ExecConversation, request: m.Start) -> Coroutine[Any, Any, m.StartResult]:
    """Start a process.  The answer is sent before anything the process says.

    It goes on when the connection is lost: the client finds the process when it
    comes back.
    """
    spec = _spec(request.params, request.cwd)
    # The name is taken before anything else can be asked about it.
    return _start(talk, spec, talk.session.scope.reserve(request.params.process_id))


async def _start(talk: ExecConversation, spec: Spec, starting: Starting) -> m.StartResult:
    endpoint, session = talk.endpoint, talk.session
    process = await spawning.start(endpoint.backend, spec, session.scope, starting)
    # From here to the answer nothing waits, so nothing can be told in between.
    now = endpoint.loop.time()
    feed = Feed(session, starting.name, process, endpoint, now=now)
    session.scope.settle(starting, feed)
    endpoint.telemetry.process_started()
    if session.client is None:
        feed.roomy = True
        process.retain(endpoint.limits.detached_bytes)
    else:
        process.retain(endpoint.limits.attached_bytes)
    return m.StartResult(starting.name)


def _spec(params: m.StartParams, cwd: paths.PathUri) -> Spec:
    if cwd.path is None:
        raise BadRequest(
            f"cwd URI `{cwd.uri}` is not valid on this exec-server host: '{cwd.uri}' is invalid on 'linux'"
        )
    if not params.argv:
        raise BadRequest("argv must not be empty")
    for field in ("sandbox", "network_proxy", "shell_snapshot"):
        if getattr(params, field) is not None:
            raise Unsupported(f"`{camel(field)}`")
    if params.enforce_managed_network:
        raise Unsupported("`enforceManagedNetwork`")
    return Spec(
        argv=params.argv,
        cwd=cwd.path,
        env=params.env,
        env_policy=None if params.env_policy is None else _policy(params.env_policy),
        terminal=Size() if params.tty else None,
        stdin=params.pipe_stdin,
        arg0=params.arg0,
    )


def _policy(policy: m.EnvPolicy) -> EnvPolicy:
    return EnvPolicy(
        inherit=Inherit(policy.inherit.value),
        ignore_default_excludes=policy.ignore_default_excludes,
        exclude=tuple(policy.exclude),
        set=tuple(policy.set.items()),
        include_only=tuple(policy.include_only),
    )


def read(talk: ExecConversation, params: m.ReadParams) -> Parts | Coroutine[Any, Any, Parts]:
    """What a process has said, as far as it is kept."""
    feed = _find(talk, params.process_id)
    after, limit = params.after_seq or 0, _limit(talk, feed, params.max_bytes)
    wait = min((params.wait_ms or 0) / 1000, _LONGEST_WAIT)
    page = feed.process.try_read(after=after, limit=limit, wait=wait)
    if page is None:
        return _read_later(talk, feed, after, limit, wait)
    return _page(talk, feed, page)


async def _read_later(
    talk: ExecConversation, feed: Feed, after: int, limit: int | None, wait: float
) -> Parts:
    return _page(talk, feed, await feed.process.read(after=after, limit=limit, wait=wait))


def _limit(talk: ExecConversation, feed: Feed, asked: int | None) -> int | None:
    """Answers stay below what a peer takes as one message."""
    most = talk.endpoint.limits.answer_bytes
    if asked is None:
        return most if feed.process.retained() > most else None
    return min(asked, most)


def _page(talk: ExecConversation, feed: Feed, page: Page) -> Parts:
    if feed.roomy and talk.session.client is talk.client and page.next_seq >= feed.process.next_seq:
        talk.endpoint.caught_up(feed)
    parts = Parts((b'{"chunks":[',))
    for chunk in page.chunks:
        parts.append(
            b'%b{"seq":%d,"stream":"%b","chunk":"'
            % (b"," if len(parts) > 1 else b"", chunk.seq, chunk.stream.value.encode())
        )
        parts.append(base64.encode(chunk.data))
        parts.append(b'"}')
    parts.append(
        b'],"nextSeq":%d,"exited":%b,"exitCode":%b,"closed":%b,"failure":null,"sandboxDenied":false}'
        % (
            page.next_seq,
            b"false" if page.exit_code is None else b"true",
            b"null" if page.exit_code is None else b"%d" % page.exit_code,
            b"true" if page.closed else b"false",
        )
    )
    return parts


def write(talk: ExecConversation, params: m.Write) -> m.WriteResult | Coroutine[Any, Any, m.WriteResult]:
    """Offer bytes to stdin.  A process that nobody knows is an answer here, not an error."""
    if not params.write_id:
        raise BadRequest("writeId must not be empty", field="writeId")
    feed = talk.session.scope.find(params.process_id)
    if feed is None:
        return m.WriteResult("unknownProcess")
    if isinstance(feed, Starting):
        return m.WriteResult("starting")
    status = feed.process.try_write(params.data, write_id=params.write_id)
    if status is None:
        return _write_later(feed, params)
    return _ACCEPTED if status is WriteStatus.ACCEPTED else m.WriteResult(status.value)


async def _write_later(feed: Feed, params: m.Write) -> m.WriteResult:
    status = await feed.process.write(params.data, write_id=params.write_id)
    return m.WriteResult(status.value)


_ACCEPTED = m.WriteResult(WriteStatus.ACCEPTED.value)


def signal(talk: ExecConversation, params: m.SignalParams) -> Nothing:
    """Interrupt a process; nothing happens if there is none to interrupt."""
    match talk.session.scope.find(params.process_id):
        case Feed() as feed:
            feed.process.signal(signals.SIGINT)
    return Nothing()


async def terminate(talk: ExecConversation, params: m.TerminateParams) -> m.TerminateResult:
    """Kill a process, or give up starting it."""
    match talk.session.scope.find(params.process_id):
        case None:
            return m.TerminateResult(running=False)
        case Starting() as starting:
            starting.cancel()
            return m.TerminateResult(running=True)
        case feed:
            running = await feed.process.terminate()
            feed.terminated = feed.terminated or running
            return m.TerminateResult(running)


def _find(talk: ExecConversation, name: str) -> Feed:
    match talk.session.scope.find(name):
        case None:
            raise UnknownProcess(name)
        case Starting():
            raise StillStarting(name)
        case feed:
            return feed


# The table.


def _absent(method: str, family: str) -> Method:
    """A method of the protocol that this server does not have."""

    def refuse(talk: ExecConversation, params: Any) -> None:
        raise UnknownMethod(method)

    return Method(lambda params: params, refuse, family)


P = TypeVar("P")


def _method(
    kind: type[P], handle: Callable[[ExecConversation, P], Any], family: str = "", **traits: Any
) -> Method:
    return Method(partial(decoded, kind=kind), handle, family, **traits)


def _name(params: Any) -> str:
    name: str = params.process_id
    return name


METHODS: dict[str, Method] = {
    "initialize": _method(m.InitializeParams, initialize, alone=True, waits=True),
    "environment/info": Method(m.decode_unit, environment_info, "environment info"),
    "environment/status": Method(m.decode_unit, environment_status, "environment status"),
    "process/start": Method(
        m.decode_start,
        start,
        "exec",
        name_of=lambda request: request.params.process_id,
        starts=True,
        waits=True,
    ),
    "process/read": _method(m.ReadParams, read, "exec", name_of=_name, waits=True),
    "process/write": Method(m.decode_write, write, "exec", name_of=_name, waits=True),
    "process/signal": _method(m.SignalParams, signal, "exec", name_of=_name),
    # Not in any order with its start: this is what gives the start up.
    "process/terminate": _method(m.TerminateParams, terminate, "exec"),
}

ABSENT = {
    "filesystem": (
        "fs/readFile fs/writeFile fs/createDirectory fs/getMetadata fs/canonicalize fs/readDirectory fs/walk"
        " fs/remove fs/copy fs/open fs/readBlock fs/writeBlock fs/close fs/watchMissing"
    ),
    "http": "http/request",
    "environment config": "environmentConfig/read",
    "capability discovery": "capabilityRoots/discoverV1 capabilities/discoverV2",
}
METHODS |= {name: _absent(name, family) for family, names in ABSENT.items() for name in names.split()}
