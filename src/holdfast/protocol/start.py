"""``process/start`` on the wire: what can be asked of a process before it runs (pure)."""

from __future__ import annotations

from enum import Enum

import msgspec
from msgspec import UNSET, UnsetType

from .sandbox import SandboxContext
from .shapes import U16, U64, Params, PathText, Shape, Signature, UuidText, camel, check_uuid, within_u64


class Metadata(Params):
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


class EnvPolicy(Params):
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


class ManagedNetwork(Params):
    wire_name = "ManagedNetworkSandboxContext"

    loopback_ports: list[U16] = msgspec.field(default_factory=list)
    allow_local_binding: bool = False


class NetworkProxy(Params):
    """Whatever is in it: it is refused as a whole."""

    wire_name = "RemoteNetworkProxyLaunchConfig"


class Shell(Params):
    """A shell of the client's choice."""

    wire_name = "ShellInfo"

    name: str
    """``bash``, ``zsh`` or ``sh``."""
    path: str
    """The program, as ``argv`` names it."""


class ShellSnapshot(Params):
    """Reads the profiles of a login shell once, and restores what they set up for later commands."""

    wire_name = "ShellSnapshotRequest"

    scope_id: str
    """Commands of one session with the same scope share what was read; 1 to 256 bytes."""
    shell: Shell


class TerminalSize(Params):
    """Rows and columns of characters, at least 1 each."""

    wire_name = "TerminalSize"

    rows: U16
    cols: U16


class ResourceLimits(Params):
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


class RecordParams(Params):
    """A recording of a terminal, which the server writes."""

    wire_name = "RecordParams"

    path: PathText
    """A ``file:`` URI or a native absolute path, at which there is nothing."""
    input: bool = False
    """Record what is typed, too, passwords included."""
    max_bytes: U64 | None = None
    """How long the file may get, at least 1024; null: 64 MiB."""
    sandbox: SandboxContext | None = None
    """As with ``fs/writeFile``: what may be written to."""

    def __post_init__(self) -> None:
        within_u64(self.max_bytes)


class StartParams(Params):
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
    """Used if ``argv`` is the shell's path, ``-lc`` and a command; otherwise nothing is done with it."""
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
    truncate_output: bool = False
    """At ``outputBytesLimit`` drop what follows, and let it run."""
    keep: bool = False
    """Let the process outlive the session: all clients of the principal reach it, none is notified."""
    name: str | None = None
    """What people call it, at most 200 characters: refused while another one runs under it, free once that
    has ended.  ``process/find`` finds it by this."""
    auto_remove: bool = False
    """With ``keep``: list it no more once its output has ended, and forget it 30 seconds later."""
    record: RecordParams | None = None
    """Write what the terminal shows to a file of the server's host.  Needs ``tty``."""
    notify_url: str | None = None
    """Send its end to this URL, which the operator of the server must have allowed."""
    user: str | None = None
    """Start it as this user of the host: a name, ``UID`` or ``UID:GID``.  HOME, USER, LOGNAME and SHELL are
    that user's, unless the request sets them."""

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


class StartResult(Shape):
    process_id: str
    sandbox_type: str = "none"
    """``linuxSeccomp`` in a sandbox, else ``none``."""
    existing: bool | UnsetType = UNSET
    """Of an idempotent start: whether the process was there before."""
    limits: dict[str, str] | UnsetType = UNSET
    """For each limit that was asked for, who keeps it: ``cgroup``, ``rlimit`` or ``sampled``."""
    pid: int | UnsetType = UNSET
    """Told to clients that know the extensions."""


class RestartParams(Params):
    wire_name = "RestartParams"

    process_id: str
    """A process that was started with ``keep``."""
    new_process_id: str
    """The identifier of the process that takes its place."""
    grace_ms: U64 | None = None
    """If it runs: SIGTERM first, and the end so much later."""

    def __post_init__(self) -> None:
        within_u64(self.grace_ms)


START = Signature("process/start", StartParams, StartResult)
RESTART = Signature("process/restart", RestartParams, StartResult)
