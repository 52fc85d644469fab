"""What a client reads of a server's answers: also those of servers that say less, or nonsense."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.protocol.files import DirectoryEntry, ReadBlockResult, ReadDirectoryResult
from holdfast.protocol.inspecting import LIST
from holdfast.protocol.processes import (
    READ,
    TERMINATE,
    ListResult,
    OutputChunk,
    ProcessClosed,
    ProcessExited,
    ProcessOutput,
    ReadResult,
    WireOutputGap,
)
from holdfast.protocol.session import INITIALIZE
from holdfast.protocol.shapes import Nothing, Signature, reader
from holdfast.protocol.start import START
from holdfast.wire.jsonrpc import Incoming


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        (b'{"sessionId":"s","environmentInfo":{"shell":{"name":"sh","path":"/bin/sh"}}}', INITIALIZE),
        (b'{"processId":"p"}', START),
        (b'{"running":true}', TERMINATE),
        (b'{"chunks":[],"nextSeq":1,"exited":false,"exitCode":null,"closed":false,"failure":null}', READ),
        (b'{"processes":[],"more":false}', LIST),
    ],
)
def test_what_the_protocol_promises_is_enough(text: bytes, signature: Signature[Any, Any]) -> None:
    assert isinstance(signature.read(text), signature.result)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b'{"processId":"p","seq":1,"exitCode":0}', ProcessExited),
        (b'{"id":1,"result":{}}', Incoming),
        (b'{"id":"x","error":{"code":1,"message":"m"}}', Incoming),
        (b'{"method":"m","jsonrpc":"2.0"}', Incoming),
    ],
)
def test_messages_of_others_are_read_too(text: bytes, kind: type) -> None:
    assert isinstance(reader(kind)(text), kind)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            b'{"entries":[{"fileName":"x","isDirectory":false,"isFile":true,"new":1}]}',
            ReadDirectoryResult([DirectoryEntry("x", is_directory=False, is_file=True)]),
        ),
        (b'{"chunk":"","eof":true}', ReadBlockResult("", eof=True)),
        (b'{"processes":[],"new":[]}', ListResult([])),
    ],
)
def test_what_is_not_known_is_passed_over(text: bytes, value: object) -> None:
    assert reader(type(value))(text) == value


@pytest.mark.parametrize("text", [b"{}", b"null", b'{"new":1}', b"\xff"])
def test_who_expects_nothing_is_content_with_anything(text: bytes) -> None:
    assert reader(Nothing)(text) == Nothing()


@pytest.mark.parametrize("text", [b'{"processId":"\xff","seq":1}', b'{"x":' + b"[" * 100_000, b"", b"1"])
def test_whatever_is_wrong_with_an_answer_it_is_one_error(text: bytes) -> None:
    """Who reads an answer has one kind of trouble to think of."""
    with pytest.raises(msgspec.DecodeError):
        reader(ProcessClosed)(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ReadResult, '{"chunks":[],"nextSeq":%d,"exited":false,"closed":false}'),
        (OutputChunk, '{"seq":%d,"stream":"pty","chunk":""}'),
        (WireOutputGap, '{"fromSeq":1,"toSeq":%d}'),
        (ProcessOutput, '{"processId":"p","seq":%d,"stream":"pty","chunk":""}'),
        (ProcessExited, '{"processId":"p","seq":%d,"exitCode":0}'),
        (ProcessClosed, '{"processId":"p","seq":%d}'),
    ],
)
def test_a_number_that_could_not_be_asked_for_is_not_taken(kind: type, text: str) -> None:
    """A client asks for what follows the numbers it was told, and a request has room for 64 bits."""
    assert isinstance(reader(kind)((text % (2**64 - 1)).encode()), kind)
    with pytest.raises(msgspec.DecodeError):
        reader(kind)((text % 2**64).encode())
