"""The methods of the app dialects."""

from __future__ import annotations

import asyncio
import os.path
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from time import time
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from holdfast.dialects import base64, spawning
from holdfast.dialects.dialect import Method
from holdfast.dialects.scope import Scope, Starting
from holdfast.dialects.shapes import Nothing, camel
from holdfast.errors import BadRequest, NameTaken, NoTerminal, SpawnFailed, StartCancelled, Unsupported
from holdfast.model import EnvPolicy, Inherit, Size, Spec, Stream, WriteStatus

from . import messages as m
from .capped import Capped
from .endpoint import AppConversation
from .explain import Declined, Failed
from .family import COMMAND, PROCESS, Family
from .run import Run, Terms
from .text import decode

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode

_DEFAULT_CAP = 1 << 20
_DEFAULT_TIMEOUT = 10_000

_OWN_ENVIRONMENT = EnvPolicy(
    inherit=Inherit.ALL, ignore_default_excludes=True, exclude=(), set=(), include_only=()
)

_NO_NETWORK = "CODEX_SANDBOX_NETWORK_DISABLED"
"""Tells a command that the policy it runs under gives it no network."""


def initialize(talk: AppConversation, params: m.InitializeParams) -> m.InitializeResult:
    """Begin the conversation."""
    return talk.begin(params)


# Starting.


def spawn(talk: AppConversation, params: m.SpawnParams) -> Coroutine[Any, Any, Nothing]:
    """Start a process.  The answer comes once it runs, before anything it says."""
    if not params.command:
        raise Declined("command must not be empty")
    if not params.process_handle:
        raise Declined("processHandle must not be empty")
    timeout = _DEFAULT_TIMEOUT if params.timeout_ms is UNSET else params.timeout_ms
    cap = _DEFAULT_CAP if params.output_bytes_cap is UNSET else params.output_bytes_cap
    _check(PROCESS, params.size, timeout, terminal=params.tty)
    spec = _spec(params, params.cwd, params.env or {})
    limits = talk.endpoint.limits
    terms = _terms(talk, params, timeout=timeout, cap=cap, quiet=limits.process_quiet_seconds)
    return _spawn(talk, spec, terms, _reserve(talk.processes, PROCESS, params.process_handle))


async def _spawn(talk: AppConversation, spec: Spec, terms: Terms, starting: Starting) -> Nothing:
    name = starting.name

    def on_over(run: Run) -> None:
        talk.processes.release(name)  # First: the client may use the name again when it reads this.
        talk.notify("process/exited", _exited(name, run))

    await _start(talk, PROCESS, talk.processes, spec, terms, starting, on_over)
    return Nothing()


def execute(talk: AppConversation, params: m.ExecParams) -> Coroutine[Any, Any, asyncio.Future[m.ExecResult]]:
    """Run a command.  The answer comes when it is over."""
    if params.permission_profile is not None:
        talk.need_experimental("command/exec.permissionProfile")
    if not params.command:
        raise Declined("command must not be empty")
    if params.permission_profile is not None and params.sandbox_policy is not None:
        raise Declined("`permissionProfile` cannot be combined with `sandboxPolicy`")
    timeout = _DEFAULT_TIMEOUT if params.timeout_ms is None else params.timeout_ms
    cap = _DEFAULT_CAP if params.output_bytes_cap is None else params.output_bytes_cap
    if params.size is not None and not params.tty:
        raise BadRequest(COMMAND.size_without_terminal())
    if params.disable_output_cap and params.output_bytes_cap is not None:
        raise BadRequest("command/exec cannot set both outputBytesCap and disableOutputCap")
    if params.disable_timeout and params.timeout_ms is not None:
        raise BadRequest("command/exec cannot set both timeoutMs and disableTimeout")
    _check(COMMAND, params.size, timeout, terminal=params.tty)
    env = dict(params.env or {})
    if not _network(params):
        env.setdefault(_NO_NETWORK, "1")
    if params.process_id is None and (params.tty or params.stream_stdin or params.stream_stdout_stderr):
        raise Declined("command/exec tty or streaming requires a client-supplied processId")
    spec = _spec(params, _directory(talk, params.cwd), env)
    terms = _terms(
        talk,
        params,
        timeout=None if params.disable_timeout else timeout,
        cap=None if params.disable_output_cap else cap,
        quiet=talk.endpoint.limits.command_quiet_seconds,
    )
    if params.process_id is None:
        scope = talk.unnamed
        starting = scope.reserve(str(next(talk.numbers)))
    else:
        scope = talk.commands
        starting = _reserve(scope, COMMAND, params.process_id)
    return _execute(talk, scope, spec, terms, starting, whole=params.disable_output_cap)


async def _execute(
    talk: AppConversation, scope: Scope[Run], spec: Spec, terms: Terms, starting: Starting, *, whole: bool
) -> asyncio.Future[m.ExecResult]:
    answer: asyncio.Future[m.ExecResult] = talk.endpoint.loop.create_future()

    def on_over(run: Run) -> None:
        scope.release(starting.name)
        if not answer.done():
            answer.set_result(_result(run, whole=whole))

    await _start(talk, COMMAND, scope, spec, terms, starting, on_over, answer.cancel)
    return answer


