"""Errors in the words of the app dialects (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.dialects.dialect import UnknownMethod, WireError
from holdfast.dialects.shapes import Undecodable, printable
from holdfast.errors import (
    AuditFailed,
    BadHeader,
    BadRequest,
    BadUrl,
    FileFailed,
    FileRefused,
    FileUnsupported,
    Forbidden,
    HandleTaken,
    HoldfastError,
    HostUnfit,
    HttpFailed,
    LimitReached,
    LinkLost,
    NameTaken,
    NoTerminal,
    OutcomeUnknown,
    OutOfTurn,
    OutputGap,
    ProcessLost,
    Refused,
    RequestCancelled,
    SandboxUnavailable,
    SessionBusy,
    SessionUnknown,
    SignalFailed,
    SpawnFailed,
    StartCancelled,
    StdinFailed,
    StillStarting,
    TooManyEntries,
    Unexpected,
    UnknownHandle,
    UnknownProcess,
    Unsupported,
)

INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
OVERLOADED = -32001


class Declined(Refused):
    """A refusal in this dialect's own words."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


class Failed(HoldfastError):
    """Something that was tried and did not work, in this dialect's own words."""

    def __init__(self, text: str, data: Any = None) -> None:
        super().__init__(text, data)
        self.text = text
        self.data = data

    def __str__(self) -> str:
        return self.text


def explain(error: HoldfastError, methods: Iterable[str]) -> WireError:
    """Code, text and data for an error."""
    match error:
        case UnknownMethod(method=method):
            known = ", ".join(f"`{name}`" for name in methods)
            text = f"Invalid request: unknown variant `{method}`, expected one of {known}"
            return WireError(INVALID_REQUEST, text)
        case Undecodable():
            return WireError(INVALID_REQUEST, f"Invalid request: {error}")
        case BadRequest() | BadUrl() | BadHeader():
            return WireError(INVALID_PARAMS, str(error))
        case LimitReached(limit=limit, value=value, name=name):
            data = {"limit": limit, "value": value} | ({"name": name} if name else {})
            return WireError(OVERLOADED, "Server overloaded; retry later.", data)
        case Forbidden(what=what, subject=subject):
            return WireError(INVALID_REQUEST, str(error), {"forbidden": what, "subject": printable(subject)})
        case AuditFailed() | HostUnfit():
            return WireError(INTERNAL_ERROR, str(error))
        case Failed(data=data):
            return WireError(INTERNAL_ERROR, str(error), data)
        case Declined() | Unsupported() | OutOfTurn() | SandboxUnavailable() | RequestCancelled():
            return WireError(INVALID_REQUEST, str(error))
        # The methods put these into the words of their family; what they missed is still no riddle.
        case NameTaken() | UnknownProcess() | StillStarting() | StartCancelled() | NoTerminal():
            return WireError(INVALID_REQUEST, str(error))
        case SpawnFailed() | StdinFailed() | SignalFailed() | HttpFailed():
            return WireError(INTERNAL_ERROR, str(error))
        # There are no files here.
        case FileFailed() | FileUnsupported() | TooManyEntries():
            return WireError(INTERNAL_ERROR, str(error))
        case FileRefused() | UnknownHandle() | HandleTaken():
            return WireError(INVALID_REQUEST, str(error))
        # Of a backend that is itself a client of another server.
        case LinkLost() | OutcomeUnknown() | ProcessLost() | OutputGap() | Unexpected():
            return WireError(INTERNAL_ERROR, str(error))
        # There are no sessions here.
        case SessionBusy() | SessionUnknown() | Refused():
            return WireError(INVALID_REQUEST, str(error))
        case _:
            return WireError(INTERNAL_ERROR, str(error))
