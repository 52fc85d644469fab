"""Errors over the wire and back, of our servers and of foreign ones."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import errors
from holdfast.client.foreign import error_of
from holdfast.dialects.exec.explain import explain
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
    NameAmbiguous,
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
from holdfast.wire.jsonrpc import ErrorBody

OURS = {"LinkLost", "OutcomeUnknown", "ProcessLost", "OutputGap", "Unexpected"}
"""What a client says of a server, and never the reverse."""

ODD = [
    "",
    "plain",
    "with `ticks` and 'quotes'",
    "two\nlines",
    "x already exists",
    "x is starting",
    "x start was cancelled",
    "No such file or directory (os error 2)",
    "a) is not supported by this server",
    "unknown process id y",
    "snow ☃ and \U0001f40d",
    "%2F\\ {}",
]
"""Names that somebody may choose, some of them with the words of other errors."""

NAMED = (UnknownProcess, NameTaken, StillStarting, StartCancelled, SessionUnknown, SessionBusy)
OURS_ONLY = (NameAmbiguous, StillRunning)
"""No other server says these, so that they are never read from words."""
WITH_REASON = (SandboxUnavailable, SignalFailed, BadUrl, AuditFailed, ConfigBroken, HostUnfit)


def examples() -> Iterator[tuple[HoldfastError, str]]:
    """Each error with a method that may fail with it."""
    for text in ODD:
        yield from ((kind(text), "process/find") for kind in (*NAMED, *OURS_ONLY))
        yield from ((kind(text), "process/start") for kind in WITH_REASON)
        yield from ((kind(text), "fs/open") for kind in (UnknownHandle, HandleTaken))
        yield Unsupported(text), "process/start"
        yield FileRefused(f"path `{text}` is not a file"), "fs/readFile"
        yield SpawnFailed(Fault.PROGRAM, text, f"reason {text}", number=errno.ENOENT), "process/start"
        yield SpawnFailed(Fault.SYSTEM, text, text), "process/start"
        yield LimitReached(text, 7), "process/start"
        yield Forbidden("directory", text), "process/start"
        yield UserRefused(text, UserFault.UNKNOWN, f"reason {text}"), "process/start"
        yield HttpFailed(HttpFault.SENDING, text, f"why {text}"), "http/request"
        yield HttpFailed(HttpFault.TIMEOUT, text, "timed out"), "http/request"
        yield HttpFailed(HttpFault.SCHEME, text, "why"), "http/request"
        for fault in (HeaderFault.MISSING, HeaderFault.EMPTY, HeaderFault.FORBIDDEN):
            yield BadHeader("x-name", fault, text), "http/request"
    for number in (errno.ENOENT, errno.EACCES, errno.EIO, errno.ELOOP, errno.ENOSPC, 4000):
        yield FileFailed(number), "fs/copy"
    for late in (HttpFault.NO_TIME, HttpFault.REDIRECTS, HttpFault.BODY, HttpFault.BODY_TIMEOUT):
        yield HttpFailed(late, "", "why"), "http/request"  # The words have no URL.
    yield BadHeader("x-name", HeaderFault.VALUE), "http/request"
    yield BadHeader("", HeaderFault.NAME), "http/request"  # The words have no name.
    yield StdinFailed(), "process/write"
    yield NoTerminal(), "process/resize"
    yield TooManyEntries(60_000, 50_000), "fs/readDirectory"
    yield FileUnsupported("recursive no-follow removal is unsupported"), "fs/remove"
    yield FileUnsupported("directory already exists"), "fs/createDirectory"
    yield RequestCancelled(), "process/read"
    yield OutOfTurn("initialize may only be sent once per connection"), "initialize"
    yield OutOfTurn("client must call initialize before using exec methods"), "process/start"
    yield OutOfTurn("client must send initialized before using filesystem methods"), "fs/open"
    yield BadRequest("missing field `path`"), "fs/open"
    yield BadRequest("something (os error 2)"), "process/start"
    yield UnknownMethod("fs/new"), "fs/new"
    yield Refused("no"), "process/start"


def over_the_wire(error: HoldfastError, method: str = "") -> HoldfastError:
    told = explain(error)
    body = msgspec.json.decode(
        msgspec.json.encode({"code": told.code, "message": told.message, "data": told.data}), type=ErrorBody
    )
    return error_of(body, method)


def facts(error: HoldfastError) -> tuple[object, ...]:
    # A failure of the system is of the class that Python has for its number, too.
    kind = FileFailed if isinstance(error, FileFailed) else type(error)
    return (kind, *error.args)


@pytest.mark.parametrize(("error", "method"), list(examples()), ids=lambda value: str(value)[:40])
def test_an_error_comes_back_as_what_it_was(error: HoldfastError, method: str) -> None:
    """A program that handles errors of this host handles those of another one the same way."""
    found = over_the_wire(error, method)

    # What a generic refusal says is all there is to it.
    expected = (Refused, str(error)) if type(error) is Refused else facts(error)
    assert facts(found) == expected
    assert str(found) == str(error)


def test_every_error_that_a_server_can_say_is_in_the_examples() -> None:
    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, HoldfastError) and not name.startswith("_")
    }

    assert kinds - OURS - {"HoldfastError"} <= {type(error).__name__ for error, _ in examples()} | LOCAL


LOCAL = {name for name in ("TimedOut", "CommandFailed") if hasattr(errors, name)}
"""What the interface for programs says of a command."""


@given(name=st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_name_comes_back(name: str) -> None:
    for kind in NAMED:
        assert facts(over_the_wire(kind(name), "process/read")) == (kind, name)


def test_a_method_that_a_foreign_server_has_not_is_not_supported() -> None:
    stub = ErrorBody(-32601, "exec-server stub does not implement `fs/new` yet")

    assert facts(error_of(stub)) == (Unsupported, "`fs/new`")
    assert facts(error_of(ErrorBody(-32601, "no such method"))) == (Unsupported, "no such method")


FOREIGN = [
    *((kind, "process/start") for kind in NAMED),
    *((kind, "fs/open") for kind in (UnknownHandle, HandleTaken)),
]


@pytest.mark.parametrize(("kind", "method"), FOREIGN)
@pytest.mark.parametrize("name", ODD)
def test_the_sentences_of_the_reference_are_understood(
    kind: type[HoldfastError], method: str, name: str
) -> None:
    """It sends no data, and our servers use its sentences."""
    told = explain(kind(name))

    assert facts(error_of(ErrorBody(told.code, told.message), method)) == (kind, name)


def test_a_refusal_about_files_is_one_also_in_words_that_nobody_has_seen_yet() -> None:
    assert facts(error_of(ErrorBody(-32600, "too round"), "fs/copy")) == (FileRefused, "too round")
    assert facts(error_of(ErrorBody(-32600, "too round"), "process/start")) == (Refused, "too round")


def test_an_error_without_a_class_keeps_its_code() -> None:
    assert facts(error_of(ErrorBody(-1, "odd"))) == (Unexpected, -1, "odd")
    assert facts(error_of(ErrorBody(-32603, "internal error"), "fs/copy")) == (
        Unexpected,
        -32603,
        "internal error",
    )


def test_the_words_of_the_reference_are_enough() -> None:
    """It tells no data."""
    text = "http/request failed: error sending request for url (http://x/)"

    assert facts(error_of(ErrorBody(-32603, text), "http/request")) == (
        HttpFailed,
        HttpFault.SENDING,
        "http://x/",
        "sending",
    )
    assert facts(error_of(ErrorBody(-32603, "Permission denied (os error 13)"), "process/start")) == (
        FileFailed,
        13,
    )


DEEP: list[object] = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "spawnFailed", "fault": "new", "subject": "x", "reason": "y"},
        {"kind": "spawnFailed", "fault": "program", "subject": 1, "reason": "y"},
        {"kind": "limitReached", "limit": "l", "value": "many"},
        {"kind": "limitReached", "limit": DEEP, "value": 1},
        {"kind": "nameTaken"},
        {"kind": "fileFailed", "errno": True},
        {"kind": ["nameTaken"]},
        {"kind": "HoldfastError"},
        {"kind": "Exception"},
        ["kind", "nameTaken"],
        "nameTaken",
        5,
    ],
)
def test_data_that_is_none_is_passed_over(data: object) -> None:
    """What a server sends is looked at, and nothing else is done with it."""
    assert facts(error_of(ErrorBody(-32603, "x", data))) == (Unexpected, -32603, "x")


def test_long_words_cost_no_more_than_their_length() -> None:
    """A server must not be able to keep its clients busy with one answer."""
    words = " does not implement `" * 60_000

    assert facts(error_of(ErrorBody(-32601, words))) == (Unsupported, words)
