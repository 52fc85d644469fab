"""What clients of the exec dialect say, as shapes; their camelCase lives here and nowhere else (pure)."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from holdfast.dialects import base64, paths
from holdfast.dialects.shapes import U16, U64, Shape, Usize, camel, decoded

from .sandboxing import SandboxContext
from .texts import Base64Text, PathText, UuidText, check_uuid, within_u64


class InitializeParams(Shape):
    wire_name = "InitializeParams"

    client_name: str
    """What the client calls itself; for the record."""
    resume_session_id: str | None = None
    """The session to resume; null opens a new one."""
    holdfast: U64 | None = None
    """The version of the extensions that the client knows: 1.  It is then told all that they have to tell."""

    def __post_init__(self) -> None:
        within_u64(self.holdfast)


class Metadata(Shape):
    """Labels that the client's own records use; we only check them."""

    wire_name = "ExecMetadata"

    thread_id: UuidText | None = None
    """A UUID."""
    tool_call_id: str | None = None

    def __post_init__(self) -> None:
        check_uuid(self.thread_id)


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


class NetworkProxy(Shape):
    """Whatever is in it: it is refused as a whole."""

    wire_name = "RemoteNetworkProxyLaunchConfig"


class ShellSnapshot(Shape):
    """Whatever is in it: it is refused as a whole."""

    wire_name = "ShellSnapshotRequest"


class TerminalSize(Shape):
    """Rows and columns of characters, at least 1 each."""

    wire_name = "TerminalSize"

    rows: U16
    cols: U16


class ResourceLimits(Shape):
    """What a process and everything it starts may use together; at least 1 each."""

    wire_name = "ResourceLimits"

    memory_bytes: U64 | None = None
    cpu_seconds: U64 | None = None
    processes: U64 | None = None
    """At once, the first included."""
    open_files: U64 | None = None
    """Of each process."""

    def __post_init__(self) -> None:
        within_u64(self.memory_bytes, self.cpu_seconds, self.processes, self.open_files)

    def values(self) -> dict[str, int]:
        """The limits that were given, by their names on the wire."""
        return {
            camel(name): value for name, value in msgspec.structs.asdict(self).items() if value is not None
        }


class StartParams(Shape):
    wire_name = "WireExecParams"

    process_id: str
    """The client's name for the process, within its session."""
    argv: list[str]
    """Program and arguments; a bare name is looked up in ``PATH`` of the child."""
    cwd: PathText
    """A ``file:`` URI or a native absolute path; must be a directory."""
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
    sandbox: SandboxContext | None = None
    """What it may do; null: everything."""
    enforce_managed_network: bool = False
    """Refused unless false."""
    managed_network: ManagedNetwork | None = None
    """Checked and not used."""
    network_proxy: NetworkProxy | None = None
    """Refused unless null."""
    size: TerminalSize | None = None
    """The terminal's; only with ``tty``."""
    timeout_ms: U64 | None = None
    """End it after so long."""
    idle_timeout_ms: U64 | None = None
    """End it when it has neither said nor been given anything for so long."""
    grace_ms: U64 | None = None
    """When it is ended for one of these reasons: SIGTERM first, and the end so much later."""
    drain_ms: U64 | None = None
    """Close its output so long after its exit, whoever holds it open."""
    retain_bytes: U64 | None = None
    """Output to keep, instead of 1 MiB."""
    output_bytes_limit: U64 | None = None
    """End it when it has said more."""
    limits: ResourceLimits | None = None
    """What it may use."""
    idempotent: bool = False
    """If this very request was made before, answer with the process that it started."""
    window: U64 | None = None
    """Read only so many bytes ahead of what the client has acknowledged; at most 64 MiB."""
    keep: bool = False
    """It belongs to no client: everybody can reach it, nobody is told of it, and it outlives the session."""

    def __post_init__(self) -> None:
        within_u64(
            self.window,
            self.timeout_ms,
            self.idle_timeout_ms,
            self.grace_ms,
            self.drain_ms,
            self.retain_bytes,
            self.output_bytes_limit,
        )


class ReadParams(Shape):
    wire_name = "ReadParams"

    process_id: str
    after_seq: U64 | None = None
    """Only chunks with a higher number; null is 0.  The others are acknowledged by it."""
    max_bytes: Usize | None = None
    """Stop before the chunk that would go over it; the first is given whatever its size."""
    wait_ms: U64 | None = None
    """Hold an empty answer back for so long, until there is output, exit or close; null is 0."""

    def __post_init__(self) -> None:
        within_u64(self.after_seq, self.max_bytes, self.wait_ms)


class WriteParams(Shape):
    wire_name = "WriteParams"

    process_id: str
    chunk: Base64Text
    """The bytes, in base64 with padding."""
    write_id: str | None = None
    """Not empty; the same one is written once.  The last 4,096 accepted ones are remembered.  Without
    one (clients up to 0.140 send none) the bytes are written, and a retry would write them again."""


class SignalName(Enum):
    INTERRUPT = "interrupt"
    TERMINATE = "terminate"
    KILL = "kill"
    """Needs ``tree``, or a client that knows the extensions: others are told that it does not exist."""
    HANGUP = "hangup"
    QUIT = "quit"
    USER1 = "user1"
    USER2 = "user2"
    STOP = "stop"
    CONTINUE = "continue"


class SignalParams(Shape):
    wire_name = "SignalParams"

    process_id: str
    signal: SignalName
    tree: bool | None = None
    """To everybody that it has started, instead of its process group."""


class AckParams(Shape):
    wire_name = "AckParams"

    process_id: str
    seq: U64 | None = None
    """The client has everything up to this number; null: nothing that it had not before."""
    release: bool = False
    """Hold the process no longer, whatever is acknowledged from now on."""

    def __post_init__(self) -> None:
        within_u64(self.seq)


class TerminateParams(Shape):
    wire_name = "TerminateParams"

    process_id: str
    grace_ms: U64 | None = None
    """SIGTERM first, and the end so much later.  If given, what an exited one left behind is ended too."""

    def __post_init__(self) -> None:
        within_u64(self.grace_ms)


class WaitParams(Shape):
    wire_name = "WaitParams"

    process_id: str
    wait_ms: U64 | None = None
    """Wait so long for the exit; null is 0."""

    def __post_init__(self) -> None:
        within_u64(self.wait_ms)


class CloseStdinParams(Shape):
    wire_name = "CloseStdinParams"

    process_id: str
    write_id: str | None = None
    """An identifier that is sent again takes effect once, as with ``process/write``."""


class ResizeParams(Shape):
    wire_name = "ResizeParams"

    process_id: str
    size: TerminalSize


class TakeOverParams(Shape):
    wire_name = "TakeOverParams"

    session_id: str
    client_name: str = ""
    """What the client calls itself; for the record."""
    holdfast: U64 | None = None
    """As in ``initialize``."""

    def __post_init__(self) -> None:
        within_u64(self.holdfast)


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
    write_id: str | None


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
