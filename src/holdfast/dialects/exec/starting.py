"""Starting processes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Sequence
from time import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from holdfast.aliases import complaint
from holdfast.config import SandboxLimits
from holdfast.dialects import spawning
from holdfast.dialects.scope import Starting
from holdfast.errors import BadRequest, LimitReached, NameTaken, StartCancelled, Unsupported
from holdfast.model import PLAIN, UNLIMITED, EnvironmentPolicy, Inherit, Limits, ProcessTerms, Size, Spec
from holdfast.protocol import paths
from holdfast.protocol.sandbox import sandbox_of
from holdfast.protocol.shapes import camel
from holdfast.protocol.start import (
    EnvPolicy,
    ResourceLimits,
    ShellSnapshot,
    StartParams,
    StartResult,
    TerminalSize,
)
from holdfast.tracing import LONGEST, PREPARE_SNAPSHOT, span
from holdfast.users import User
from holdfast.value import replace
from holdfast.webhooks import refused

from .conversation import ExecConversation
from .decoding import DecodedStart
from .entries import Entry, StartSummary
from .notes import ProcessNote, pack_process
from .recording import recording_of
from .scopes import ProcessScope, Session
from .shell_snapshots import with_snapshot
from .shells import SHELLS, ShellKind

if TYPE_CHECKING:
    from .notifying import WebhookSender

_encode = msgspec.json.Encoder(order="deterministic").encode

_LONGEST_MS = 365 * 24 * 3600 * 1000
"""Milliseconds; longer times are legal and mean the same, but clocks overflow."""

_MOST = 2**62
"""Bytes, seconds or processes; larger limits are legal and mean the same, but the kernel's numbers end."""

_LONGEST_AGAIN = 16_384
"""Bytes of a request that is remembered for a restart, for as long as its process is known."""

_LONGEST_SCOPE = 256
"""Bytes of the scope of shell snapshots."""

_ABOUT_MOST = 1024
"""Characters of a command's arguments that a list repeats; the client knows the rest."""

_NAMES = {"memory": "memoryBytes", "cpu": "cpuSeconds", "processes": "processes", "files": "openFiles"}
"""Limits as they are called on the wire."""


def start(
    talk: ExecConversation, asked: DecodedStart, session: Session | None = None
) -> Coroutine[Any, Any, StartResult]:
    """Start a process.  The answer is sent before any output of the process.

    It goes on when the connection is lost: the client finds the process when it
    comes back.

    Args:
        session: Whose process it becomes, where the client may have closed that session by now.
    """
    # Now: the client may close this session, and open another, before the process runs.
    if session is None:
        session = talk.session
    params = asked.params
    if params.managed_network is not None:
        _check_ports(params.managed_network.loopback_ports, talk.endpoint.limits.loopback_ports)
    spec = _spec(params, asked.cwd, talk.endpoint.sandbox_limits)
    if params.record is not None:
        if spec.terminal is None:
            raise BadRequest("record needs a terminal: tty must be true", field="record")
        spec = replace(spec, record=recording_of(talk, params.record))
    request = _request(params, asked.cwd, sandboxed=spec.sandbox is not None)
    if params.notify_url is not None:
        request = replace(request, notify=_checked(talk.endpoint.webhooks, params.notify_url))
    name, keep, tenant = params.process_id, params.keep, session.tenant
    prepare = (
        None if params.shell_snapshot is None else _preparing(talk, session, params, params.shell_snapshot)
    )
    if params.idempotent and tenant.find(session, name)[1] is not None:
        return _find(talk, session, spec, request, keep=keep, prepare=prepare)
    # The name is taken before anything else can be asked about it.
    home, starting = tenant.reserve(session, name, request, keep=keep)
    return _start(talk, home, spec, starting, request, extended=session.extended, prepare=prepare)


def _checked(webhooks: WebhookSender | None, url: str) -> str:
    if webhooks is None:
        raise refused(url)
    return webhooks.check(url)


def _noted(spec: Spec, home: ProcessScope, request: StartSummary) -> Spec:
    """The spec with what a server that goes on after this one has to know of it."""
    if home.client is not None and not home.client.comes_back:
        return spec
    note = ProcessNote(home.key, home.tenant.identity, spec.name, request)
    return replace(spec, note=pack_process(note))


