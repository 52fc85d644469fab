"""The app dialects on the wire: requests, answers and notifications (pure)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.wire.serde import Words

from .sandbox import NetworkAccess
from .shapes import I64, U16, Nothing, Params, Shape, Signature, Undecodable, Usize, decoded

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


class ClientInfo(Params):
    wire_name = "ClientInfo"

    name: str
    version: str
    title: str | None = None


class AppCapabilities(Params):
    """What the client can do and wants; members that concern other products are passed over."""

    wire_name = "InitializeCapabilities"

    experimental_api: bool = False
    """Needed for ``process/...`` and for ``permissionProfile``."""
    opt_out_notification_methods: list[str] | None = None
    """Notifications that are not to be sent."""


class AppInitializeParams(Params):
    wire_name = "InitializeParams"

    client_info: ClientInfo
    capabilities: AppCapabilities | None = None


class AppInitializeResult(Shape):
    user_agent: str
    """Server, host and client, in one line."""
    codex_home: str
    """A directory of the server's user; nothing is kept there."""
    platform_family: str = "unix"
    """``unix``."""
    platform_os: str = "linux"
    """``linux``."""


# Processes.


class ProcessSize(Params):
    wire_name = "ProcessTerminalSize"

    rows: U16
    cols: U16


class SpawnParams(Params):
    wire_name = "ProcessSpawnParams"

    command: list[str]
    """Program and arguments."""
    process_handle: str
    """The client's name for the process, within its connection; not empty."""
    cwd: AbsolutePath
    """An absolute path."""
    tty: bool = False
    """A terminal instead of pipes; its output is streamed and it can be written to."""
    stream_stdin: bool = False
    """Let the client write to stdin."""
    stream_stdout_stderr: bool = False
    """Tell output as it comes, instead of with the result."""
    output_bytes_cap: Usize | UnsetType | None = UNSET
    """In bytes per stream; 1 MiB if absent, null for no cap."""
    timeout_ms: I64 | UnsetType | None = UNSET
    """In milliseconds; 10,000 if absent, null for no timeout."""
    env: dict[str, str | None] | None = None
    """Laid over the server's environment; null takes a variable away."""
    size: ProcessSize | None = None
    """Of the terminal; 24 rows and 80 columns if absent or null."""

    def __post_init__(self) -> None:
        _check_range(self.output_bytes_cap, self.timeout_ms)


class ProcessWriteParams(Params):
    wire_name = "ProcessWriteStdinParams"

    process_handle: str
    delta_base64: str | None = msgspec.field(default=None, name="deltaBase64")
    """Bytes for stdin, in base64 with padding."""
    close_stdin: bool = False
    """End-of-file, after the bytes."""


class ProcessResizeParams(Params):
    wire_name = "ProcessResizePtyParams"

    process_handle: str
    size: ProcessSize


class ProcessKillParams(Params):
    wire_name = "ProcessKillParams"

    process_handle: str


class AppProcessExited(Shape):
    """A process is over; its name can be used again."""

    process_handle: str
    exit_code: int
    """128 + n after death by signal n; 124 after the timeout."""
    output_drain_timed_out: bool
    """Whether the output was cut short because somebody held it open."""
    stdout: str
    """As text, up to the cap; empty if it was streamed."""
    stdout_cap_reached: bool
    """Whether the cap is reached."""
    stderr: str
    """What came on stderr; empty with a terminal."""
    stderr_cap_reached: bool
    """Whether stderr had more than the cap allows."""


class ProcessDelta(Shape):
    """Streamed output of a process."""

    process_handle: str
    stream: str
    """``stdout`` or ``stderr``; a terminal has ``stdout`` only."""
    delta_base64: str = msgspec.field(name="deltaBase64")
    """The bytes, in base64."""
    cap_reached: bool
    """Nothing of this stream follows: the cap is reached."""


# Commands.


class CommandSize(Params):
    wire_name = "CommandExecTerminalSize"

    rows: U16
    cols: U16


AnySize = ProcessSize | CommandSize


class Policy(Params, tag_field="type"):
    """What a command may do; ``type`` says which of them it is."""

    wire_union: ClassVar[str] = "SandboxPolicyDeserialize"


class DangerFullAccess(Policy, tag="dangerFullAccess"):
    """Everything: no sandbox."""


