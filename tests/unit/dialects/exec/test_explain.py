"""Errors in the words of the exec dialect."""

from __future__ import annotations

import pytest

from holdfast.dialects.dialect import WireError
from holdfast.dialects.exec.explain import explain
from holdfast.errors import (
    BadHeader,
    BadRequest,
    BadUrl,
    Fault,
    FileFailed,
    FileRefused,
    FileUnsupported,
    HandleTaken,
    HeaderFault,
    HoldfastError,
    HttpFailed,
    HttpFault,
    LimitReached,
    NameTaken,
    NoTerminal,
    OutOfTurn,
    ProgramSearch,
    Refused,
    SessionBusy,
    SessionUnknown,
    SignalFailed,
    SpawnFailed,
    StartCancelled,
    StdinFailed,
    StillStarting,
    TooManyEntries,
    UnknownHandle,
    UnknownMethod,
    UnknownProcess,
    Unsupported,
)
from holdfast.protocol.errors import data_of


def plain(error: HoldfastError) -> WireError:
    """What clients of the reference see of an error; its data is the same in all dialects."""
    found = explain(error)
    assert found.data == data_of(error)
    return WireError(found.code, found.message)


@pytest.mark.parametrize(
    ("error", "explained"),
    [
        (UnknownMethod("a`b\n"), WireError(-32601, "exec-server stub does not implement `a`b\n` yet")),
        (BadRequest("missing field `x`", field="x"), WireError(-32602, "missing field `x`")),
        (Unsupported("`sandbox`"), WireError(-32602, "`sandbox` is not supported by this server")),
        (OutOfTurn("not yet"), WireError(-32600, "not yet")),
        (UnknownProcess('é\n"'), WireError(-32600, 'unknown process id é\n"')),
        (NameTaken(""), WireError(-32600, "process  already exists")),
        (StillStarting("p"), WireError(-32600, "process id p is starting")),
        (StartCancelled("p"), WireError(-32600, "process p start was cancelled")),
        (SessionUnknown(""), WireError(-32600, "unknown session id ")),
        (SessionBusy("s"), WireError(-32010, "session s is already attached to another connection")),
        (NoTerminal(), WireError(-32600, "the process has no terminal")),
        (StdinFailed(), WireError(-32603, "failed to write to process stdin")),
        (SignalFailed("why"), WireError(-32603, "failed to signal process: why")),
        (FileFailed(2), WireError(-32004, "No such file or directory (os error 2)")),
        (FileFailed(1), WireError(-32600, "Operation not permitted (os error 1)")),
        (FileFailed(13), WireError(-32600, "Permission denied (os error 13)")),
        (FileFailed(22), WireError(-32600, "Invalid argument (os error 22)")),
        (FileFailed(30), WireError(-32603, "Read-only file system (os error 30)")),
        # Where the C library of the reference has other words than ours.
        (FileFailed(5), WireError(-32603, "I/O error (os error 5)")),
        (FileFailed(16), WireError(-32603, "Resource busy (os error 16)")),
        (FileFailed(36), WireError(-32603, "Filename too long (os error 36)")),
        (FileFailed(40), WireError(-32603, "Symbolic link loop (os error 40)")),
        (FileRefused("not so"), WireError(-32600, "not so")),
        (FileUnsupported("not that"), WireError(-32603, "not that")),
        (TooManyEntries(7, 5), WireError(-32603, "fs/readDirectory returned 7 entries; limit is 5")),
        (UnknownHandle("h"), WireError(-32004, "unknown file handle `h`")),
        (HandleTaken("h"), WireError(-32600, "file handle `h` already exists")),
        (LimitReached("x", 5), WireError(-32603, "limit reached: x (5)")),
        (Refused("other"), WireError(-32600, "other")),
        (HoldfastError("strange"), WireError(-32603, "strange")),
    ],
)
def test_an_error_has_its_code_and_its_words(error: HoldfastError, explained: WireError) -> None:
    assert plain(error) == explained


def program(subject: str, reason: str, number: int, *, terminal: bool = False) -> SpawnFailed:
    return SpawnFailed(Fault.PROGRAM, subject, reason, number=number, terminal=terminal)


