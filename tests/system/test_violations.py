"""Protocol violations: each ends the connection with a close frame that says why, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.client import Client, client
from tests.fakes.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Frame,
    Wire,
    frame_bytes,
    frame_head,
)
from tests.fakes.server import program_at

MIB = 1 << 20


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One server for all tests of this module; none of them may harm it."""
    with program_at() as (_, url):
        yield url


async def farewell_to(url: str, data: bytes) -> Frame:
    """Send bytes on a new WebSocket; gives the close frame the server answers with."""
    wire = await Wire.open(url)
    wire.writer.write(data)
    frame = await wire.farewell()
    wire.send(CLOSE, b"" if frame is None else frame.payload[:2])
    await wire.ended()
    await wire.close()
    assert frame is not None, "the connection ended without a close frame"
    return frame


FRAMES = {
    "bad opcode": (frame_bytes(3, b""), 1002, "unknown opcode 3"),
    "bad control opcode": (frame_bytes(11, b""), 1002, "unknown opcode 11"),
    "unmasked frame": (frame_bytes(TEXT, b"{}", masked=False), 1002, "frames from a client must be masked"),
    "reserved bits": (frame_bytes(TEXT | 0x40, b"{}"), 1002, "reserved bits are set"),
    "continuation without a start": (frame_bytes(CONTINUATION, b"{}"), 1002, "fragments are out of order"),
    "start inside a message": (
        frame_bytes(TEXT, b"{", final=False) + frame_bytes(TEXT, b"}"),
        1002,
        "fragments are out of order",
    ),
    "fragmented ping": (
        frame_bytes(PING, b"", final=False),
        1002,
        "a control frame is too long or fragmented",
    ),
    "long ping": (frame_bytes(PING, b"x" * 126), 1002, "a control frame is too long or fragmented"),
    "text that is not UTF-8": (frame_bytes(TEXT, b'"\xff"'), 1007, "a text message is not UTF-8"),
    "text that is cut inside a character": (
        frame_bytes(TEXT, b'"\xc3', final=False) + frame_bytes(CONTINUATION, b'"'),
        1007,
        "a text message is not UTF-8",
    ),
    "frame over 64 MiB": (
        frame_head(TEXT, 64 * MIB + 1),
        1009,
        "message is over the limit of 67108864 bytes",
    ),
    "frame with a length beyond reason": (
        frame_head(TEXT, (1 << 63) - 1),
        1009,
        "message is over the limit of 67108864 bytes",
    ),
    "close frame with half a code": (frame_bytes(CLOSE, b"x"), 1002, "ill-formed close frame"),
    "close frame with a reserved code": (frame_bytes(CLOSE, b"\x03\xed"), 1002, "ill-formed close frame"),
}


@pytest.mark.parametrize(("data", "code", "reason"), FRAMES.values(), ids=FRAMES.keys())
async def test_a_violation_of_websocket_ends_with_a_close_frame_that_says_why(
    url: str, data: bytes, code: int, reason: str
) -> None:
    """A silent cut looks like a network problem and is retried for ever."""
    frame = await farewell_to(url, data)

    assert (frame.close_code, frame.close_reason) == (code, reason)


@pytest.mark.slow
async def test_a_message_over_64_mib_in_fragments_is_refused_when_it_gets_there(url: str) -> None:
    """The limit is for the whole message, whatever the size of its pieces."""
    piece = frame_bytes(CONTINUATION, bytes(16 * MIB), final=False)
    first = frame_bytes(TEXT, bytes(16 * MIB), final=False)

    frame = await farewell_to(url, first + piece * 3 + frame_head(CONTINUATION, 1, final=True) + b"x")

    assert (frame.close_code, frame.close_reason) == (
        1009,
        "message is over the limit of 67108864 bytes",
    )


@pytest.mark.slow
async def test_a_message_of_64_mib_in_fragments_is_taken(url: str) -> None:
    """The limit is inclusive: blanks around a message are legal JSON."""
    wire = await Wire.open(url)
    request = b'{"id":1,"method":"x"}'
    wire.send(TEXT, request + b" " * (16 * MIB - len(request)), final=False)
    for number in range(3):
        wire.send(CONTINUATION, b" " * (16 * MIB), final=number == 2)

    answer = await wire.receive()
    await wire.close()

    assert answer is not None
    assert b'"id":1' in answer.payload
    assert b"-32601" in answer.payload