class ReadOnly(Policy, tag="readOnly"):
    network_access: bool = False


class ExternalSandbox(Policy, tag="externalSandbox"):
    """The client says that another sandbox is around the server already."""

    network_access: NetworkAccess = NetworkAccess.RESTRICTED


class WorkspaceWrite(Policy, tag="workspaceWrite"):
    writable_roots: list[AbsolutePath] = msgspec.field(default_factory=list)
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


SandboxPolicy = DangerFullAccess | ReadOnly | ExternalSandbox | WorkspaceWrite


class ExecParams(Params):
    wire_name = "CommandExecParams"

    command: list[str]
    """Program and arguments."""
    process_id: str | None = None
    """The client's name for it, within its connection; needed for ``tty`` and streaming."""
    tty: bool = False
    """A terminal instead of pipes; its output is streamed and it can be written to."""
    stream_stdin: bool = False
    """Let the client write to stdin."""
    stream_stdout_stderr: bool = False
    """Tell output as it comes, instead of with the result."""
    output_bytes_cap: Usize | None = None
    """In bytes per stream; 1 MiB if absent or null."""
    disable_output_cap: bool = False
    """No cap; not together with ``outputBytesCap``."""
    disable_timeout: bool = False
    """No timeout; not together with ``timeoutMs``."""
    timeout_ms: I64 | None = None
    """In milliseconds; 10,000 if absent or null."""
    cwd: AnyPath | None = None
    """Relative to the server's directory; ``~`` is the home of its user."""
    env: dict[str, str | None] | None = None
    """Laid over the server's environment; null takes a variable away."""
    size: CommandSize | None = None
    """Of the terminal; 24 rows and 80 columns if absent or null."""
    sandbox_policy: SandboxPolicy | None = None
    """What it may do; without one, and without a profile, what the server's ``--command-sandbox`` says."""
    permission_profile: str | None = None
    """``:read-only``, ``:workspace`` or ``:danger-full-access``; not together with ``sandboxPolicy``."""

    def __post_init__(self) -> None:
        _check_range(self.output_bytes_cap, self.timeout_ms)


class CommandWriteParams(Params):
    wire_name = "CommandExecWriteParams"

    process_id: str
    delta_base64: str | None = msgspec.field(default=None, name="deltaBase64")
    """Bytes for stdin, in base64 with padding."""
    close_stdin: bool = False
    """End-of-file, after the bytes."""


class CommandResizeParams(Params):
    wire_name = "CommandExecResizeParams"

    process_id: str
    size: CommandSize


class CommandTerminateParams(Params):
    wire_name = "CommandExecTerminateParams"

    process_id: str


class ExecResult(Shape):
    exit_code: int
    """128 + n after death by signal n; 124 after the timeout."""
    stdout: str
    """As text, up to the cap; empty if it was streamed."""
    stderr: str
    """What came on stderr; empty with a terminal."""
    stdout_cap_reached: bool | UnsetType = UNSET
    """Present and true if output was cut below what the client had asked for."""
    stderr_cap_reached: bool | UnsetType = UNSET
    """Present and true if stderr was cut below what the client had asked for."""


class CommandDelta(Shape):
    """Streamed output of a command."""

    process_id: str
    stream: str
    """``stdout`` or ``stderr``; a terminal has ``stdout`` only."""
    delta_base64: str = msgspec.field(name="deltaBase64")
    """The bytes, in base64."""
    cap_reached: bool
    """Nothing of this stream follows: the cap is reached."""


INITIALIZE = Signature("initialize", AppInitializeParams, AppInitializeResult)
SPAWN = Signature("process/spawn", SpawnParams, Nothing)
WRITE_STDIN = Signature("process/writeStdin", ProcessWriteParams, Nothing)
RESIZE_PTY = Signature("process/resizePty", ProcessResizeParams, Nothing)
KILL = Signature("process/kill", ProcessKillParams, Nothing)
EXEC = Signature("command/exec", ExecParams, ExecResult)
EXEC_WRITE = Signature("command/exec/write", CommandWriteParams, Nothing)
EXEC_RESIZE = Signature("command/exec/resize", CommandResizeParams, Nothing)
EXEC_TERMINATE = Signature("command/exec/terminate", CommandTerminateParams, Nothing)


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
