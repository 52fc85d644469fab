"""The tree of errors: whose move it is, and the sentence for people."""

from __future__ import annotations

import errno
import os
import pickle

import pytest

from holdfast import errors
from holdfast.errors import (
    AuditFailed,
    BadHeader,
    BadRequest,
    BadUrl,
    ConfigBroken,
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
    LinkLost,
    NameAmbiguous,
    NameTaken,
    NoTerminal,
    OutcomeUnknown,
    OutOfTurn,
    OutputGap,
    ProcessLost,
    ProgramSearch,
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
    UserFault,
    UserRefused,
)

SENTENCES = [
    (BadRequest("argv must not be empty", field="argv"), "argv must not be empty"),
    (Unsupported("`sandbox`"), "`sandbox` is not supported by this server"),
    (SandboxUnavailable("no kernel"), "the sandbox cannot be kept on this host: no kernel"),
    (
        UserRefused("bob", UserFault.UNKNOWN, "there is none"),
        "cannot start anything as user 'bob': there is none",
    ),
    (OutOfTurn("not yet"), "not yet"),
    (UnknownMethod("x/y"), "unknown method 'x/y'"),
    (RequestCancelled(), "the request was cancelled"),
    (Forbidden("directory", "/x"), "not allowed by the token: directory '/x'"),
    (AuditFailed("full"), "the audit log cannot be written: full"),
    (UnknownProcess("p"), "no process named 'p'"),
    (NameTaken("p"), "a process named 'p' exists already"),
    (NameAmbiguous("abcd"), "the identifiers of several processes begin with 'abcd'"),
    (StillRunning("p"), "process 'p' still runs"),
    (StillStarting("p"), "process 'p' is starting"),
    (StartCancelled("p"), "the start of process 'p' was cancelled"),
    (SessionUnknown("s"), "no session 's'"),
    (SessionBusy("s"), "session 's' is attached to another connection"),
    (SpawnFailed(Fault.PROGRAM, "x", "not found", number=2), "cannot start: program 'x': not found"),
    (ConfigBroken("f: x"), "f: x"),
    (HostUnfit("no /proc"), "this host cannot run processes: no /proc"),
    (StdinFailed(), "the process is being terminated and takes no input"),
    (NoTerminal(), "the process has no terminal"),
    (SignalFailed("why"), "signal not delivered: why"),
    (FileFailed(5), "Input/output error (os error 5)"),
    (FileRefused("path is not a regular file"), "path is not a regular file"),
    (FileUnsupported("not that"), "not that"),
    (TooManyEntries(7, 5), "a directory with 7 entries, more than 5"),
    (UnknownHandle("h"), "no file handle named 'h'"),
    (HandleTaken("h"), "a file handle named 'h' exists already"),
    (BadUrl("empty host"), "empty host"),
    (BadHeader("X-A", HeaderFault.VALUE), "header 'X-A': value"),
    (BadHeader("X-A", HeaderFault.EMPTY, "V"), "header 'X-A' from variable 'V': empty"),
    (HttpFailed(HttpFault.SENDING, "http://h/", "why"), "HTTP request failed: http://h/: why"),
    (LimitReached("sessions", 3), "limit reached: sessions (3)"),
    (LinkLost("refused"), "the connection is lost: refused"),
    (
        OutcomeUnknown("process/signal"),
        "the connection broke before process/signal was answered; it may have been done",
    ),
    (ProcessLost("p", "gone"), "process 'p' is lost: gone"),
    (OutputGap(3, 7, 10), "10 bytes of output are no longer kept (numbers 3 to 7)"),
    (OutputGap(3, 7, None), "an unknown number of bytes of output are no longer kept (numbers 3 to 7)"),
    (Unexpected(-1, "what"), "what (-1)"),
]


@pytest.mark.parametrize(("error", "sentence"), SENTENCES, ids=lambda value: type(value).__name__)
def test_an_error_says_what_happened(error: HoldfastError, sentence: str) -> None:
    assert str(error) == sentence


