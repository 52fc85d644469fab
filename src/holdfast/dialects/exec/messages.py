"""The shapes of the exec dialect on the wire; camelCase lives here and nowhere else (pure)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.dialects import base64, paths
from holdfast.dialects.shapes import U16, U64, Shape, Usize, decoded
from holdfast.errors import BadRequest
from holdfast.model import Stream


def _checked(read: Callable[[str], Any]) -> Meta:
    """Text that must also make sense to ``read``; what it says is a matter of order, too."""

    def complain(text: str) -> str | None:
        try:
            read(text)
        except BadRequest as bad:
            return str(bad)
        return None

    return Meta(extra={"complain": complain})


def _read_uuid(text: str) -> None:
    body = text.removeprefix("urn:uuid:")
    for at, char in enumerate(body, 1):
        if char not in "0123456789abcdefABCDEF-":
            raise BadRequest(
                "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], "
                f"found `{char}` at {at}"
            )
    groups = body.split("-")
    if len(groups) == 1:
        if len(body) != 32:
            raise BadRequest(f"invalid length: expected length 32 for simple format, found {len(body)}")
        return
    if len(groups) != 5:
        raise BadRequest(f"invalid group count: expected 5, found {len(groups)}")
    for index, (group, length) in enumerate(zip(groups, (8, 4, 4, 4, 12), strict=True)):
        if len(group) != length:
            raise BadRequest(f"invalid group length in group {index}: expected {length}, found {len(group)}")


PathText = Annotated[str, _checked(paths.parse)]
Base64Text = Annotated[str, _checked(base64.decode)]
UuidText = Annotated[str, _checked(_read_uuid)]


# Params.


class InitializeParams(Shape):
    wire_name = "InitializeParams"

    client_name: str
    """What the client calls itself; for the record."""
    resume_session_id: str | None = None
    """The session to resume; null opens a new one."""


class Metadata(Shape):
    """Labels that the client's own records use; we only check them."""

    wire_name = "ExecMetadata"

    thread_id: UuidText | None = None
    """A UUID."""
    tool_call_id: str | None = None

    def __post_init__(self) -> None:
        if self.thread_id is not None:
            try:
                _read_uuid(self.thread_id)
            except BadRequest as bad:
                raise ValueError(str(bad)) from None


class InheritMode(Enum):
    """Which of the server's variables a child starts from."""

    # In the order in which error texts list them.
    CORE = "core"
    """PATH, SHELL, HOME, the names of the user, the language and the temporary directory."""
    ALL = "all"
    NONE = "none"


class EnvPolicy(Shape):
    wire_name = "ExecEnvPolicy"

    inherit: InheritMode
    """Which of the server's variables the child starts from."""
    ignore_default_excludes: bool
    """Do not take away what matches ``*KEY*``, ``*SECRET*`` or ``*TOKEN*``."""
    exclude: list[str]
    """Patterns of names to take away."""
    set: dict[str, str]
    """Variables to add."""
    include_only: list[str]
    """Patterns of names to keep; empty keeps all."""


class ManagedNetwork(Shape):
    wire_name = "ManagedNetworkSandboxContext"

    loopback_ports: list[U16] = msgspec.field(default_factory=list)
    allow_local_binding: bool = False


class Sandbox(Shape):
    """Whatever is in it: it is refused as a whole."""

    wire_name = "WireFileSystemSandboxContext"


class NetworkProxy(Shape):
    """Whatever is in it: it is refused as a whole."""

    wire_name = "RemoteNetworkProxyLaunchConfig"


class ShellSnapshot(Shape):
    """Whatever is in it: it is refused as a whole."""

    wire_name = "ShellSnapshotRequest"


class StartParams(Shape):
    wire_name = "WireExecParams"

    process_id: str
    """The client's name for the process, within its session."""
    argv: list[str]
    """Program and arguments; a bare name is looked up in ``PATH`` of the child."""
    cwd: PathText
    """A ``file:`` URI; must be a directory."""
    env: dict[str, str]
    """The child's variables, or what is laid over those of ``envPolicy``."""
    tty: bool
    """A terminal of 24 rows and 80 columns instead of pipes."""
    metadata: Metadata | None = None
    """Labels; checked and not used."""
    env_policy: EnvPolicy | None = None
    """What the child inherits; without one, nothing."""
    shell_snapshot: ShellSnapshot | None = None
    """Refused unless null."""
    pipe_stdin: bool = False
    """A pipe as stdin; otherwise ``/dev/null``.  A terminal is always writable."""
    arg0: str | None = None
    """What the child sees as its own name; the program that runs stays ``argv[0]``."""
    sandbox: Sandbox | None = None
    """Refused unless null."""
    enforce_managed_network: bool = False
    """Refused unless false."""
    managed_network: ManagedNetwork | None = None
    """Checked and not used."""
    network_proxy: NetworkProxy | None = None
    """Refused unless null."""


class ReadParams(Shape):
    wire_name = "ReadParams"

    process_id: str
    after_seq: U64 | None = None
    """Only chunks with a higher number; null is 0."""
    max_bytes: Usize | None = None
    """Stop before the chunk that would go over it; the first is given whatever its size."""
    wait_ms: U64 | None = None
    """Hold an empty answer back for so long, until there is output, exit or close; null is 0."""

    def __post_init__(self) -> None:
        # The decoder's own bounds end at 63 bits.
        if max(self.after_seq or 0, self.max_bytes or 0, self.wait_ms or 0) >= 2**64:
            raise ValueError("invalid number")


