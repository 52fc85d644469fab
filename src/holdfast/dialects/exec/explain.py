"""Errors in the words of the exec dialect."""

from __future__ import annotations

import errno
import os

from holdfast import errors as e
from holdfast.dialects.dialect import WireError
from holdfast.dialects.spawning import failure_text
from holdfast.protocol.errors import data_of
from holdfast.protocol.shapes import Undecodable

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND = -32004
SESSION_ATTACHED = -32010

_FILE_CODES = {
    errno.ENOENT: NOT_FOUND,
    errno.EINVAL: INVALID_REQUEST,
    errno.EACCES: INVALID_REQUEST,
    errno.EPERM: INVALID_REQUEST,
}
_FILE_WORDS = {
    errno.EIO: "I/O error",
    errno.EBUSY: "Resource busy",
    errno.ENAMETOOLONG: "Filename too long",
    errno.ELOOP: "Symbolic link loop",
    errno.ESTALE: "Stale file handle",
}
"""Where the C library of the reference has other words than ours."""


def explain(error: e.HoldfastError) -> WireError:
    """Code, text and data for an error."""
    return WireError(*_code_and_text(error), data_of(error))


def _code_and_text(error: e.HoldfastError) -> tuple[int, str]:
    match error:
        case e.UnknownMethod(method=method):
            return METHOD_NOT_FOUND, f"exec-server stub does not implement `{method}` yet"
        case e.BadUrl(reason=reason):
            return INVALID_PARAMS, f"http/request url is invalid: {reason}"
        case e.BadHeader():
            return INVALID_PARAMS, _header_text(error)
        case e.HttpFailed():
            return INTERNAL_ERROR, http_text(error)
        case Undecodable() | e.BadRequest() | e.Unsupported() | e.SandboxUnavailable() | e.UserRefused():
            return INVALID_PARAMS, str(error)
        case e.OutOfTurn() | e.NoTerminal() | e.RequestCancelled():
            return INVALID_REQUEST, str(error)
        case e.UnknownProcess(name=name):
            return INVALID_REQUEST, f"unknown process id {name}"
        case e.NameTaken(name=name):
            return INVALID_REQUEST, f"process {name} already exists"
        case e.StillRunning() | e.NameAmbiguous():
            return INVALID_REQUEST, str(error)
        case e.StillStarting(name=name):
            return INVALID_REQUEST, f"process id {name} is starting"
        case e.StartCancelled(name=name):
            return INVALID_REQUEST, f"process {name} start was cancelled"
        case e.FileFailed(number=number):
            return _FILE_CODES.get(number, INTERNAL_ERROR), file_text(number)
        case e.FileRefused():
            return INVALID_REQUEST, str(error)
        case e.FileUnsupported():
            return INTERNAL_ERROR, str(error)
        case e.TooManyEntries(count=count, limit=limit):
            return INTERNAL_ERROR, f"fs/readDirectory returned {count} entries; limit is {limit}"
        case e.UnknownHandle(name=name):
            return NOT_FOUND, f"unknown file handle `{name}`"
        case e.HandleTaken(name=name):
            return INVALID_REQUEST, f"file handle `{name}` already exists"
        case e.SessionUnknown(session=session):
            return INVALID_REQUEST, f"unknown session id {session}"
        case e.SessionBusy(session=session):
            return SESSION_ATTACHED, f"session {session} is already attached to another connection"
        case e.SpawnFailed():
            return INTERNAL_ERROR, failure_text(error)
        case e.StdinFailed():
            return INTERNAL_ERROR, "failed to write to process stdin"
        case e.SignalFailed(reason=reason):
            return INTERNAL_ERROR, f"failed to signal process: {reason}"
        case e.LimitReached():
            return _limit(error)
        case e.AuditFailed() | e.ConfigBroken() | e.HostUnfit():
            return INTERNAL_ERROR, str(error)
        case e.Forbidden():
            return INVALID_REQUEST, str(error)
        case e.LinkLost() | e.OutcomeUnknown() | e.ProcessLost() | e.OutputGap() | e.Unexpected():
            # Of a backend that is itself a client of another server.
            return INTERNAL_ERROR, str(error)
        case e.Refused():
            return INVALID_REQUEST, str(error)
        case _:
            return INTERNAL_ERROR, str(error)


def _limit(error: e.LimitReached) -> tuple[int, str]:
    if error.name == "file.handles":  # The one for which the protocol has words.
        return INVALID_REQUEST, f"at most {error.value} file handles may be open per connection"
    return INTERNAL_ERROR, str(error)


def file_text(number: int) -> str:
    """What the system said, as the reference says it."""
    return f"{_FILE_WORDS.get(number) or os.strerror(number)} (os error {number})"


def _header_text(error: e.BadHeader) -> str:
    subject = f"http/request header {error.name}"
    match error.fault:
        case e.HeaderFault.NAME:
            return "http/request header name is invalid: invalid HTTP header name"
        case e.HeaderFault.VALUE:
            return f"http/request header value is invalid for {error.name}: failed to parse header value"
        case e.HeaderFault.MISSING:
            return f"{subject} requires executor environment variable {error.variable}"
        case e.HeaderFault.EMPTY:
            return f"{subject} requires a non-empty executor environment variable {error.variable}"
        case e.HeaderFault.FORBIDDEN:
            return f"{subject} cannot use executor environment variable {error.variable}"


def http_text(error: e.HttpFailed) -> str:
    """The reference's words, which clients know; what they leave out is in the data."""
    match error.fault:
        case e.HttpFault.SENDING | e.HttpFault.TIMEOUT:
            return f"http/request failed: error sending request for url ({error.subject})"
        case e.HttpFault.NO_TIME:
            return "http/request failed: route-aware request timed out"
        case e.HttpFault.REDIRECTS:
            return "http/request failed: too many redirects"
        case e.HttpFault.SCHEME:
            return f"http/request failed: redirect target uses unsupported URL scheme: {error.subject}"
        case e.HttpFault.BODY | e.HttpFault.BODY_TIMEOUT:
            return "failed to read http/request response body: error decoding response body"


def body_text(error: e.HttpFailed) -> str:
    """Words for a streamed body that broke off.  It has no data, so the reason is put behind them."""
    return f"error decoding response body: {error.reason}"
