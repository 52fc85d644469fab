"""Errors of a server, back to what they are: by a fixed table, never by a name it sends (pure).

What must hold: an error that ``dialects.exec.explain`` puts into words comes back as the same
class, with those of its facts that are in the words.  A text that a client chose, such as the
name of a process, cannot make another error of it: the code and the method are looked at too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.errors import (
    AuditFailed,
    BadHeader,
    BadRequest,
    BadUrl,
    Fault,
    FileFailed,
    FileRefused,
    FileUnsupported,
    Forbidden,
    HandleTaken,
    HeaderFault,
    HoldfastError,
    HostUnfit,
    HttpFailed,
    HttpFault,
    LimitReached,
    NameTaken,
    NoTerminal,
    OutOfTurn,
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

from .answers import ErrorBody

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND = -32004
SESSION_ATTACHED = -32010

_Maker = Callable[[re.Match[str]], HoldfastError]

_OS_ERROR = re.compile(r".*\(os error (\d{1,9})\)", re.DOTALL)
_HEADER = r"http/request header (\S+) "
_VARIABLE = "executor environment variable (.*)"

_TEXTS: dict[int, tuple[tuple[str, _Maker], ...]] = {
    INVALID_REQUEST: (
        (r"unknown process id (.*)", lambda found: UnknownProcess(found[1])),
        (r"process (.*) already exists", lambda found: NameTaken(found[1])),
        (r"process id (.*) is starting", lambda found: StillStarting(found[1])),
        (r"process (.*) start was cancelled", lambda found: StartCancelled(found[1])),
        (r"unknown session id (.*)", lambda found: SessionUnknown(found[1])),
        (r"file handle `(.*)` already exists", lambda found: HandleTaken(found[1])),
        (r"the process has no terminal", lambda found: NoTerminal()),
        (r"client must (call|send) initialized? before .*", lambda found: OutOfTurn(found[0])),
        (r"the request was cancelled", lambda found: RequestCancelled()),
        (r"initialize may only be sent once per connection", lambda found: OutOfTurn(found[0])),
    ),
    INVALID_PARAMS: (
        (r"http/request url is invalid: (.*)", lambda found: BadUrl(found[1])),
        (
            r"http/request header name is invalid: invalid HTTP header name",
            lambda found: BadHeader("", HeaderFault.NAME),
        ),
        (
            r"http/request header value is invalid for (.*): failed to parse header value",
            lambda found: BadHeader(found[1], HeaderFault.VALUE),
        ),
        (
            rf"{_HEADER}requires {_VARIABLE}",
            lambda found: BadHeader(found[1], HeaderFault.MISSING, found[2]),
        ),
        (
            rf"{_HEADER}requires a non-empty {_VARIABLE}",
            lambda found: BadHeader(found[1], HeaderFault.EMPTY, found[2]),
        ),
        (
            rf"{_HEADER}cannot use {_VARIABLE}",
            lambda found: BadHeader(found[1], HeaderFault.FORBIDDEN, found[2]),
        ),
        (r"the sandbox cannot be kept on this host: (.*)", lambda found: SandboxUnavailable(found[1])),
        (r"(.*) is not supported by this server", lambda found: Unsupported(found[1])),
    ),
    METHOD_NOT_FOUND: ((r"[^`]* does not implement (`.*`) yet", lambda found: Unsupported(found[1])),),
    NOT_FOUND: ((r"unknown file handle `(.*)`", lambda found: UnknownHandle(found[1])),),
    SESSION_ATTACHED: (
        (r"session (.*) is already attached to another connection", lambda found: SessionBusy(found[1])),
    ),
    INTERNAL_ERROR: (
        (r"failed to write to process stdin", lambda found: StdinFailed()),
        (r"failed to signal process: (.*)", lambda found: SignalFailed(found[1])),
        (r"the audit log cannot be written: (.*)", lambda found: AuditFailed(found[1])),
        (r"this host cannot run processes: (.*)", lambda found: HostUnfit(found[1])),
        (
            r"fs/readDirectory returned (\d{1,18}) entries; limit is (\d{1,18})",
            lambda found: TooManyEntries(int(found[1]), int(found[2])),
        ),
        (r"recursive no-follow removal is unsupported", lambda found: FileUnsupported(found[0])),
        (r"directory already exists", lambda found: FileUnsupported(found[0])),
    ),
}
_PATTERNS = {
    code: [(re.compile(text, re.DOTALL), make) for text, make in rows] for code, rows in _TEXTS.items()
}

_HTTP = tuple(
    (re.compile(text, re.DOTALL), fault)
    for text, fault in (
        (r"http/request failed: error sending request for url \((.*)\)", HttpFault.SENDING),
        (r"http/request failed: route-aware request timed out()", HttpFault.NO_TIME),
        (r"http/request failed: too many redirects()", HttpFault.REDIRECTS),
        (r"http/request failed: redirect target uses unsupported URL scheme: (.*)", HttpFault.SCHEME),
        (r"failed to read http/request response body: error decoding response body()", HttpFault.BODY),
    )
)


def error_of(body: ErrorBody, method: str = "") -> HoldfastError:
    """The error that the answer to ``method`` carries."""
    data = body.data if isinstance(body.data, dict) else {}
    if "fault" in data and "subject" in data:
        return _spawn_failed(data)
    if "limit" in data and "value" in data:
        most, name = _number(data, "value") or 0, _text(data, "name")
        return LimitReached(_text(data, "limit"), most, name=name)
    if "forbidden" in data and "subject" in data:
        return Forbidden(_text(data, "forbidden"), _text(data, "subject"))
    if body.code == INTERNAL_ERROR and method in ("", "http/request"):
        for pattern, fault in _HTTP:
            if (found := pattern.fullmatch(body.message)) is not None:
                return _http_failed(fault, found[1], data)
    for pattern, make in _PATTERNS.get(body.code, ()):
        if (found := pattern.fullmatch(body.message)) is not None:
            return make(found)
    if body.code != INVALID_PARAMS and (found := _OS_ERROR.fullmatch(body.message)) is not None:
        return FileFailed(int(found[1]))
    return _by_code(body, method)


def _by_code(body: ErrorBody, method: str) -> HoldfastError:
    """What is left: the text is all there is to know."""
    match body.code:
        case code if code == METHOD_NOT_FOUND:
            return Unsupported(body.message)
        case code if code == INVALID_PARAMS:
            return BadRequest(body.message)
        case code if code == INVALID_REQUEST:
            # What is refused about files is refused for many reasons, each with its own sentence.
            return FileRefused(body.message) if method.startswith("fs/") else Refused(body.message)
        case code:
            return Unexpected(code, body.message)


def _spawn_failed(data: Mapping[str, Any]) -> HoldfastError:
    try:
        fault = Fault(data["fault"])
    except ValueError:
        fault = Fault.SYSTEM
    return SpawnFailed(fault, _text(data, "subject"), _text(data, "reason"), number=_number(data, "errno"))


def _http_failed(fault: HttpFault, subject: str, data: Mapping[str, Any]) -> HttpFailed:
    """``data`` is what servers of others do not tell."""
    words = [each.value for each in HttpFault]
    if data.get("fault") in words:
        fault = HttpFault(data["fault"])
    return HttpFailed(fault, subject, _text(data, "reason") or fault.value)


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def _number(data: Mapping[str, Any], name: str) -> int | None:
    value = data.get(name)
    return value if isinstance(value, int) else None
