"""Errors in the words of the exec dialect (pure)."""

from __future__ import annotations

from typing import Any

from holdfast.dialects.dialect import UnknownMethod, WireError
from holdfast.errors import (
    BadRequest,
    Fault,
    HoldfastError,
    LimitReached,
    NameTaken,
    OutOfTurn,
    Refused,
    Search,
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
from holdfast.wire.complaint import quote

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SESSION_ATTACHED = -32010

_LONGEST = 1024
"""Characters of a name that an error repeats in its data; the client knows the rest."""


def explain(error: HoldfastError) -> WireError:
    """Code, text and data for an error."""
    match error:
        case UnknownMethod(method=method):
            return WireError(METHOD_NOT_FOUND, f"exec-server stub does not implement `{method}` yet")
        case BadRequest() | Unsupported():
            return WireError(INVALID_PARAMS, str(error))
        case OutOfTurn():
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
            return WireError(INTERNAL_ERROR, _spawn_text(error), _spawn_data(error))
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


def _spawn_data(error: SpawnFailed) -> dict[str, Any]:
    data: dict[str, Any] = {"fault": error.fault.value, "subject": _printable(error.subject)[:_LONGEST]}
    data["reason"] = error.reason
    if error.number is not None:
        data["errno"] = error.number
    return data


def _spawn_text(error: SpawnFailed) -> str:
    """The reference's words, which clients know; what they leave out is in the data."""
    kind = "PTY" if error.terminal else "pipe"
    match error:
        case SpawnFailed(fault=Fault.PROGRAM, subject=""):
            return f"missing program for {kind} spawn"
        case SpawnFailed(fault=Fault.ARGUMENT, subject="env", number=None, terminal=False):
            return "data provided contains a nul byte"
        case SpawnFailed(fault=Fault.ARGUMENT, number=None):
            return "nul byte found in provided data"
        case SpawnFailed(terminal=True, search=Search(path=None)):
            return f"Unable to spawn {error.subject} because:\nUnable to resolve the PATH"
        case SpawnFailed(terminal=True, search=Search(path=str(path))):
            return (
                f"Unable to spawn {error.subject} because:\n"
                f"No viable candidates found in PATH {quote(_printable(path))}"
            )
        case _:
            return f"{error.reason} (os error {error.number})"


def _printable(text: str) -> str:
    """Bytes that are not UTF-8 cannot be told in JSON; everything else can."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
