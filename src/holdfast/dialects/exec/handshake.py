"""The methods about the session itself: how it begins and ends, and what the host is like."""

from __future__ import annotations

from holdfast.protocol.session import (
    CloseResult,
    EnvironmentInfo,
    InitializeParams,
    InitializeResult,
    StatusResult,
    TakeOverParams,
)
from holdfast.protocol.session import environment_info as describe_host

from .conversation import ExecConversation


async def initialize(talk: ExecConversation, params: InitializeParams) -> InitializeResult:
    """Open or resume a session."""
    session = await talk.begin(params.resume_session_id, extended=bool(params.holdfast))
    return InitializeResult(session.key, describe_host(talk.backend.info))


async def take_over(talk: ExecConversation, params: TakeOverParams) -> InitializeResult:
    """Resume a session, instead of ``initialize``, also if another connection has it, which then ends."""
    session = await talk.begin(params.session_id, extended=bool(params.holdfast), by_force=True)
    return InitializeResult(session.key, describe_host(talk.backend.info))


async def close(talk: ExecConversation, params: None) -> CloseResult:
    """End the session and everything in it; return when that is gone.  A new one may be opened then."""
    return CloseResult(await talk.finish())


def environment_info(talk: ExecConversation, params: None) -> EnvironmentInfo:
    """Describe the host: its shell, its directories, its capabilities."""
    return describe_host(talk.backend.info)


def environment_status(talk: ExecConversation, params: None) -> StatusResult:
    """Answer, to show that the server is alive and the session is open."""
    return _READY


_READY = StatusResult()
