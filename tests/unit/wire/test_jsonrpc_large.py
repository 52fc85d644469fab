"""Messages that cost more than others: many values, many escapes, much of everything."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Malformed, Message, Notification, Request, Uploaded
from holdfast.wire.serde_json import MOST_VALUES
from tests.fakes.work import peak_memory, steps


@pytest.mark.parametrize("read", [jsonrpc.decode, jsonrpc.decode_loosely])
def test_far_too_many_values_are_refused_before_memory_is_taken_for_them(
    read: Callable[[bytes], Message],
) -> None:
    """A text of 64 MiB could become gigabytes."""
    text = b'{"id":1,"method":"x","params":[%b1]}' % (b"[],{}," * 2 * MOST_VALUES)

    def work() -> None:
        with pytest.raises(Malformed, match=f"{MOST_VALUES}"):
            read(text)

    assert peak_memory(work) < len(text)


@pytest.mark.parametrize("read", [jsonrpc.decode, jsonrpc.decode_loosely])
def test_what_looks_like_many_values_may_be_a_text(read: Callable[[bytes], Message]) -> None:
    """Commas and brackets in strings are letters like others."""
    text = b'%b\\"' % (b"[,{" * 2 * MOST_VALUES)

    message = read(b'{"id":1,"method":"x","params":["%b"]}' % text)

    assert message == Request(1, "x", [text.decode().replace('\\"', '"')])


@pytest.mark.parametrize("text", [rb"\n", rb"\\", rb"\"", rb"\\\"", rb"\\n\"\\", rb"\u0022", rb"\u005c\""])
def test_a_message_with_escapes_needs_no_second_look(text: bytes) -> None:
    """Scripts are full of them."""
    whole = b'{"id":1,"method":"x","params":{"a":"%b","%b":1}}' % (text * 10_000, text)

    assert steps(lambda: jsonrpc.decode(whole)) < 200
    assert jsonrpc.decode(whole) == Request(1, "x", json.loads(whole)["params"])


@pytest.mark.parametrize("text", [rb"\n", rb"\\", rb"\"", rb"\\\""])
def test_a_repeated_key_is_found_among_escapes(text: bytes) -> None:
    """The quotation marks of texts are not those of keys."""
    whole = b'{"id":1,"method":"x","params":{"%b":"%b","%b":1}}' % (text, text * 200, text)

    with pytest.raises(Malformed, match="duplicate JSON object key"):
        jsonrpc.decode(whole)


@pytest.mark.parametrize(("member", "values"), [(b"1,", 1), (b"{},", 1), (b'{"a":1},', 2)])
def test_as_many_values_as_allowed_pass_in_any_shape(member: bytes, values: int) -> None:
    """The limit is on values, not on how they are arranged."""
    rest = MOST_VALUES - 6  # Those of the message, and the last two.
    whole = b'{"id":1,"method":"x","params":[%b1,1]}' % (member * (rest // values))

    assert isinstance(jsonrpc.decode(whole), Request)
    with pytest.raises(Malformed, match="exceeds the limit"):
        jsonrpc.decode(b'{"a":1,' + whole[1:])


# Uploads: one long text of base64, which is read apart from the rest.

DATA = "QUJD" * 5000
DEEP = "[" * 130 + "]" * 130
UPLOAD = '{"id":7,"method":"process/write","params":{"processId":"p","chunk":"%s","writeId":"w"}}'


def outcome(decode: Callable[[bytes], jsonrpc.Message], text: str) -> object:
    """The message as it was sent, or what is wrong with it."""
    try:
        message = decode(text.encode())
    except jsonrpc.Malformed as malformed:
        return str(malformed)
    if isinstance(message, Request | Notification) and isinstance(message.params, Uploaded):
        message.params = message.params.as_sent()
    return message


@pytest.mark.parametrize(
    "text",
    [
        UPLOAD % DATA,
        UPLOAD % (DATA + "QQ=="),
        UPLOAD % (DATA + "QR=="),
        UPLOAD % (DATA + "QQ="),
        UPLOAD % (DATA + "===="),
        UPLOAD % (DATA + "Q"),
        UPLOAD % (DATA + "!"),
        UPLOAD % (DATA + "\\u0041"),
        UPLOAD % (DATA + "\n"),
        UPLOAD % (DATA + "é"),
        UPLOAD.replace('"id"', ' "id"') % DATA,
        UPLOAD.replace('"writeId"', '"chunk":"","writeId"') % DATA,
        UPLOAD.replace('"chunk":"%s"', '"chunk":"","chunk":"%s"') % DATA,
        UPLOAD.replace('"chunk"', '"x":{"chunk":""},"chunk"') % DATA,
        UPLOAD.replace('"chunk":"%s"', '"x":{"chunk":"%s"},"chunk":""') % DATA,
        UPLOAD.replace('"chunk":"%s"', '"x":{"chunk":"%s"},"chunk":"-=-"') % DATA,
        UPLOAD.replace('"chunk":"%s"', '"x":{"chunk":"%s"},"chunk":"\\u002d=-"') % DATA,
        UPLOAD.replace('"chunk":"%s"', '"chunk":"%s"  ') % DATA,
        UPLOAD.replace('"w"', '"-=-"') % DATA,
        UPLOAD.replace('"chunk":"%s"', '"chunk":["%s"]') % DATA,
        UPLOAD.replace('"chunk"', '"ch\\u0075nk"') % DATA,
        UPLOAD.replace('"chunk"', '"chunk":"","ch\\u0075nk"') % DATA,
        UPLOAD.replace('"w"', f'"w","x":{DEEP}') % DATA,
        UPLOAD.replace('"w"', f'"w","x":{"[" * 120 + "]" * 120}') % DATA,
        UPLOAD.replace('"w"', '"w","x":1.0') % DATA,
        UPLOAD.replace('"w"', '"' + "w" * 5000 + '"') % DATA,
        UPLOAD.replace('"p"', '"' + "p" * 5000 + '"') % DATA,
        UPLOAD.replace('"id":7', '"id":[7]') % DATA,
        UPLOAD.replace('"id":7,', "") % DATA,
        UPLOAD.replace('{"id":7,', '{"id":7,"method":"x",') % DATA,
        UPLOAD % DATA + "x",
        UPLOAD[:-1] % DATA,
        f'{{"id":7,"method":"{DATA}","params":{{}}}}',
        f'{{"id":7,"method":"m","params":"{DATA}"}}',
        f'["chunk":"{DATA}"]',
        f'"chunk":"{DATA}"',
        f'{{"id":7,"result":"{DATA}"}}',
        f'{{"id":7,"method":"m","params":{{"chunk":"{DATA}',
    ],
)
def test_an_upload_is_read_as_any_other_message_is(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    found = outcome(jsonrpc.decode, text), outcome(jsonrpc.decode_loosely, text)
    monkeypatch.setattr(jsonrpc, "_decode_around", lambda text: None)

    assert found == (outcome(jsonrpc.decode, text), outcome(jsonrpc.decode_loosely, text))


@pytest.mark.parametrize("blank", ["", " "])
def test_an_upload_is_read_apart_from_the_rest(blank: str) -> None:
    """Else the time for it is that of any JSON, which is ten times as long."""
    text = UPLOAD.replace('"%s"', f'"%s"{blank}') % DATA

    params = jsonrpc._decode_around(text.encode())["params"]

    assert params == {"processId": "p", "chunk": "", "writeId": "w"}
    assert (params.member, params.data) == ("chunk", b"ABC" * 5000)