def looked_up(subject: str, path: str | None, *, terminal: bool) -> SpawnFailed:
    search = ProgramSearch(path)
    reason = "No such file or directory"
    return SpawnFailed(Fault.PROGRAM, subject, reason, number=2, terminal=terminal, search=search)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (program("/no", "No such file or directory", 2), "No such file or directory (os error 2)"),
        (
            program("/no", "No such file or directory", 2, terminal=True),
            "No such file or directory (os error 2)",
        ),
        (program("./x", "Permission denied", 13), "Permission denied (os error 13)"),
        (program("x", "Exec format error", 8), "Exec format error (os error 8)"),
        (SpawnFailed(Fault.PROGRAM, "", "empty"), "missing program for pipe spawn"),
        (SpawnFailed(Fault.PROGRAM, "", "empty", terminal=True), "missing program for PTY spawn"),
        (looked_up("nope", "/bin", terminal=False), "No such file or directory (os error 2)"),
        (looked_up("nope", None, terminal=True), "Unable to spawn nope because:\nUnable to resolve the PATH"),
        (
            looked_up("no\"such\npr'og", "/usr/bin:/bin", terminal=True),
            'Unable to spawn no"such\npr\'og because:\nNo viable candidates found in PATH "/usr/bin:/bin"',
        ),
        (
            looked_up("x", '/a"b\\c\ndé\0', terminal=True),
            'Unable to spawn x because:\nNo viable candidates found in PATH "/a\\"b\\\\c\\ndé\\0"',
        ),
        (
            looked_up("x", "", terminal=True),
            'Unable to spawn x because:\nNo viable candidates found in PATH ""',
        ),
        (SpawnFailed(Fault.ARGUMENT, "a\0b", "NUL"), "nul byte found in provided data"),
        (SpawnFailed(Fault.ARGUMENT, "env", "NUL"), "data provided contains a nul byte"),
        (SpawnFailed(Fault.ARGUMENT, "env", "NUL", terminal=True), "nul byte found in provided data"),
        (
            SpawnFailed(Fault.ARGUMENT, "argv", "Argument list too long", number=7),
            "Argument list too long (os error 7)",
        ),
        (SpawnFailed(Fault.DIRECTORY, "/f", "Not a directory", number=20), "Not a directory (os error 20)"),
    ],
)
def test_a_failed_start_has_the_words_of_the_reference(error: SpawnFailed, text: str) -> None:
    explained = explain(error)

    assert (explained.code, explained.message) == (-32603, text)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (HeaderFault.NAME, "name is invalid: invalid HTTP header name"),
        (HeaderFault.VALUE, "value is invalid for X-H: failed to parse header value"),
        (HeaderFault.MISSING, "X-H requires executor environment variable V"),
        (HeaderFault.EMPTY, "X-H requires a non-empty executor environment variable V"),
        (HeaderFault.FORBIDDEN, "X-H cannot use executor environment variable V"),
    ],
)
def test_a_header_that_cannot_be_sent_is_named(fault: HeaderFault, words: str) -> None:
    assert plain(BadHeader("X-H", fault, "V")) == WireError(-32602, f"http/request header {words}")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (HttpFault.SENDING, "http/request failed: error sending request for url (S)"),
        (HttpFault.TIMEOUT, "http/request failed: error sending request for url (S)"),
        (HttpFault.NO_TIME, "http/request failed: route-aware request timed out"),
        (HttpFault.REDIRECTS, "http/request failed: too many redirects"),
        (HttpFault.SCHEME, "http/request failed: redirect target uses unsupported URL scheme: S"),
        (HttpFault.BODY, "failed to read http/request response body: error decoding response body"),
        (HttpFault.BODY_TIMEOUT, "failed to read http/request response body: error decoding response body"),
    ],
)
def test_an_http_request_that_failed_has_the_words_of_the_reference(fault: HttpFault, words: str) -> None:
    """They do not tell a timeout from a wrong name; the data does."""
    assert plain(HttpFailed(fault, "S", "why")) == WireError(-32603, words)


def test_a_bad_url_says_what_is_bad() -> None:
    assert plain(BadUrl("empty host")) == WireError(-32602, "http/request url is invalid: empty host")
