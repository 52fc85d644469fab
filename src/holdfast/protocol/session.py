"""The session and the host on the wire: handshake, capabilities, facts about the server's host (pure)."""

from __future__ import annotations

import os.path

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.model import HostInfo
from holdfast.sandbox import NO_SANDBOXES, Guarantees, Protection, SandboxBackendName

from . import paths
from .shapes import U64, Params, Shape, Signature, within_u64

FEATURES = [
    "autoRemove",
    "closeStdin",
    "danglingLinks",
    "drain",
    "events",
    "exactNames",
    "fileArchives",
    "filePermissions",
    "fileRename",
    "gap",
    "grace",
    "heldBy",
    "idempotentStart",
    "idleTimeout",
    "inspect",
    "keep",
    "limits",
    "list",
    "names",
    "notify",
    "outcome",
    "outputLimit",
    "processUsage",
    "readRange",
    "record",
    "remove",
    "resize",
    "restart",
    "retainBytes",
    "sandboxDenials",
    "sessionClose",
    "sessionTakeOver",
    "signals",
    "size",
    "snapshot",
    "survivors",
    "timeout",
    "tree",
    "truncateOutput",
    "usage",
    "user",
    "wait",
    "waitFor",
    "window",
]
"""What ``capabilities.holdfast`` announces: what our servers do beyond the protocol.

``snapshot`` only where the server knows what terminals show.
"""


# What is asked.


class InitializeParams(Params):
    wire_name = "InitializeParams"

    client_name: str
    """What the client calls itself; for the record."""
    resume_session_id: str | None = None
    """The session to resume; null opens a new one."""
    holdfast: U64 | None = None
    """The version of the extensions that the client knows: 1.  It is then told all that they have to tell."""

    def __post_init__(self) -> None:
        within_u64(self.holdfast)


class TakeOverParams(Params):
    wire_name = "TakeOverParams"

    session_id: str
    client_name: str = ""
    """What the client calls itself; for the record."""
    holdfast: U64 | None = None
    """As in ``initialize``."""

    def __post_init__(self) -> None:
        within_u64(self.holdfast)


# What is answered.


class ShellInfo(Shape):
    name: str
    path: str


class Sandboxes(Shape):
    """What sandboxes are worth on this host."""

    backend: str | None = None
    """``bubblewrap`` or ``landlock``; null: there are none, and whoever asks for one is refused."""
    filesystem: str | None = None
    """``mount`` or ``landlock``."""
    protects_subpaths: str = "none"
    """How well something inside a writable place is kept as it is: ``hard``, ``soft`` or ``none``."""
    denial: str = "guess"
    """Whether ``sandboxDenied`` is ``exact`` or a ``guess``."""
    weaknesses: list[str] = msgspec.field(default_factory=list)
    """What a sandboxed command can do although nothing allows it."""
    reason: str = ""
    """Why it is none of the better ones."""


class Extensions(Shape):
    """What this server does beyond the protocol."""

    version: int = 0
    features: list[str] = msgspec.field(default_factory=list)
    tree_exact: bool = False
    """Whether ending a process ends everything it has started, whatever that has done to escape."""
    sandbox: Sandboxes = msgspec.field(default_factory=Sandboxes)
    durable: bool = False
    """Whether sessions and processes outlive a crash of the server."""


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


class EnvironmentInfo(Shape):
    shell: ShellInfo
    """The login shell of the server's user."""
    executor_version: str = ""
    """The version of holdfast, for a client that asks for extensions; else that of the reference's server
    whose place it takes, because clients leave out methods that older ones lack."""
    provider_id: str = ""
    """``sha256:HEX``, the same for as long as the host's installation."""
    cwd: str = ""
    """URI of the server's directory."""
    user_home_dir: str | UnsetType = UNSET
    """URI; absent if there is none."""
    platform_os: str = "linux"
    """``linux``."""
    prepend_path_dirs: list[str] = msgspec.field(default_factory=list)
    """Empty."""
    temporary_directories: list[str] = msgspec.field(default_factory=list)
    """URIs, from the server's ``TMPDIR``; empty if it is not set."""
    temp_dir: str = ""
    """URI of the directory for temporary files."""
    capabilities: Capabilities = msgspec.field(default_factory=Capabilities)
    """Optional features; what is false is not there in this version."""