def _preparing(
    talk: ExecConversation, session: Session, params: StartParams, asked: ShellSnapshot
) -> spawning.Prepare | None:
    """How a login shell is spared its profiles; None if this command has none to read, or must read them."""
    if not 0 < len(asked.scope_id.encode()) <= _LONGEST_SCOPE:
        raise BadRequest(f"shell snapshot scope must be non-empty and at most {_LONGEST_SCOPE} bytes")
    if len(params.argv) < 3 or params.argv[:2] != [asked.shell.path, "-lc"]:
        return None
    if asked.shell.name not in SHELLS:
        raise BadRequest(f"shell snapshots are unsupported for shell `{asked.shell.name}`")
    shells = talk.endpoint.shells(session)
    # Variables that a token does not allow may come from a profile, and from nowhere else.
    if shells is None or talk.client.principal.grant.variables is not None:
        return None
    conditions = asked, params.cwd, params.env_policy, params.sandbox, params.user
    key = hashlib.blake2b(_encode(conditions), digest_size=16).digest()

    async def prepare(spec: Spec) -> Spec:
        with span(PREPARE_SNAPSHOT, {"process.id": spec.name[:LONGEST], "snapshot_requested": True}):
            return await with_snapshot(
                shells, key, talk.backend, spec, ShellKind(asked.shell.name), session.strays
            )

    return prepare


async def _find(
    talk: ExecConversation,
    session: Session,
    spec: Spec,
    request: StartSummary,
    *,
    keep: bool,
    prepare: spawning.Prepare | None,
) -> StartResult:
    """The process that the same request has started, or is about to."""
    endpoint, name = talk.endpoint, spec.name
    while isinstance(entry := endpoint.find(session, name), Starting):
        if entry.request.fingerprint != request.fingerprint:
            raise NameTaken(name)
        settled = asyncio.Event()
        entry.when_settled(settled.set)
        await settled.wait()
        if entry.cancelled:
            raise StartCancelled(name)
    if entry is None:  # It failed, and was told so to whoever asked first.
        home, starting = session.tenant.reserve(session, name, request, keep=keep)
        return await _start(talk, home, spec, starting, request, extended=session.extended, prepare=prepare)
    if entry.request.fingerprint != request.fingerprint:
        raise NameTaken(name)
    return _result(entry, existing=True, extended=session.extended)


async def _start(
    talk: ExecConversation,
    home: ProcessScope,
    spec: Spec,
    starting: Starting,
    request: StartSummary,
    *,
    extended: bool,
    prepare: spawning.Prepare | None,
) -> StartResult:
    endpoint = talk.endpoint
    if prepare is None:
        with span(PREPARE_SNAPSHOT, {"process.id": starting.name[:LONGEST], "snapshot_requested": False}):
            pass  # Who compares traces looks for it.
    if talk.backend.is_durable:
        spec = _noted(spec, home, request)
    process = await spawning.start(talk.backend, spec, home, starting, prepare)
    # From here to the answer nothing waits, so nothing can be told in between.
    entry = endpoint.enter(home, starting, process, request)
    return _result(entry, existing=False, extended=extended)


def _result(entry: Entry, *, existing: bool, extended: bool) -> StartResult:
    enforced = entry.process.limits_enforced()
    return StartResult(
        entry.name,
        sandbox_type="linuxSeccomp" if entry.request.sandboxed else "none",
        existing=existing if entry.request.fingerprint else UNSET,
        limits={_NAMES[name]: keeper for name, keeper in enforced.items()} if enforced else UNSET,
        pid=entry.process.pid if extended else UNSET,
    )


def _request(params: StartParams, cwd: paths.PathUri, *, sandboxed: bool) -> StartSummary:
    if params.window == 0:
        raise BadRequest("window must be at least 1", field="window")
    if params.name is not None and (wrong := complaint(params.name)):
        raise BadRequest(wrong, field="name")
    if params.auto_remove and not params.keep:
        raise BadRequest(
            "autoRemove needs keep: without it, a process is forgotten anyway", field="autoRemove"
        )
    about = b'%b"argv":%b,"cwd":%b,"tty":%b,"startedAtMs":%d' % (
        b'"name":%b,' % _encode(params.name) if params.name is not None else b"",
        _shortened(params.argv),
        # The URI that was sent, unless it is a long way round: it is kept for as long as the process.
        _encode(cwd.uri if params.cwd.startswith("/") or len(params.cwd) > _ABOUT_MOST else params.cwd),
        b"true" if params.tty else b"false",
        int(time() * 1000),
    )
    fingerprint = b""
    if params.idempotent:
        fingerprint = hashlib.blake2b(_encode(params), digest_size=16).digest()
    return StartSummary(
        about,
        fingerprint,
        params.retain_bytes,
        sandboxed,
        params.window,
        params.name or "",
        params.auto_remove,
        _remembered(params) if params.keep else b"",
    )