def test_every_error_has_its_sentence_here() -> None:
    """A new one is not forgotten."""
    defined = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, HoldfastError)
    }
    abstract = {HoldfastError, Refused, errors._Named, errors._Reasoned, errors._OfFile, errors._OfSession}

    assert defined - abstract == {type(error) for error, _ in SENTENCES}


@pytest.mark.parametrize(
    "error",
    [
        BadRequest("x"),
        Unsupported("x"),
        SandboxUnavailable("x"),
        UserRefused("x", UserFault.NOT_ROOT, "x"),
        OutOfTurn("x"),
        RequestCancelled(),
        Forbidden("path", "/x"),
        UnknownProcess("p"),
        SessionBusy("s"),
    ],
)
def test_what_the_caller_can_fix_is_a_refusal(error: HoldfastError) -> None:
    assert isinstance(error, Refused)


@pytest.mark.parametrize(
    "error",
    [SpawnFailed(Fault.SYSTEM, "fork", "no memory"), StdinFailed(), LimitReached("x", 1), AuditFailed("x")],
)
def test_what_the_caller_cannot_fix_is_none(error: HoldfastError) -> None:
    assert not isinstance(error, Refused)


def test_facts_are_attributes() -> None:
    """Whoever translates an error must not take its sentence apart."""
    error = SpawnFailed(
        Fault.PROGRAM, "x", "not found", number=2, terminal=True, search=ProgramSearch("/bin")
    )

    facts = (error.fault, error.subject, error.reason, error.number, error.terminal, error.search)

    assert facts == (Fault.PROGRAM, "x", "not found", 2, True, ProgramSearch("/bin"))


def test_facts_that_nobody_gave_are_absent() -> None:
    error = SpawnFailed(Fault.DIRECTORY, "/x", "gone")

    assert (error.number, error.terminal, error.search, BadRequest("x").field) == (None, False, None, None)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOENT, FileNotFoundError),
        (errno.EEXIST, FileExistsError),
        (errno.EACCES, PermissionError),
        (errno.EPERM, PermissionError),
        (errno.EISDIR, IsADirectoryError),
        (errno.ENOTDIR, NotADirectoryError),
        (errno.ENOSPC, OSError),
    ],
)
def test_what_the_system_would_not_do_is_the_error_that_python_has_for_it(
    number: int, kind: type[OSError]
) -> None:
    """A program that was written for files of its own host handles those of another one."""
    with pytest.raises(kind) as caught:
        raise FileFailed(number)

    error = caught.value
    assert isinstance(error, FileFailed)
    assert (error.errno, error.number, error.strerror) == (number, number, os.strerror(number))
    assert (error.filename, error.path) == (None, "")


def test_a_file_error_names_its_path_once_somebody_knows_it() -> None:
    asked, told = FileFailed(errno.ENOENT), FileFailed(errno.ENOENT, "/there")
    asked.filename = "/here"

    assert str(asked) == "No such file or directory (os error 2): '/here'"
    assert (asked.path, told.path, told.filename) == ("", "/there", "/there")


def test_what_is_refused_about_a_file_is_an_error_of_the_system_too() -> None:
    errors: list[OSError] = [FileRefused("why"), FileUnsupported("how"), TooManyEntries(7, 5)]

    assert [error.errno for error in errors] == [
        errno.EINVAL,
        errno.EOPNOTSUPP,
        errno.EOVERFLOW,
    ]


@pytest.mark.parametrize(
    "error", [FileFailed(errno.ENOENT), FileFailed(5, "/x"), FileRefused("why"), TooManyEntries(7, 5)]
)
def test_a_file_error_survives_pickling(error: OSError) -> None:
    error.filename = "/x"
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  (our own bytes)

    assert (type(copy), str(copy), copy.errno, copy.filename) == (type(error), str(error), error.errno, "/x")


def test_a_simple_error_survives_pickling() -> None:
    """Tools that run tests in other processes do that."""
    copy = pickle.loads(pickle.dumps(LimitReached("sessions", 3, name="session.sessions")))  # noqa: S301  (our own bytes)

    assert (copy.limit, copy.value, copy.name) == ("sessions", 3, "session.sessions")
