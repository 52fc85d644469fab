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
    resume_session_id: str | None = None


class Metadata(Shape):
    """Labels that the client's own records use; we only check them."""

    wire_name = "ExecMetadata"

    thread_id: UuidText | None = None
    tool_call_id: str | None = None

    def __post_init__(self) -> None:
        if self.thread_id is not None:
            try:
                _read_uuid(self.thread_id)
            except BadRequest as bad:
                raise ValueError(str(bad)) from None


class InheritMode(Enum):
    """In the order in which error texts list them."""

    CORE = "core"
    ALL = "all"
    NONE = "none"


class EnvPolicy(Shape):
    wire_name = "ExecEnvPolicy"

    inherit: InheritMode
    ignore_default_excludes: bool
    exclude: list[str]
    set: dict[str, str]
    include_only: list[str]


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
    argv: list[str]
    cwd: PathText
    env: dict[str, str]
    tty: bool
    metadata: Metadata | None = None
    env_policy: EnvPolicy | None = None
    shell_snapshot: ShellSnapshot | None = None
    pipe_stdin: bool = False
    arg0: str | None = None
    sandbox: Sandbox | None = None
    enforce_managed_network: bool = False
    managed_network: ManagedNetwork | None = None
    network_proxy: NetworkProxy | None = None


class ReadParams(Shape):
    wire_name = "ReadParams"

    process_id: str
    after_seq: U64 | None = None
    max_bytes: Usize | None = None
    wait_ms: U64 | None = None

    def __post_init__(self) -> None:
        # The decoder's own bounds end at 63 bits.
        if max(self.after_seq or 0, self.max_bytes or 0, self.wait_ms or 0) >= 2**64:
            raise ValueError("invalid number")


class WriteParams(Shape):
    wire_name = "WriteParams"

    process_id: str
    chunk: Base64Text
    write_id: str


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
    executor_version: str
    provider_id: str
    cwd: str
    user_home_dir: str | UnsetType
    platform_os: str
    prepend_path_dirs: list[str]
    temporary_directories: list[str]
    temp_dir: str
    capabilities: Capabilities


class StatusResult(Shape):
    status: str = "ready"


class StartResult(Shape):
    process_id: str
    sandbox_type: str = "none"


class WriteResult(Shape):
    status: str


class TerminateResult(Shape):
    running: bool


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