async def _start(
    talk: AppConversation,
    family: Family,
    scope: Scope[Run],
    spec: Spec,
    terms: Terms,
    starting: Starting,
    on_over: Callable[[Run], None],
    on_lost: Callable[[], object] = lambda: None,
) -> None:
    endpoint = talk.endpoint
    try:
        process = await spawning.start(endpoint.backend, spec, scope, starting)
    except SpawnFailed as failed:
        text = family.not_started(spawning.failure_text(failed))
        raise Failed(text, spawning.failure_data(failed)) from None
    except StartCancelled as cancelled:
        raise Failed(family.not_started(str(cancelled))) from None
    # From here to the answer nothing waits, so nothing can be told in between.
    run = Run(
        process,
        terms,
        valve=talk.valve,
        loop=endpoint.loop,
        tell=_teller(talk, family, starting.name),
        on_over=on_over,
        on_lost=on_lost,
    )
    scope.settle(starting, run)
    endpoint.telemetry.process_started()


def _teller(talk: AppConversation, family: Family, name: str) -> Callable[[Stream, bytes, bool], None]:
    if not talk.hears(family.delta):
        return lambda stream, data, full: None
    send = talk.client.send
    begin = b'{"method":"%b","params":{"%b":%b,"stream":"' % (
        family.delta.encode(),
        camel(family.field).encode(),
        _encode(name),
    )
    stdout, stderr = begin + b'stdout","deltaBase64":"', begin + b'stderr","deltaBase64":"'

    def tell(stream: Stream, data: bytes, full: bool) -> None:  # noqa: FBT001
        send(
            stderr if stream is Stream.STDERR else stdout,
            base64.encode(data),
            b'","capReached":%b},"emittedAtMs":%d}' % (b"true" if full else b"false", int(time() * 1000)),
        )

    return tell


def _check(family: Family, size: m.AnySize | None, timeout: int | None, *, terminal: bool) -> None:
    if size is not None and not terminal:
        raise BadRequest(family.size_without_terminal())
    if timeout is not None and timeout < 0:
        raise BadRequest(family.negative_timeout(timeout))
    if size is not None:
        _size(family, size)


def _size(family: Family, size: m.AnySize) -> Size:
    if not size.rows or not size.cols:
        raise BadRequest(family.no_size())
    return Size(size.rows, size.cols)


def _spec(params: m.SpawnParams | m.ExecParams, cwd: str, env: dict[str, str | None]) -> Spec:
    size = params.size
    terminal = None if not params.tty else Size() if size is None else Size(size.rows, size.cols)
    return Spec(
        argv=params.command,
        cwd=cwd,
        env=env,
        env_policy=_OWN_ENVIRONMENT,
        terminal=terminal,
        stdin=params.stream_stdin,
    )


def _terms(
    talk: AppConversation,
    params: m.SpawnParams | m.ExecParams,
    *,
    timeout: int | None,
    cap: int | None,
    quiet: float | None,
) -> Terms:
    limits = talk.endpoint.limits
    streamed = params.tty or params.stream_stdout_stderr
    if not streamed:
        cap = limits.buffered_bytes if cap is None else min(cap, limits.buffered_bytes)
    return Terms(
        terminal=params.tty,
        streamed=streamed,
        stdin=params.tty or params.stream_stdin,
        cap=cap,
        timeout=None if timeout is None else timeout / 1000,
        quiet=quiet,
        hard=limits.drain_seconds,
    )


def _directory(talk: AppConversation, cwd: str | None) -> str:
    """A command's directory; relative to the server's, and ``~`` is the user's home."""
    info = talk.endpoint.backend.info
    if cwd is None:
        return info.cwd
    if info.home is not None and (cwd == "~" or cwd.startswith("~/")):
        return info.home + cwd[1:]
    return os.path.join(info.cwd, cwd)


def _network(params: m.ExecParams) -> bool:
    """Whether the command may use the network, as far as its policy says so.

    Raises:
        Unsupported: The policy asks for a sandbox.
        Declined: It is none.
    """
    match params.sandbox_policy:
        case m.ReadOnly() | m.WorkspaceWrite():
            raise Unsupported("a sandbox (`sandboxPolicy`)")
        case m.ExternalSandbox(network_access=access):
            return access is m.NetworkAccess.ENABLED
    match params.permission_profile:
        case None | ":danger-full-access":
            return True
        case ":read-only" | ":workspace":
            raise Unsupported("a sandbox (`permissionProfile`)")
        case str(profile) if profile.startswith(":"):
            unknown = f"default_permissions refers to unknown built-in profile `{profile}`"
            raise Declined(f"invalid permission profile: {unknown}")
        case _:
            raise Declined("invalid permission profile: default_permissions requires a `[permissions]` table")


