"""What a request of either family to start something comes to: a process, its terms, its sandbox (pure).

The order of the checks is part of the protocol: it decides which of several
mistakes is told.
"""

from __future__ import annotations

import json
import os.path
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET

from holdfast.config import AppLimits
from holdfast.errors import BadRequest
from holdfast.model import PLAIN, EnvironmentPolicy, HostInfo, Inherit, ProcessTerms, Size, Spec
from holdfast.protocol.app import (
    AnySize,
    DangerFullAccess,
    ExecParams,
    ExternalSandbox,
    ReadOnly,
    SandboxPolicy,
    SpawnParams,
    WorkspaceWrite,
)
from holdfast.protocol.sandbox import NetworkAccess
from holdfast.sandbox import (
    READ_ALL,
    WRITE_ROOTS,
    WRITE_SLASH_TMP,
    WRITE_TMPDIR,
    Access,
    Sandbox,
    SandboxEntry,
)
from holdfast.value import replace, value
from holdfast.wire.serde import quote

from .explain import Declined

# The two families of methods, and how each speaks of its processes.


@value
class Family:
    """The words that differ between ``process/...`` and ``command/exec...``."""

    start: str
    """The method that starts one."""
    write: str
    """The method that writes to its stdin."""
    noun: str
    """What it is called when it runs."""
    thing: str
    """What it is called while it is started."""
    key: str
    """What its name is called."""
    field: str
    """The member of params that holds its name."""
    delta: str
    """The method of the notifications of its output."""
    quote: Callable[[str], str]
    """How its name is put in quotes."""

    def name(self, params: Any) -> str | None:
        """The process that a request is about."""
        name: str | None = getattr(params, self.field)
        return name

    def unknown(self, name: str) -> str:
        return f"no active {self.noun} for {self.key} {self.quote(name)}"

    def over(self, name: str) -> str:
        return f"{self.noun} {self.quote(name)} is no longer running"

    def no_stdin(self) -> str:
        return f"stdin streaming is not enabled for this {self.noun}"

    def taken(self, name: str) -> str:
        scope = "" if self.noun in self.key else f"{self.noun} "
        return f"duplicate active {scope}{self.key}: {self.quote(name)}"

    def no_size(self) -> str:
        return f"{self.noun} size rows and cols must be greater than 0"

    def size_without_terminal(self) -> str:
        return f"{self.start} size requires tty: true"

    def negative_timeout(self, value: int) -> str:
        return f"{self.start} timeoutMs must be non-negative, got {value}"

    def nothing_to_write(self) -> str:
        return f"{self.write} requires deltaBase64 or closeStdin"

    def not_started(self, reason: str) -> str:
        return f"failed to spawn {self.thing}: {reason}"


PROCESS = Family(
    start="process/spawn",
    write="process/writeStdin",
    noun="process",
    thing="process",
    key="process handle",
    field="process_handle",
    delta="process/outputDelta",
    quote=quote,
)

COMMAND = Family(
    start="command/exec",
    write="command/exec/write",
    noun="command/exec",
    thing="command",
    key="process id",
    field="process_id",
    delta="command/exec/outputDelta",
    quote=partial(json.dumps, ensure_ascii=False),
)


# What a command may do.

POLICIES: dict[str, SandboxPolicy] = {
    "read-only": ReadOnly(),
    "workspace-write": WorkspaceWrite(),
    "danger-full-access": DangerFullAccess(),
}
"""What a server can have as its own."""


def policy_of(params: ExecParams, info: HostInfo, cwd: str, default: str) -> tuple[Sandbox | None, bool]:
    """The sandbox of a command, and whether it may use the network.

    Args:
        cwd: The command's directory.
        default: The server's own policy, for a command that comes with none.

    Raises:
        Declined: There is no such profile.
    """
    match params.permission_profile:
        case None:
            return _sandbox(params.sandbox_policy or POLICIES[default], cwd, info.cwd)
        case ":read-only":
            return _sandbox(ReadOnly(), cwd, cwd)
        case ":workspace":
            return _sandbox(WorkspaceWrite(), cwd, cwd)
        case ":danger-full-access":
            return None, True
        case str(profile) if profile.startswith(":"):
            unknown = f"default_permissions refers to unknown built-in profile `{profile}`"
            raise Declined(f"invalid permission profile: {unknown}")
        case _:
            raise Declined("invalid permission profile: default_permissions requires a `[permissions]` table")


def _sandbox(policy: SandboxPolicy, cwd: str, root: str) -> tuple[Sandbox | None, bool]:
    match policy:
        case ReadOnly(network_access=network):
            return Sandbox((READ_ALL,), network, cwd), network
        case WorkspaceWrite(network_access=network):
            entries = [
                READ_ALL,
                WRITE_ROOTS,
                *(SandboxEntry(path, Access.WRITE) for path in policy.writable_roots),
            ]
            if not policy.exclude_slash_tmp:
                entries.append(WRITE_SLASH_TMP)
            if not policy.exclude_tmpdir_env_var:
                entries.append(WRITE_TMPDIR)
            return Sandbox(tuple(entries), network, cwd, roots=(root,)), network
        case ExternalSandbox(network_access=access):
            return None, access is NetworkAccess.ENABLED
        case _:
            return None, True


# What to start.

_DEFAULT_CAP = 1 << 20
_DEFAULT_TIMEOUT = 10_000

