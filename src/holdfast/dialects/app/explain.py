"""Errors in the words of the app dialects (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.dialects.dialect import WireError
from holdfast.errors import (
    AuditFailed,
    BadHeader,
    BadRequest,
    BadUrl,
    ConfigBroken,
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
    NameAmbiguous,
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
    StillRunning,
    StillStarting,
    TooManyEntries,
    Unexpected,
    UnknownHandle,
    UnknownMethod,
    UnknownProcess,
    Unsupported,
    UserRefused,
)
from holdfast.protocol.errors import data_of
from holdfast.protocol.shapes import Undecodable

INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
OVERLOADED = -32001


class Declined(Refused):
    """A refusal in this dialect's own words."""

    def __init__(self, text: str, error: HoldfastError | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.error = error
        """What it is called elsewhere, for programs that read the data of the answer."""

    def __str__(self) -> str:
        return self.text


class Failed(HoldfastError):
    """Something that was tried and did not work, in this dialect's own words."""

    def __init__(self, text: str, error: HoldfastError) -> None:
        super().__init__(text, error)
        self.text = text
        self.error = error
        """What it is called elsewhere."""

    def __str__(self) -> str:
        return self.text


def explain(error: HoldfastError, methods: Iterable[str]) -> WireError:
    """Code, text and data for an error."""
    cause = error.error if isinstance(error, Declined | Failed) else None
    return WireError(*_code_and_text(error, methods), data_of(cause or error))


def _code_and_text(error: HoldfastError, methods: Iterable[str]) -> tuple[int, str]:
    match error:
        case UnknownMethod(method=method):
            known = ", ".join(f"`{name}`" for name in methods)
            text = f"Invalid request: unknown variant `{method}`, expected one of {known}"
            return INVALID_REQUEST, text
        case Undecodable():
            return INVALID_REQUEST, f"Invalid request: {error}"
        case BadRequest() | BadUrl() | BadHeader():
            return INVALID_PARAMS, str(error)
        case LimitReached():
            return OVERLOADED, "Server overloaded; retry later."
        case Forbidden():
            return INVALID_REQUEST, str(error)
        case AuditFailed() | ConfigBroken() | HostUnfit():
            return INTERNAL_ERROR, str(error)
        case Failed():
            return INTERNAL_ERROR, str(error)
        case Declined() | Unsupported() | OutOfTurn() | SandboxUnavailable() | RequestCancelled():
            return INVALID_REQUEST, str(error)
        case UserRefused():
            return INVALID_REQUEST, str(error)
        # The methods put these into the words of their family; what they missed is still no riddle.
        case NameTaken() | NameAmbiguous() | UnknownProcess() | StillStarting() | StillRunning():
            return INVALID_REQUEST, str(error)
        case StartCancelled() | NoTerminal():
            return INVALID_REQUEST, str(error)
        case SpawnFailed() | StdinFailed() | SignalFailed() | HttpFailed():
            return INTERNAL_ERROR, str(error)
        # There are no files here.
        case FileFailed() | FileUnsupported() | TooManyEntries():
            return INTERNAL_ERROR, str(error)
        case FileRefused() | UnknownHandle() | HandleTaken():
            return INVALID_REQUEST, str(error)
        # Of a backend that is itself a client of another server.
        case LinkLost() | OutcomeUnknown() | ProcessLost() | OutputGap() | Unexpected():
            return INTERNAL_ERROR, str(error)
        # There are no sessions here.
        case SessionBusy() | SessionUnknown() | Refused():
            return INVALID_REQUEST, str(error)
        case _:
            return INTERNAL_ERROR, str(error)