MESSAGES = {
    "unknown notification": ('{"method":"nope"}', "unexpected notification `nope`"),
    "request method as a notification": (
        '{"method":"process/terminate","params":{"processId":"p"}}',
        "unexpected notification `process/terminate`",
    ),
    "initialize as a notification": (
        '{"method":"initialize","params":{"clientName":"x"}}',
        "unexpected notification `initialize`",
    ),
    "unsolicited response": (
        '{"id":7,"result":{}}',
        "response to a request that was never sent: id 7",
    ),
    "unsolicited error": (
        '{"id":"x","error":{"code":1,"message":"m"}}',
        "response to a request that was never sent: id x",
    ),
}


@pytest.mark.parametrize(("message", "reason"), MESSAGES.values(), ids=MESSAGES.keys())
async def test_a_violation_of_the_dialect_ends_with_a_close_frame_that_says_why(
    url: str, message: str, reason: str
) -> None:
    """The client's author reads the reason instead of guessing."""
    talking = await Client.open(url)
    await talking.start("p", "sleep", "1000")
    talking.wire.send_text(message)

    frame = await talking.ended()
    await talking.close()
    async with client(url, resume=talking.session) as again:
        assert await again.terminate("p"), "the session is detached, not destroyed"

    assert frame is not None
    assert (frame.close_code, frame.close_reason) == (1008, reason)


async def test_initialized_before_initialize_ends_with_a_close_frame_that_says_why(url: str) -> None:
    """There is no session yet that could become ready."""
    frame = await farewell_to(url, frame_bytes(TEXT, b'{"method":"initialized"}'))

    assert (frame.close_code, frame.close_reason) == (1008, "`initialized` was sent before `initialize`")


async def test_an_answer_due_before_the_violation_is_delivered_before_the_close_frame(url: str) -> None:
    """What was asked properly is answered properly."""
    wire = await Wire.open(url)
    wire.writer.write(
        frame_bytes(TEXT, b'{"id":1,"method":"nope"}') + frame_bytes(TEXT, b'{"method":"nope"}')
    )

    answer, farewell = await wire.receive(), await wire.receive()
    await wire.close()

    assert answer is not None
    assert farewell is not None
    assert (answer.op, farewell.op) == (TEXT, CLOSE)


async def test_a_message_that_cannot_be_parsed_is_answered_and_the_connection_stays(url: str) -> None:
    """Only what leaves no common ground ends a connection."""
    async with client(url) as talking:
        talking.wire.send_text("{")
        await talking.until(lambda: any(message.get("id") == -1 for message in talking.messages))
        status = await talking.call("environment/status")

    error = next(message for message in talking.messages if message["id"] == -1)["error"]
    assert error["code"] == -32600
    assert error["message"].startswith(
        "failed to parse websocket JSON-RPC message from exec-server websocket 127.0.0.1:"
    )
    assert status == {"status": "ready"}


async def test_binary_frames_are_read_like_text(url: str) -> None:
    """Some clients send bytes; the dialect has never cared."""
    wire = await Wire.open(url)
    wire.send(BINARY, b'{"id":1,"method":"nope"}')

    answer = await wire.receive()
    await wire.close()

    assert answer is not None
    assert answer.op == TEXT
    assert b"-32601" in answer.payload


@pytest.mark.parametrize("payload", [b"", b"\x03\xe8", b"\x03\xe8bye", b"\x0b\xb8"])
async def test_a_clients_close_frame_is_answered_with_its_code(url: str, payload: bytes) -> None:
    """The closing handshake of the protocol, so that a client knows its last words arrived."""
    wire = await Wire.open(url)
    wire.send(CLOSE, payload)

    frame = await wire.receive()
    end = await wire.receive()
    await wire.close()

    assert frame == Frame(CLOSE, payload[:2])
    assert end is None


async def test_a_ping_is_answered_with_its_payload_also_between_fragments(url: str) -> None:
    """A peer may check on us at any time."""
    wire = await Wire.open(url)
    wire.send(TEXT, b'{"id":1,', final=False)
    wire.send(PING, b"are you there")
    wire.send(CONTINUATION, b'"method":"x"}')

    pong, answer = await wire.receive(), await wire.receive()
    await wire.close()

    assert pong == Frame(PONG, b"are you there")
    assert answer is not None
    assert b'"id":1' in answer.payload


async def test_what_follows_a_violation_is_ignored_until_the_peer_says_goodbye(url: str) -> None:
    """After the close frame nothing the peer says counts, and it does not get two of them."""
    wire = await Wire.open(url)
    wire.writer.write(frame_bytes(3, b"") + frame_bytes(TEXT, b'{"id":1,"method":"x"}') * 10)
    first = await wire.receive()
    wire.send(TEXT, b'{"id":2,"method":"x"}')
    wire.send(CLOSE, b"\x03\xea")

    rest = await wire.receive()
    await wire.close()

    assert first is not None
    assert first.op == CLOSE
    assert rest is None