_OWN_ENVIRONMENT = EnvironmentPolicy(
    inherit=Inherit.ALL, ignore_default_excludes=True, exclude=(), set=(), include_only=()
)

_NO_NETWORK = "CODEX_SANDBOX_NETWORK_DISABLED"
"""Tells a command that the policy it runs under gives it no network."""


@value
class Terms:
    """What a client asked for, beyond the process itself."""

    terminal: bool
    streamed: bool
    """Output is told as it comes, instead of being kept for the result."""
    stdin: bool
    """The client may write to it."""
    cap: int | None
    """Bytes of each stream that are told or kept."""
    quiet: float | None
    """Seconds of silence after the exit that end the output; see ``Drain``."""
    hard: float
    """Seconds after the exit at which the output is over in any case."""


@value
class Order:
    """What to start, and on which terms."""

    spec: Spec
    terms: Terms
    whole: bool = False
    """The client wants more than we would keep, and must be told if that is not what it gets."""


def process(params: SpawnParams, limits: AppLimits) -> Order:
    """Read ``process/spawn``.

    Raises:
        Refused: It contradicts itself.
    """
    if not params.command:
        raise Declined("command must not be empty")
    if not params.process_handle:
        raise Declined("processHandle must not be empty")
    timeout = _DEFAULT_TIMEOUT if params.timeout_ms is UNSET else params.timeout_ms
    cap = _DEFAULT_CAP if params.output_bytes_cap is UNSET else params.output_bytes_cap
    _check_terminal(PROCESS, params)
    _check_timeout(PROCESS, timeout)
    return Order(
        _spec(PROCESS, params, params.cwd, params.env or {}, timeout),
        _terms(params, limits, cap=cap, quiet=limits.process_quiet_seconds),
    )


def command(params: ExecParams, info: HostInfo, limits: AppLimits) -> Order:
    """Read ``command/exec``.

    Raises:
        Refused: It contradicts itself, or asks for what we do not do.
    """
    if not params.command:
        raise Declined("command must not be empty")
    if params.permission_profile is not None and params.sandbox_policy is not None:
        raise Declined("`permissionProfile` cannot be combined with `sandboxPolicy`")
    _check_terminal(COMMAND, params)
    if params.disable_output_cap and params.output_bytes_cap is not None:
        raise BadRequest("command/exec cannot set both outputBytesCap and disableOutputCap")
    if params.disable_timeout and params.timeout_ms is not None:
        raise BadRequest("command/exec cannot set both timeoutMs and disableTimeout")
    timeout = _DEFAULT_TIMEOUT if params.timeout_ms is None else params.timeout_ms
    cap = _DEFAULT_CAP if params.output_bytes_cap is None else params.output_bytes_cap
    _check_timeout(COMMAND, timeout)
    env = dict(params.env or {})
    cwd = _directory(info, params.cwd)
    sandbox, network = policy_of(params, info, cwd, limits.command_policy)
    if not network:
        env.setdefault(_NO_NETWORK, "1")
    spec = _spec(COMMAND, params, cwd, env, None if params.disable_timeout else timeout)
    spec = replace(spec, sandbox=sandbox)
    if params.process_id is None and (params.tty or params.stream_stdin or params.stream_stdout_stderr):
        raise Declined("command/exec tty or streaming requires a client-supplied processId")
    terms = _terms(
        params,
        limits,
        cap=None if params.disable_output_cap else cap,
        quiet=limits.command_quiet_seconds,
    )
    return Order(spec, terms, whole=params.disable_output_cap or terms.cap != cap)


def _check_terminal(family: Family, params: SpawnParams | ExecParams) -> None:
    if params.size is not None and not params.tty:
        raise BadRequest(family.size_without_terminal())


def _check_timeout(family: Family, timeout: int | None) -> None:
    if timeout is not None and timeout < 0:
        raise BadRequest(family.negative_timeout(timeout))


def size(family: Family, size: AnySize | None) -> Size:
    """The size of a terminal."""
    if size is None:
        return Size()
    if not size.rows or not size.cols:
        raise BadRequest(family.no_size())
    return Size(size.rows, size.cols)


def _spec(
    family: Family,
    params: SpawnParams | ExecParams,
    cwd: str,
    env: dict[str, str | None],
    timeout: int | None,
) -> Spec:
    return Spec(
        argv=params.command,
        cwd=cwd,
        env=env,
        env_policy=_OWN_ENVIRONMENT,
        terminal=size(family, params.size) if params.tty else None,
        stdin=params.stream_stdin,
        terms=PLAIN if timeout is None else ProcessTerms(timeout=timeout / 1000),
        name=family.name(params) or "",
    )


def _terms(
    params: SpawnParams | ExecParams,
    limits: AppLimits,
    *,
    cap: int | None,
    quiet: float | None,
) -> Terms:
    streamed = params.tty or params.stream_stdout_stderr
    if not streamed:
        cap = limits.buffered_bytes if cap is None else min(cap, limits.buffered_bytes)
    return Terms(
        terminal=params.tty,
        streamed=streamed,
        stdin=params.tty or params.stream_stdin,
        cap=cap,
        quiet=quiet,
        hard=limits.drain_seconds,
    )


def _directory(info: HostInfo, cwd: str | None) -> str:
    """A command's directory; relative to the server's, and ``~`` is the user's home."""
    if cwd is None:
        return info.cwd
    if info.home is not None and (cwd == "~" or cwd.startswith("~/")):
        return info.home + cwd[1:]
    return os.path.join(info.cwd, cwd)
