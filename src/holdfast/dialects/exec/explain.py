"""Errors in the words of the exec dialect (pure)."""

from __future__ import annotations

from holdfast.dialects.dialect import UnknownMethod, WireError
from holdfast.dialects.shapes import Undecodable
from holdfast.dialects.spawning import failure_data, failure_text
from holdfast.errors import (
    BadRequest,
    HoldfastError,
    LimitReached,
    NameTaken,
    NoTerminal,
    OutOfTurn,
    Refused,
    SessionBusy,
    SessionUnknown,
    SignalFailed,
    SpawnFailed,
    StartCancelled,
    StdinFailed,
    StillStarting,
    UnknownProcess,
    Unsupported,
)

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SESSION_ATTACHED = -32010


def explain(error: HoldfastError) -> WireError:
    """Code, text and data for an error."""
    match error:
        case UnknownMethod(method=method):
            return WireError(METHOD_NOT_FOUND, f"exec-server stub does not implement `{method}` yet")
        case Undecodable() | BadRequest() | Unsupported():
            return WireError(INVALID_PARAMS, str(error))
        case OutOfTurn() | NoTerminal():
            return WireError(INVALID_REQUEST, str(error))
        case UnknownProcess(name=name):
            return WireError(INVALID_REQUEST, f"unknown process id {name}")
        case NameTaken(name=name):
            return WireError(INVALID_REQUEST, f"process {name} already exists")
        case StillStarting(name=name):
            return WireError(INVALID_REQUEST, f"process id {name} is starting")
        case StartCancelled(name=name):
            return WireError(INVALID_REQUEST, f"process {name} start was cancelled")
        case SessionUnknown(session=session):
            return WireError(INVALID_REQUEST, f"unknown session id {session}")
        case SessionBusy(session=session):
            return WireError(SESSION_ATTACHED, f"session {session} is already attached to another connection")
        case SpawnFailed():
            return WireError(INTERNAL_ERROR, failure_text(error), failure_data(error))
        case StdinFailed():
            return WireError(INTERNAL_ERROR, "failed to write to process stdin")
        case SignalFailed(reason=reason):
            return WireError(INTERNAL_ERROR, f"failed to signal process: {reason}")
        case LimitReached(limit=limit, value=value):
            return WireError(INTERNAL_ERROR, str(error), {"limit": limit, "value": value})
        case Refused():
            return WireError(INVALID_REQUEST, str(error))
        case _:
            return WireError(INTERNAL_ERROR, str(error))
