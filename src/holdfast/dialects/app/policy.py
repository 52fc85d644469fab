"""What a command may do: from its policy, its profile or the server's own (pure)."""

from __future__ import annotations

from holdfast.model import HostInfo
from holdfast.protocol.app import (
    DangerFullAccess,
    ExecParams,
    ExternalSandbox,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
)
from holdfast.protocol.sandbox import NetworkAccess
from holdfast.sandbox import Access, Entry, Named, Sandbox, Where

from .explain import Declined

_READ_ALL = Entry(Named(Where.ROOT), Access.READ)
_ROOTS = Entry(Named(Where.PROJECT_ROOTS), Access.WRITE)
_SLASH_TMP = Entry(Named(Where.SLASH_TMP), Access.WRITE)
_TMPDIR = Entry(Named(Where.TMPDIR), Access.WRITE)

POLICIES: dict[str, SandboxPolicy] = {
    "read-only": ReadOnly(),
    "workspace-write": WorkspaceWrite(),
    "danger-full-access": DangerFullAccess(),
}
"""What a server can have as its own."""


def of(params: ExecParams, info: HostInfo, cwd: str, default: str) -> tuple[Sandbox | None, bool]:
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
            return Sandbox((_READ_ALL,), network, cwd), network
        case WorkspaceWrite(network_access=network):
            entries = [_READ_ALL, _ROOTS, *(Entry(path, Access.WRITE) for path in policy.writable_roots)]
            if not policy.exclude_slash_tmp:
                entries.append(_SLASH_TMP)
            if not policy.exclude_tmpdir_env_var:
                entries.append(_TMPDIR)
            return Sandbox(tuple(entries), network, cwd, roots=(root,)), network
        case ExternalSandbox(network_access=access):
            return None, access is NetworkAccess.ENABLED
        case _:
            return None, True
