"""Errors in the words of the exec dialect."""

from __future__ import annotations

import pytest

from holdfast.dialects.dialect import UnknownMethod, WireError
from holdfast.dialects.exec.explain import explain
from holdfast.errors import (
    BadRequest,
    Fault,
    HoldfastError,
    LimitReached,
    NameTaken,
    NoTerminal,
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
        (LimitReached("x", 5), WireError(-32603, "limit reached: x (5)", {"limit": "x", "value": 5})),
        (Refused("other"), WireError(-32600, "other")),
        (HoldfastError("strange"), WireError(-32603, "strange")),
    ],
)
def test_an_error_has_its_code_and_its_words(error: HoldfastError, explained: WireError) -> None:
    assert explain(error) == explained


def program(subject: str, reason: str, number: int, *, terminal: bool = False) -> SpawnFailed:
    return SpawnFailed(Fault.PROGRAM, subject, reason, number=number, terminal=terminal)


def looked_up(subject: str, path: str | None, *, terminal: bool) -> SpawnFailed:
    search = Search(path)
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


def test_a_failed_start_names_in_its_data_what_the_words_leave_out() -> None:
    """A missing program and a missing directory have the same words; a client need not guess."""
    missing = SpawnFailed(Fault.DIRECTORY, "/no\udcffé", "No such file or directory", number=2)

    assert explain(missing).data == {
        "fault": "directory",
        "subject": "/no\ufffdé",
        "reason": "No such file or directory",
        "errno": 2,
    }
    assert explain(SpawnFailed(Fault.PROGRAM, "", "empty")).data == {
        "fault": "program",
        "subject": "",
        "reason": "empty",
    }