class InitializeResult(Shape):
    session_id: str
    """Name it in ``resumeSessionId`` to come back."""
    environment_info: EnvironmentInfo


class CloseResult(Shape):
    survivors: list[int]
    """Pids of those who could not be ended."""


class StatusResult(Shape):
    status: str = "ready"
    """``ready``."""


INITIALIZE = Signature("initialize", InitializeParams, InitializeResult)
TAKE_OVER = Signature("session/takeOver", TakeOverParams, InitializeResult)
CLOSE_SESSION: Signature[None, CloseResult] = Signature("session/close", None, CloseResult)
ENVIRONMENT_INFO: Signature[None, EnvironmentInfo] = Signature("environment/info", None, EnvironmentInfo)
ENVIRONMENT_STATUS: Signature[None, StatusResult] = Signature("environment/status", None, StatusResult)


# The host, from the values of ``holdfast.model`` to the wire and back.


REFERENCE_VERSION = "0.166.0"
"""The exec server of the reference whose methods these are.  Its clients leave alone what older ones lack."""


def environment_info(host: HostInfo, *, extended: bool) -> EnvironmentInfo:
    """What a server tells of its host.  A client is ``extended`` if it asks for more than the protocol."""
    return EnvironmentInfo(
        shell=ShellInfo(os.path.basename(host.shell), host.shell),
        executor_version=host.version if extended else REFERENCE_VERSION,
        provider_id=host.provider,
        cwd=paths.to_uri(host.cwd),
        user_home_dir=UNSET if host.home is None else paths.to_uri(host.home),
        temporary_directories=[paths.to_uri(path) for path in host.temp_dirs],
        temp_dir=paths.to_uri(host.temp),
        capabilities=Capabilities(
            capability_discovery_sandbox=True,
            capability_discovery_v2=True,
            environment_config_read=True,
            fs_watch_missing=True,
            http_header_env_vars=True,
            sandboxed_file_streaming=True,
            file_write_streaming=True,
            shell_snapshot_v2=True,
            holdfast=Extensions(
                1, _features(host), tree_exact=True, sandbox=_sandboxes(host.sandboxes), durable=host.durable
            ),
        ),
    )


def _features(host: HostInfo) -> list[str]:
    return FEATURES if host.screens else [name for name in FEATURES if name != "snapshot"]


def _sandboxes(found: Guarantees) -> Sandboxes:
    return Sandboxes(
        backend=found.backend,
        filesystem=found.filesystem or found.backend,
        protects_subpaths=found.protection.name.lower(),
        denial="exact" if found.exact else "guess",
        weaknesses=list(found.weaknesses),
        reason=found.reason,
    )


def host_info(found: EnvironmentInfo) -> HostInfo:
    """What a client knows of a server's host.

    Raises:
        BadRequest: A path is none.
    """
    extensions = found.capabilities.holdfast
    home = found.user_home_dir
    return HostInfo(
        shell=found.shell.path,
        cwd=_path(found.cwd) or "/",
        home=None if home is UNSET else _path(home),
        temp=_path(found.temp_dir) or "/tmp",  # noqa: S108  (what a host has that does not tell)
        temp_dirs=tuple(there for there in map(_path, found.temporary_directories) if there is not None),
        provider=found.provider_id,
        version=found.executor_version,
        sandboxes=NO_SANDBOXES if extensions is UNSET else _guarantees(extensions.sandbox),
        durable=extensions is not UNSET and extensions.durable,
        screens=extensions is not UNSET and "snapshot" in extensions.features,
    )


def _path(uri: str) -> str | None:
    return paths.parse(uri).path if uri else None


def _guarantees(found: Sandboxes) -> Guarantees:
    """What a server says its sandboxes are worth; a word that is not known here promises nothing."""
    try:
        backend = SandboxBackendName(found.backend or "")
    except ValueError:
        return NO_SANDBOXES
    protection = found.protects_subpaths.upper()
    return Guarantees(
        backend,
        Protection[protection] if protection in Protection.__members__ else Protection.NONE,
        exact=found.denial == "exact",
        weaknesses=tuple(found.weaknesses),
        reason=found.reason,
        filesystem="" if found.filesystem in (None, found.backend) else found.filesystem,
    )
