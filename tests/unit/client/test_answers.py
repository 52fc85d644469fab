"""The shapes of what a server says: those of our own server fit, and so do those of servers that say less."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from holdfast.client import answers, file_answers
from holdfast.dialects.exec import answers as said
from holdfast.dialects.exec import file_messages
from holdfast.dialects.shapes import Shape

MEMBERS_OF_OTHERS = {"Ending", "Envelope", "ErrorBody"}
"""Shapes that our server does not have by these names."""


def shapes(*modules: object) -> dict[str, type[msgspec.Struct]]:
    return {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, msgspec.Struct) and kind is not Shape
    }


@pytest.mark.parametrize("name", sorted(shapes(answers, file_answers).keys() - MEMBERS_OF_OTHERS))
def test_whatever_a_client_looks_for_is_what_our_server_says(name: str) -> None:
    """A member with another spelling would be missing for ever, and nobody would notice."""
    ours = shapes(said, file_messages)[name]
    told = {field.encode_name for field in msgspec.structs.fields(ours)}

    looked_for = {field.encode_name for field in msgspec.structs.fields(shapes(answers, file_answers)[name])}

    assert looked_for - told <= MORE.get(name, set())


MORE = {
    # Put together from bytes where they are said: see ``dialects.exec.describe``.
    "ReadResult": {"usage", "heldBy", "denials", "denial", "gap", "outcome"},
    "WaitResult": {"sandboxDenied", "denials", "denial"},
    "ProcessExited": {"denials", "denial"},
}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b'{"sessionId":"s","environmentInfo":{"shell":{"name":"sh","path":"/bin/sh"}}}', "InitializeResult"),
        (b'{"processId":"p"}', "StartResult"),
        (b'{"running":true}', "TerminateResult"),
        (
            b'{"chunks":[],"nextSeq":1,"exited":false,"exitCode":null,"closed":false,"failure":null}',
            "ReadResult",
        ),
        (b'{"processId":"p","seq":1,"exitCode":0}', "ProcessExited"),
        (b'{"processes":[],"more":false}', "ListResult"),
        (b'{"id":1,"result":{}}', "Envelope"),
        (b'{"id":"x","error":{"code":1,"message":"m"}}', "Envelope"),
        (b'{"method":"m","jsonrpc":"2.0"}', "Envelope"),
    ],
)
def test_what_the_protocol_promises_is_enough(text: bytes, kind: str) -> None:
    msgspec.json.decode(text, type=shapes(answers)[kind])


@pytest.mark.parametrize("text", [b'{"processId":"\xff","seq":1}', b'{"x":' + b"[" * 100_000, b"", b"1"])
def test_whatever_is_wrong_with_an_answer_it_is_one_error(text: bytes) -> None:
    """Who reads an answer has one kind of trouble to think of."""
    with pytest.raises(msgspec.DecodeError):
        answers.reader(answers.ProcessClosed)(text)
