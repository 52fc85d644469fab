"""What the exec dialect says, as shapes; its camelCase lives here and nowhere else (pure)."""

from __future__ import annotations

from enum import Enum

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.dialects.shapes import U64, Shape
from holdfast.model import Kind, Stream

from .texts import Base64Text


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
    holdfast: Extensions | UnsetType = UNSET


class Sandboxes(Shape):
    """What sandboxes are worth on this host."""

    backend: str | None
    """``bubblewrap`` or ``landlock``; null: there are none, and whoever asks for one is refused."""
    filesystem: str | None
    """``mount`` or ``landlock``."""
    protects_subpaths: str
    """How well something inside a writable place is kept as it is: ``hard``, ``soft`` or ``none``."""
    denial: str
    """Whether ``sandboxDenied`` is ``exact`` or a ``guess``."""
    weaknesses: list[str]
    """What a sandboxed command can do although nothing allows it."""
    reason: str
    """Why it is none of the better ones."""


class Extensions(Shape):
    """What this server does beyond the protocol."""

    version: int
    features: list[str]
    tree_exact: bool
    """Whether ending a process ends everything it has started, whatever that has done to escape."""
    sandbox: Sandboxes


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
    """Optional features; what is false is not there in this version."""


class StatusResult(Shape):
    status: str = "ready"
    """``ready``."""


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


class WriteResult(Shape):
    status: str
    """``accepted``, ``stdinClosed``, ``unknownProcess`` or ``starting``."""


class TerminateResult(Shape):
    running: bool
    """Whether there was something to end."""
    survivors: list[int]
    """Pids of those who could not be ended."""
    tree_exact: bool = True
    """Whether everybody whom the process had started was in sight."""


class Outcome(Shape):
    """How a process ended, and why."""

    kind: Kind
    exit_code: int | None
    """Null after death by signal."""
    signal: str | None
    """The signal it died of, as in ``SIGKILL``."""
    by: str | None
    """Who ended it: ``client`` or ``limit``."""
    detail: str | None
    """In words."""


class Usage(Shape):
    """What a process used, and those whom it had waited for."""

    user_ms: U64
    system_ms: U64
    max_rss_bytes: U64
    """Of the largest of them."""


class WaitResult(Shape):
    exited: bool
    exit_code: int | None
    outcome: Outcome | None
    usage: Usage | None
    held_by: list[int]
    """Pids of those who hold the output of an exited process open, as far as they were seen."""
    closed: bool


class State(Enum):
    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    CLOSED = "closed"


class ListedProcess(Shape):
    process_id: str
    argv: list[str]
    """Cut after about 1,024 characters, with ``...`` as the last element then."""
    cwd: str
    """URI."""
    tty: bool
    started_at_ms: U64
    """When it was asked for, in milliseconds since 1970."""
    state: State
    pid: int | None
    """Null while it starts."""
    exit_code: int | None
    outcome: Outcome | None
    next_seq: U64
    retained_bytes: U64
    kept: bool | UnsetType = UNSET
    """Told if it belongs to no client."""


class ListResult(Shape):
    processes: list[ListedProcess]
    """The session's, then the kept ones; in the order in which they were asked for, as many as fit."""
    more: bool | UnsetType = UNSET
    """Told if there are more, which did not fit."""


class CloseResult(Shape):
    survivors: list[int]
    """Pids of those who could not be ended."""


class OutputGap(Shape):
    """Output that is no longer kept."""

    from_seq: U64
    to_seq: U64
    """The last number of it."""
    bytes: U64 | None
    """Null if so much was dropped that nobody knows."""


# Put together from bytes where they are sent; these say what the bytes are.


class OutputChunk(Shape):
    """Bytes of one stream, with their number."""

    seq: U64
    stream: Stream
    chunk: Base64Text
    """The bytes, in base64."""


class Denial(Shape):
    """Something that a sandbox has refused, although it would have worked without one."""

    op: str
    """The name of a system call; empty stands for more than can be listed."""
    path: str
    """What it was about: a path, or a kind of socket."""
    count: U64


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
    """Whether the process has failed, and its sandbox had refused it something."""
    denials: list[Denial] | UnsetType = UNSET
    """What the sandbox has refused; told if there is anything."""
    denial: str | UnsetType = UNSET
    """``exact`` if that was seen, ``guess`` if concluded from the output; told with the extensions."""
    gap: OutputGap | UnsetType | None = UNSET
    """What is missing before the first chunk; told if there is anything."""
    outcome: Outcome | UnsetType = UNSET
    """Told of an exited process.  A client that does not know the extensions is not told of kind ``exit``."""
    usage: Usage | UnsetType = UNSET
    """Of an exited process; told to clients that know the extensions."""
    held_by: list[int] | UnsetType = UNSET
    """Pids of those who held the output open after its exit; told to the same, if there are any."""


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
    """As in the answer to ``process/read``."""
    denials: list[Denial] | UnsetType = UNSET
    """As in the answer to ``process/read``."""
    denial: str | UnsetType = UNSET
    """As in the answer to ``process/read``."""
    outcome: Outcome | UnsetType = UNSET
    """As in the answer to ``process/read``."""
    usage: Usage | UnsetType = UNSET
    """Told to clients that know the extensions."""
    held_by: list[int] | UnsetType = UNSET
    """Pids of those who hold the output open, as far as a glance shows; told if there are any."""


class ProcessClosed(Shape):
    """A process has ended and so has its output: nothing follows."""

    process_id: str
    seq: U64


def optional(value: str | None) -> str | UnsetType:
    """A member that is left out when there is nothing to say."""
    return UNSET if value is None else value
