"""Errors of a server: those of ours by their data, those of foreign servers by their sentences (pure).

What must hold: a text that a client chose, such as the name of a process, cannot make another error of a
sentence that repeats it: the code and the method are looked at too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from holdfast.errors import (
    BadHeader,
    BadRequest,
    BadUrl,
    FileFailed,
    FileRefused,
    FileUnsupported,
    HandleTaken,
    HeaderFault,
    HoldfastError,
    HttpFailed,
    HttpFault,
    NameTaken,
    OutOfTurn,
    Refused,
    SessionBusy,
    SessionUnknown,
    SignalFailed,
    StartCancelled,
    StdinFailed,
    StillStarting,
    TooManyEntries,
    Unexpected,
    UnknownHandle,
    UnknownProcess,
    Unsupported,
)
from holdfast.protocol import errors as protocol_errors
from holdfast.wire.jsonrpc import ErrorBody

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
        (r"client must (call|send) initialized? before .*", lambda found: OutOfTurn(found[0])),
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
    ),
    METHOD_NOT_FOUND: ((r"[^`]* does not implement (`.*`) yet", lambda found: Unsupported(found[1])),),
    NOT_FOUND: ((r"unknown file handle `(.*)`", lambda found: UnknownHandle(found[1])),),
    SESSION_ATTACHED: (
        (r"session (.*) is already attached to another connection", lambda found: SessionBusy(found[1])),
    ),
    INTERNAL_ERROR: (
        (r"failed to write to process stdin", lambda found: StdinFailed()),
        (r"failed to signal process: (.*)", lambda found: SignalFailed(found[1])),
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
    known = protocol_errors.error_of(body.data)
    if known is not None:
        return known
    if body.code == INTERNAL_ERROR and method in ("", "http/request"):
        for pattern, fault in _HTTP:
            if (found := pattern.fullmatch(body.message)) is not None:
                return HttpFailed(fault, found[1], fault.value)
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
