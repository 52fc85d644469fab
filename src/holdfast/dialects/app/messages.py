"""The shapes of the app dialects on the wire; camelCase lives here and nowhere else (pure)."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.dialects.shapes import I64, U16, Shape, Undecodable, Usize, decoded
from holdfast.wire.complaint import Words

T = TypeVar("T")

_RELATIVE = "AbsolutePathBuf deserialized without a base path"

AnyPath = Annotated[str, Meta(extra={"expects": "path string"})]
AbsolutePath = Annotated[
    str,
    Meta(
        pattern="^/",
        extra={"expects": "path string", "complain": lambda path: None if path[:1] == "/" else _RELATIVE},
    ),
]


# The handshake.


class ClientInfo(Shape):
    wire_name = "ClientInfo"

    name: str
    version: str
    title: str | None = None


class Capabilities(Shape):
    """What the client can do and wants; members that concern other products are passed over."""

    wire_name = "InitializeCapabilities"

    experimental_api: bool = False
    opt_out_notification_methods: list[str] | None = None


class InitializeParams(Shape):
    wire_name = "InitializeParams"

    client_info: ClientInfo
    capabilities: Capabilities | None = None


class InitializeResult(Shape):
    user_agent: str
    codex_home: str
    platform_family: str = "unix"
    platform_os: str = "linux"


# Processes.


class ProcessSize(Shape):
    wire_name = "ProcessTerminalSize"

    rows: U16
    cols: U16


class SpawnParams(Shape):
    wire_name = "ProcessSpawnParams"

    command: list[str]
    process_handle: str
    cwd: AbsolutePath
    tty: bool = False
    stream_stdin: bool = False
    stream_stdout_stderr: bool = False
    output_bytes_cap: Usize | UnsetType | None = UNSET
    """In bytes per stream; null for no cap."""
    timeout_ms: I64 | UnsetType | None = UNSET
    """In milliseconds; null for no timeout."""
    env: dict[str, str | None] | None = None
    """Laid over the server's environment; null takes a variable away."""
    size: ProcessSize | None = None

    def __post_init__(self) -> None:
        _check_range(self.output_bytes_cap, self.timeout_ms)


class ProcessWriteParams(Shape):
    wire_name = "ProcessWriteStdinParams"

    process_handle: str
    delta_base64: str | None = msgspec.field(default=None, name="deltaBase64")
    close_stdin: bool = False


class ProcessResizeParams(Shape):
    wire_name = "ProcessResizePtyParams"

    process_handle: str
    size: ProcessSize


class ProcessKillParams(Shape):
    wire_name = "ProcessKillParams"

    process_handle: str


class ProcessExited(Shape):
    process_handle: str
    exit_code: int
    output_drain_timed_out: bool
    stdout: str
    stdout_cap_reached: bool
    stderr: str
    stderr_cap_reached: bool


class ProcessDelta(Shape):
    process_handle: str
    stream: str
    delta_base64: str = msgspec.field(name="deltaBase64")
    cap_reached: bool


# Commands.


class CommandSize(Shape):
    wire_name = "CommandExecTerminalSize"

    rows: U16
    cols: U16


AnySize = ProcessSize | CommandSize


class NetworkAccess(Enum):
    RESTRICTED = "restricted"
    ENABLED = "enabled"


class Policy(Shape, tag_field="type"):
    """What a command may do; ``type`` says which of them it is."""

    wire_union: ClassVar[str] = "SandboxPolicyDeserialize"


class DangerFullAccess(Policy, tag="dangerFullAccess"):
    """Everything: no sandbox."""


class ReadOnly(Policy, tag="readOnly"):
    network_access: bool = False


class ExternalSandbox(Policy, tag="externalSandbox"):
    """Somebody else's sandbox is around us already."""

    network_access: NetworkAccess = NetworkAccess.RESTRICTED


class WorkspaceWrite(Policy, tag="workspaceWrite"):
    writable_roots: list[AbsolutePath] = msgspec.field(default_factory=list)
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


SandboxPolicy = DangerFullAccess | ReadOnly | ExternalSandbox | WorkspaceWrite


class ExecParams(Shape):
    wire_name = "CommandExecParams"

    command: list[str]
    process_id: str | None = None
    tty: bool = False
    stream_stdin: bool = False
    stream_stdout_stderr: bool = False
    output_bytes_cap: Usize | None = None
    disable_output_cap: bool = False
    disable_timeout: bool = False
    timeout_ms: I64 | None = None
    cwd: AnyPath | None = None
    env: dict[str, str | None] | None = None
    size: CommandSize | None = None
    sandbox_policy: SandboxPolicy | None = None
    permission_profile: str | None = None

    def __post_init__(self) -> None:
        _check_range(self.output_bytes_cap, self.timeout_ms)


class CommandWriteParams(Shape):
    wire_name = "CommandExecWriteParams"

    process_id: str
    delta_base64: str | None = msgspec.field(default=None, name="deltaBase64")
    close_stdin: bool = False


class CommandResizeParams(Shape):
    wire_name = "CommandExecResizeParams"

    process_id: str
    size: CommandSize


class CommandTerminateParams(Shape):
    wire_name = "CommandExecTerminateParams"

    process_id: str


class ExecResult(Shape):
    exit_code: int
    stdout: str
    stderr: str
    stdout_cap_reached: bool | UnsetType = UNSET
    """Present and true if output was cut although the client had asked for all of it."""
    stderr_cap_reached: bool | UnsetType = UNSET


class CommandDelta(Shape):
    process_id: str
    stream: str
    delta_base64: str = msgspec.field(name="deltaBase64")
    cap_reached: bool


# Decoding.


def _check_range(cap: int | UnsetType | None, timeout: int | UnsetType | None) -> None:
    # The decoder's own bounds end at 63 bits.
    if isinstance(cap, int) and cap >= 2**64:
        raise ValueError("invalid number")
    if isinstance(timeout, int) and not -(2**63) <= timeout < 2**63:
        raise ValueError("invalid number")


def decode_params(value: Any, kind: type[T]) -> T:
    """Params as a ``kind``, or the complaint in the reference's words."""
    if value is None:
        raise Undecodable("missing field `params`")
    return decoded(value, kind, Words.FULL)