def _reserve(scope: Scope[Run], family: Family, name: str) -> Starting:
    try:
        return scope.reserve(name)
    except NameTaken:
        raise Declined(family.taken(name)) from None


# Results.


def _text(run: Run, capped: Capped) -> str:
    return decode(capped.kept(), cut=capped.full or run.torn)


def _exited(name: str, run: Run) -> m.ProcessExited:
    assert run.exit_code is not None
    return m.ProcessExited(
        process_handle=name,
        exit_code=run.exit_code,
        output_drain_timed_out=run.drain_timed_out,
        stdout=_text(run, run.stdout),
        stdout_cap_reached=run.stdout.full,
        stderr=_text(run, run.stderr),
        stderr_cap_reached=run.stderr.full,
    )


def _result(run: Run, *, whole: bool) -> m.ExecResult:
    """``whole`` if the client wanted everything: then it must be told if that is not what it gets."""
    assert run.exit_code is not None
    return m.ExecResult(
        exit_code=run.exit_code,
        stdout=_text(run, run.stdout),
        stderr=_text(run, run.stderr),
        stdout_cap_reached=True if whole and run.stdout.full else UNSET,
        stderr_cap_reached=True if whole and run.stderr.full else UNSET,
    )


# Control.


def write(
    family: Family, talk: AppConversation, params: m.ProcessWriteParams | m.CommandWriteParams
) -> Nothing | Coroutine[Any, Any, Nothing]:
    """Offer bytes to stdin, close it, or both."""
    if params.delta_base64 is None and not params.close_stdin:
        raise BadRequest(family.nothing_to_write())
    try:
        data = base64.decode(params.delta_base64 or "")
    except BadRequest as bad:
        raise BadRequest(f"invalid deltaBase64: {bad}") from None
    run = _find(talk, family, params)
    if not run.takes_stdin:
        raise Declined(family.no_stdin())
    if data and not run.stdin_open:
        raise Declined("stdin is already closed")
    if params.close_stdin:
        run.stdin_open = False
    status = run.process.try_write(data) if data else WriteStatus.ACCEPTED
    if status is None:
        return _write_later(run, data, close=params.close_stdin)
    return _written(run, status, close=params.close_stdin)


async def _write_later(run: Run, data: bytes, *, close: bool) -> Nothing:
    return _written(run, await run.process.write(data), close=close)


def _written(run: Run, status: WriteStatus, *, close: bool) -> Nothing:
    if close:
        run.process.close_stdin()
    if status is WriteStatus.STDIN_CLOSED:
        raise Declined("stdin is already closed")
    return Nothing()


def resize(
    family: Family, talk: AppConversation, params: m.ProcessResizeParams | m.CommandResizeParams
) -> Nothing:
    """Give a terminal another size."""
    size = _size(family, params.size)
    run = _find(talk, family, params)
    try:
        run.process.resize(size)
    except NoTerminal:
        raise Declined("failed to resize PTY: process is not attached to a PTY") from None
    return Nothing()


def kill(
    family: Family, talk: AppConversation, params: m.ProcessKillParams | m.CommandTerminateParams
) -> Nothing:
    """Kill a process; its result follows."""
    _find(talk, family, params).kill()
    return Nothing()


def _find(talk: AppConversation, family: Family, params: Any) -> Run:
    name = family.name(params)
    assert name is not None
    run = talk.scope(family).find(name)
    if run is None or isinstance(run, Starting):
        raise Declined(family.unknown(name))
    if run.exit_code is not None:
        raise Declined(family.over(name))
    return run


# The table.


def _method(family: Family, kind: type[T], handle: Callable[..., Any], **facts: Any) -> Method:
    def name_of(params: Any) -> str | None:
        # Names of the two families are apart, also while their processes start.
        name = family.name(params)
        return None if name is None else f"{family.noun} {name}"

    return Method(decode=partial(m.decode_params, kind=kind), handle=handle, name_of=name_of, **facts)


def _control(family: Family, kind: type[T], handle: Callable[..., Any], **facts: Any) -> Method:
    return _method(family, kind, partial(handle, family), **facts)


_TABLE = {
    "process/spawn": _method(PROCESS, m.SpawnParams, spawn, starts=True, waits=True),
    "process/writeStdin": _control(PROCESS, m.ProcessWriteParams, write, waits=True),
    "process/resizePty": _control(PROCESS, m.ProcessResizeParams, resize),
    "process/kill": _control(PROCESS, m.ProcessKillParams, kill),
    "command/exec": _method(COMMAND, m.ExecParams, execute, starts=True, waits=True),
    "command/exec/write": _control(COMMAND, m.CommandWriteParams, write, waits=True),
    "command/exec/resize": _control(COMMAND, m.CommandResizeParams, resize),
    "command/exec/terminate": _control(COMMAND, m.CommandTerminateParams, kill),
}

METHODS = {
    "initialize": Method(decode=partial(m.decode_params, kind=m.InitializeParams), handle=initialize),
    **{name: replace(method, family=name) for name, method in _TABLE.items()},
}
"""Every method but ``initialize`` goes by its own name in error texts."""