class WriteParams(Shape):
    wire_name = "WriteParams"

    process_id: str
    chunk: Base64Text
    """The bytes, in base64 with padding."""
    write_id: str
    """Not empty; the same one is written once.  The last 4,096 accepted ones are remembered."""


class SignalName(Enum):
    INTERRUPT = "interrupt"


class SignalParams(Shape):
    wire_name = "SignalParams"

    process_id: str
    signal: SignalName


class TerminateParams(Shape):
    wire_name = "TerminateParams"

    process_id: str


# Results.


class InitializeResult(Shape):
    session_id: str
    """Name it in ``resumeSessionId`` to come back."""
    environment_info: EnvironmentInfo


class ShellInfo(Shape):
    name: str
    path: str


class Capabilities(Shape):
    """What this server can do beyond processes; true only if it works."""

    network_proxy_launch: bool = False
    network_proxy_review_domains: bool = False
    credential_masking: bool = False
    credential_masking_custom_providers: bool = False
    capability_discovery_sandbox: bool = False
    fs_watch_missing: bool = False
    capability_discovery_v2: bool = msgspec.field(default=False, name="capabilityDiscoveryV2")
    environment_config_read: bool = False
    http_header_env_vars: bool = False
    sandboxed_file_streaming: bool = False
    file_write_streaming: bool = False
    shell_snapshot_v2: bool = msgspec.field(default=False, name="shellSnapshotV2")
    windows_mxc: bool = False
    linux_root_write_preserves_devices: bool = False
    linux_approved_root_write_preserves_restrictions: bool = False


class EnvironmentInfo(Shape):
    shell: ShellInfo
    """The login shell of the server's user."""
    executor_version: str
    """The version of holdfast."""
    provider_id: str
    """``sha256:HEX``, the same for as long as the host's installation."""
    cwd: str
    """URI of the server's directory."""
    user_home_dir: str | UnsetType
    """URI; absent if there is none."""
    platform_os: str
    """``linux``."""
    prepend_path_dirs: list[str]
    """Empty."""
    temporary_directories: list[str]
    """URIs, from the server's ``TMPDIR``; empty if it is not set."""
    temp_dir: str
    """URI of the directory for temporary files."""
    capabilities: Capabilities
    """Optional features; all false in this version."""


class StatusResult(Shape):
    status: str = "ready"
    """``ready``."""


class StartResult(Shape):
    process_id: str
    sandbox_type: str = "none"
    """``none``."""


class WriteResult(Shape):
    status: str
    """``accepted``, ``stdinClosed``, ``unknownProcess`` or ``starting``."""


class TerminateResult(Shape):
    running: bool
    """Whether there was something to end."""


# Put together from bytes where they are sent; these say what the bytes are.


class OutputChunk(Shape):
    """Bytes of one stream, with their number."""

    seq: U64
    stream: Stream
    chunk: Base64Text
    """The bytes, in base64."""


class ReadResult(Shape):
    chunks: list[OutputChunk]
    """What is kept, in order."""
    next_seq: U64
    """With ``maxBytes`` and chunks: one more than the last chunk.  Otherwise the number of the next event."""
    exited: bool
    """Whether the process has ended."""
    exit_code: int | None
    """128 + n after death by signal n; null while the process runs."""
    closed: bool
    """Whether its output has ended too."""
    failure: str | None
    """Null."""
    sandbox_denied: bool
    """False."""


class ProcessOutput(Shape):
    """A process has written something."""

    process_id: str
    seq: U64
    """Output, exit and close of a process share one gapless series of numbers."""
    stream: Stream
    chunk: Base64Text
    """The bytes, in base64; at most 64 KiB of them."""


class ProcessExited(Shape):
    """A process has ended; output may follow that somebody else writes."""

    process_id: str
    seq: U64
    exit_code: int
    """128 + n after death by signal n."""
    sandbox_denied: bool
    """False."""


class ProcessClosed(Shape):
    """A process has ended and so has its output: nothing follows."""

    process_id: str
    seq: U64


# Decoding.


class Start(msgspec.Struct):
    """``process/start`` with its directory read."""

    params: StartParams
    cwd: paths.PathUri


def decode_start(value: Any) -> Start:
    params = decoded(value, StartParams)
    return Start(params, paths.parse(params.cwd))


class Write(msgspec.Struct):
    """``process/write`` with its bytes decoded."""

    process_id: str
    data: bytes
    write_id: str


def decode_write(value: Any) -> Write:
    try:
        params = msgspec.convert(value, WriteParams)
    except msgspec.ValidationError:
        params = decoded(value, WriteParams)
    return Write(params.process_id, base64.decode(params.chunk), params.write_id)


def decode_unit(value: Any) -> None:
    """Params of a method that takes none: absent, null or ``{}``."""
    if value is not None and value != {}:
        decoded(value, type(None))


def optional(value: str | None) -> str | UnsetType:
    """A member that is left out when there is nothing to say."""
    return UNSET if value is None else value
