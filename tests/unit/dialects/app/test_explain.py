"""Errors in the words of the app dialects."""

from __future__ import annotations

import pytest

from holdfast.dialects.app.explain import Declined, Failed, explain
from holdfast.dialects.dialect import WireError
from holdfast.errors import (
    BadRequest,
    FileFailed,
    HoldfastError,
    LimitReached,
    NameTaken,
    NoTerminal,
    OutOfTurn,
    Refused,
    SignalFailed,
    StdinFailed,
    UnknownMethod,
    UnknownProcess,
    Unsupported,
)
from holdfast.protocol.shapes import Undecodable

METHODS = ("initialize", "process/spawn")


@pytest.mark.parametrize(
    ("error", "explained"),
    [
        (
            UnknownMethod("a`b\n"),
            WireError(
                -32600,
                "Invalid request: unknown variant `a`b\n`, expected one of `initialize`, `process/spawn`",
            ),
        ),
        (Undecodable("missing field `x`"), WireError(-32600, "Invalid request: missing field `x`")),
        (BadRequest("out of range", field="x"), WireError(-32602, "out of range")),
        (
            Declined("stdin is already closed"),
            WireError(-32600, "stdin is already closed", {"kind": "refused"}),
        ),
        (Unsupported("a sandbox"), WireError(-32600, "a sandbox is not supported by this server")),
        (OutOfTurn("not yet"), WireError(-32600, "not yet")),
        (UnknownProcess("p"), WireError(-32600, "no process named 'p'")),
        (NameTaken("p"), WireError(-32600, "a process named 'p' exists already")),
        (NoTerminal(), WireError(-32600, "the process has no terminal")),
        (Refused("other"), WireError(-32600, "other")),
        (
            Failed("it broke", FileFailed(2)),
            WireError(-32603, "it broke", {"kind": "fileFailed", "errno": 2}),
        ),
        (
            Declined("it runs", NameTaken("p")),
            WireError(-32600, "it runs", {"kind": "nameTaken", "name": "p"}),
        ),
        (
            StdinFailed(),
            WireError(-32603, "the process is being terminated and takes no input"),
        ),
        (SignalFailed("why"), WireError(-32603, "signal not delivered: why")),
        (
            LimitReached("processes", 5),
            WireError(
                -32001,
                "Server overloaded; retry later.",
                {"kind": "limitReached", "limit": "processes", "value": 5},
            ),
        ),
        (HoldfastError("strange"), WireError(-32603, "strange")),
    ],
)
def test_an_error_has_its_code_and_its_words(error: HoldfastError, explained: WireError) -> None:
    found = explain(error, METHODS)

    assert (found.code, found.message) == (explained.code, explained.message)
    assert explained.data is None or found.data == explained.data


def test_own_errors_are_their_words() -> None:
    """Logs and tracebacks show the same sentence as the wire."""
    assert str(Declined("no")) == Declined("no").text == "no"
    assert str(Failed("broken", NoTerminal())) == Failed("broken", NoTerminal()).text == "broken"