def _remembered(params: StartParams) -> bytes:
    """What a restart needs of the request; nothing of one that is too long.

    It is not recorded again: its recording would be in the way of another one.
    """
    if params.record is not None:
        params = msgspec.structs.replace(params, record=None)
    data = _encode(params)
    return data if len(data) <= _LONGEST_AGAIN else b""


def _shortened(argv: list[str]) -> bytes:
    """Arguments as a list tells them: it is kept for as long as the process."""
    text = _encode(argv)
    if len(text) <= _ABOUT_MOST:
        return text
    room, shown = _ABOUT_MOST, []
    for argument in argv:
        shown.append(argument[:room])
        room -= len(argument) + 1
        if room <= 0:
            break
    return text if shown == argv else _encode([*shown, "..."])


def _spec(params: StartParams, cwd: paths.PathUri, limits: SandboxLimits) -> Spec:
    if cwd.path is None:
        raise BadRequest(
            f"cwd URI `{cwd.uri}` is not valid on this exec-server host: '{cwd.uri}' is invalid on 'linux'"
        )
    if not params.argv:
        raise BadRequest("argv must not be empty")
    if params.network_proxy is not None:
        raise Unsupported("`networkProxy`")
    if params.enforce_managed_network:
        raise Unsupported("`enforceManagedNetwork`")
    return Spec(
        argv=params.argv,
        cwd=cwd.path,
        env=params.env,
        env_policy=None if params.env_policy is None else _policy(params.env_policy),
        terminal=_terminal(params) if params.tty or params.size is not None else None,
        stdin=params.pipe_stdin,
        arg0=params.arg0,
        terms=_terms(params),
        sandbox=sandbox_of(params.sandbox, cwd.path, limits),
        name=params.process_id,
        user=None if params.user is None else User(params.user),
    )


def _check_ports(ports: Sequence[object], most: int) -> None:
    """Nobody uses them, but they are held until the answer, and compared if the start is idempotent."""
    if len(ports) > most:
        raise LimitReached("loopback ports of one process", most, name="session.loopback_ports")


def _policy(policy: EnvPolicy) -> EnvironmentPolicy:
    return EnvironmentPolicy(
        inherit=Inherit(policy.inherit.value),
        ignore_default_excludes=policy.ignore_default_excludes,
        exclude=tuple(policy.exclude),
        set=tuple(policy.set.items()),
        include_only=tuple(policy.include_only),
    )


def _terminal(params: StartParams) -> Size | None:
    if params.size is None:
        return Size() if params.tty else None
    if not params.tty:
        raise BadRequest("size needs a terminal: tty must be true", field="size")
    return size_of(params.size)


def size_of(size: TerminalSize) -> Size:
    """A terminal's size; one without room for a character is refused."""
    if not size.rows or not size.cols:
        raise BadRequest("size.rows and size.cols must be at least 1", field="size")
    return Size(size.rows, size.cols)


def _terms(params: StartParams) -> ProcessTerms:
    """What may end the process; the one object for none of it, if there is none."""
    if params.truncate_output and params.output_bytes_limit is None:
        raise BadRequest("truncateOutput needs outputBytesLimit", field="truncateOutput")
    wishes = params.timeout_ms, params.idle_timeout_ms, params.grace_ms, params.output_bytes_limit
    if wishes == _NO_WISHES and params.drain_ms is None and params.limits is None:
        return PLAIN
    for field in ("timeout_ms", "idle_timeout_ms", "output_bytes_limit"):
        if getattr(params, field) == 0:
            raise BadRequest(f"{camel(field)} must be at least 1", field=camel(field))
    terms = ProcessTerms(
        timeout=_seconds(params.timeout_ms),
        idle_timeout=_seconds(params.idle_timeout_ms),
        grace=_seconds(params.grace_ms) or 0.0,
        output=params.output_bytes_limit,
        drain=_seconds(params.drain_ms),
        limits=UNLIMITED if params.limits is None else _limits(params.limits),
        truncate=params.truncate_output,
    )
    return PLAIN if terms == PLAIN else terms


_NO_WISHES = (None,) * 4


def _limits(limits: ResourceLimits) -> Limits:
    for name, value in limits.values().items():
        if value < 1:
            raise BadRequest(f"limits.{name} must be at least 1", field=f"limits.{name}")
    return Limits(
        memory=_bounded(limits.memory_bytes),
        cpu=_bounded(limits.cpu_seconds),
        processes=_bounded(limits.processes),
        files=_bounded(limits.open_files),
    )


def _bounded(value: int | None) -> int | None:
    return None if value is None else min(value, _MOST)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else min(milliseconds, _LONGEST_MS) / 1000
