"""The handshake, the host, and the end of a session."""

from __future__ import annotations

import os.path

from holdfast.dialects import paths
from holdfast.model import HostInfo
from holdfast.sandbox import Guarantees, SandboxBackendName

from . import answers as a
from . import messages as m
from .conversation import ExecConversation

FEATURES = [
    "closeStdin",
    "drain",
    "exactNames",
    "gap",
    "grace",
    "heldBy",
    "idempotentStart",
    "idleTimeout",
    "keep",
    "limits",
    "list",
    "outcome",
    "outputLimit",
    "resize",
    "retainBytes",
    "sandboxDenials",
    "sessionClose",
    "sessionTakeOver",
    "signals",
    "size",
    "survivors",
    "timeout",
    "tree",
    "usage",
    "wait",
    "window",
]
"""What ``capabilities.holdfast`` announces."""


async def initialize(talk: ExecConversation, params: m.InitializeParams) -> a.InitializeResult:
    """Open or resume a session."""
    session = await talk.begin(params.resume_session_id, extended=bool(params.holdfast))
    return a.InitializeResult(session.key, _environment_info(talk.backend.info))


async def take_over(talk: ExecConversation, params: m.TakeOverParams) -> a.InitializeResult:
    """Resume a session, instead of ``initialize``, also if another connection has it, which then ends."""
    session = await talk.begin(params.session_id, extended=bool(params.holdfast), by_force=True)
    return a.InitializeResult(session.key, _environment_info(talk.backend.info))


async def close(talk: ExecConversation, params: None) -> a.CloseResult:
    """End the session and everything in it; return when that is gone.  A new one may be opened then."""
    return a.CloseResult(await talk.finish())


def environment_info(talk: ExecConversation, params: None) -> a.EnvironmentInfo:
    return _environment_info(talk.backend.info)


def environment_status(talk: ExecConversation, params: None) -> a.StatusResult:
    return _READY


_READY = a.StatusResult()


def _environment_info(host: HostInfo) -> a.EnvironmentInfo:
    return a.EnvironmentInfo(
        shell=a.ShellInfo(os.path.basename(host.shell), host.shell),
        executor_version=host.version,
        provider_id=host.provider,
        cwd=paths.to_uri(host.cwd),
        user_home_dir=a.optional(host.home and paths.to_uri(host.home)),
        platform_os="linux",
        prepend_path_dirs=[],
        temporary_directories=[paths.to_uri(path) for path in host.temp_dirs],
        temp_dir=paths.to_uri(host.temp),
        capabilities=a.Capabilities(
            fs_watch_missing=True,
            http_header_env_vars=True,
            sandboxed_file_streaming=True,
            file_write_streaming=True,
            holdfast=a.Extensions(1, FEATURES, tree_exact=True, sandbox=_sandboxes(host.sandboxes)),
        ),
    )


def _sandboxes(found: Guarantees) -> a.Sandboxes:
    return a.Sandboxes(
        backend=found.backend,
        filesystem=_KEEPERS.get(found.backend, found.backend),
        protects_subpaths=found.protection.name.lower(),
        denial="exact" if found.exact else "guess",
        weaknesses=list(found.weaknesses),
        reason=found.reason,
    )


_KEEPERS: dict[str | None, str] = {SandboxBackendName.BUBBLEWRAP: "mount"}
"""What keeps the rules about files, where that has another name than the sandbox backend."""
