"""What is no request of the app dialects is passed over in silence, and the connection goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_client import (
    TRANSPORTS,
    AppClient,
    Place,
    SocketLink,
    app_client,
    greeting,
    serving,
    stranger,
)
from tests.fakes.client import Message
from tests.fakes.frames import BINARY, CONTINUATION, PING, TEXT
from tests.fakes.server import run_to_end

KILL = b'"method":"process/kill","params":{"processHandle":"x"}'
"""The rest of a request that would be answered."""

UNKNOWN = 'no active process for process handle "x"'

GARBAGE: dict[str, bytes] = {
    "an open brace": b"{",
    "nothing": b"",
    "blanks": b"  \t ",
    "an empty array": b"[]",
    "an array of one request": b'[{"id":900,' + KILL + b"}]",
    "a number": b"1",
    "a string": b'"x"',
    "null": b"null",
    "true": b"true",
    "words": b"garbage",
    "an empty object": b"{}",
    "an id alone": b'{"id":900}',
    "a null id": b'{"id":null,' + KILL + b"}",
    "a fraction for an id": b'{"id":1.5,' + KILL + b"}",
    "a whole fraction for an id": b'{"id":1.0,' + KILL + b"}",
    "an exponent for an id": b'{"id":1e2,' + KILL + b"}",
    "a boolean for an id": b'{"id":true,' + KILL + b"}",
    "an array for an id": b'{"id":[],' + KILL + b"}",
    "an object for an id": b'{"id":{},' + KILL + b"}",
    "an id above 63 bits": b'{"id":9223372036854775808,' + KILL + b"}",
    "an id below 63 bits": b'{"id":-9223372036854775809,' + KILL + b"}",
    "a lone surrogate": b'{"id":"\\ud800",' + KILL + b"}",
    "a number for a method": b'{"id":900,"method":1,"params":{}}',
    "null for a method": b'{"id":900,"method":null,"params":{}}',
    "two ids": b'{"id":900,"id":901,' + KILL + b"}",
    "two methods": b'{"id":900,"method":"process/kill",' + KILL + b"}",
    "two params": b'{"id":900,"params":{},' + KILL + b"}",
    "a byte order mark": b"\xef\xbb\xbf" + b'{"id":900,' + KILL + b"}",
    "trailing characters": b'{"id":900,' + KILL + b"} x",
    "two objects": b'{"id":900,' + KILL + b'}{"id":901,' + KILL + b"}",
    "a raw control character": b'{"id":900,"method":"process/kill","params":{"processHandle":"\x01"}}',
    "a leading zero": b'{"id":00,' + KILL + b"}",
    "a number for a trace": b'{"id":900,"trace":1,' + KILL + b"}",
    "a string for a trace": b'{"id":900,"trace":"x",' + KILL + b"}",
    "a number in a trace": b'{"id":900,"trace":{"traceparent":1},' + KILL + b"}",
    "an unknown notification": b'{"method":"nosuch","params":{}}',
    "a request without an id": b"{" + KILL + b"}",
    "a greeting without an id": b'{"method":"initialize","params":{"clientInfo":{"name":"a","version":"1"}}}',
    "a late initialized": b'{"method":"initialized","params":{"x":1}}',
    "a result nobody asked for": b'{"id":900,"result":{}}',
    "an error nobody asked for": b'{"id":900,"error":{"code":1,"message":"m"}}',
    "a malformed error": b'{"id":900,"error":1}',
    "a very deep nesting": b'{"id":900,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"," + KILL + b"}",
}


@pytest.fixture(scope="module", params=TRANSPORTS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving(request.param, tmp_path_factory.mktemp("garbage")) as place:
        yield place


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving("ws", tmp_path_factory.mktemp("garbage")) as place:
        yield place


async def heard(talking: AppClient) -> list[Message]:
    """Everything that was said before the answer to one more request."""
    before = len(talking.messages)
    refusal = await talking.refusal("process/kill", {"processHandle": "x"})
    assert refusal == (-32600, UNKNOWN)
    return talking.messages[before:-1]


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_is_passed_over(ws: Place, garbage: bytes) -> None:
    """No answer, since nobody knows to what; no end, since the next message may be sound."""
    async with app_client(ws) as talking:
        talking.link.send(garbage)

        assert await heard(talking) == []


@pytest.mark.slow
async def test_all_garbage_together_is_passed_over_on_every_transport(place: Place) -> None:
    """Between sound requests, in one packet, by a client that has work running meanwhile."""
    async with app_client(place) as talking:
        await talking.spawn("h", "cat", streamStdin=True)
        before = len(talking.messages)
        texts = []
        for number, garbage in enumerate(GARBAGE.values()):
            texts += [garbage, b'{"id":%d,' % (1000 + number) + KILL + b"}"]
        talking.link.send(*texts)
        unheard = await heard(talking)
        await talking.write("h", b"alive", close=True)
        told = await talking.exited("h")

    assert [message["id"] for message in talking.messages[before:][: len(unheard)]] == [
        1000 + number for number in range(len(GARBAGE))
    ]
    assert {message["error"]["message"] for message in unheard} == {UNKNOWN}
    assert told["stdout"] == "alive"


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_before_the_greeting_is_passed_over(ws: Place, garbage: bytes) -> None:
    """The first message is no different from the others."""
    async with stranger(ws) as talking:
        talking.link.send(garbage)
        await talking.initialize()

    # Requests are answered before the greeting too, if they are sound.
    assert [message["id"] for message in talking.messages] == [1]


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_flood_of_garbage_does_not_stop_the_server(tmp_path: Path) -> None:
    """Whatever the server writes about it, nobody may have to read it: its log is a full pipe here."""
    with serving("ws", tmp_path) as place:
        async with app_client(place) as talking, app_client(place) as other:
            talking.link.send(*[b"garbage"] * 5000)
            unheard = await heard(talking)
            answered = await other.execute("echo", "other")

    assert unheard == []
    assert answered["stdout"] == "other\n"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b' \t{"id":900,' + KILL + b"}  ", 900),
        (b'{"id":-9223372036854775808,' + KILL + b"}", -(2**63)),
        (b'{"id":9223372036854775807,' + KILL + b"}", 2**63 - 1),
        (b'{"id":-0,' + KILL + b"}", 0),
        (b'{"id":"",' + KILL + b"}", ""),
        ('{"id":"é\\u00e9\\n\\/",'.encode() + KILL + b"}", "éé\n/"),
        (b'{"jsonrpc":[],"x":1,"id":900,' + KILL + b"}", 900),
        (b'{"id":900,"result":1,"error":2,' + KILL + b"}", 900),
        (b'{"id":900,"trace":null,' + KILL + b"}", 900),
        (b'{"id":900,"trace":{},' + KILL + b"}", 900),
        (b'{"id":900,"trace":{"traceparent":"x"},' + KILL + b"}", 900),
        (b'{"id":900,"method":"process/kill","params":{"processHandle":"y","processHandle":"x"}}', 900),
        (
            b'{"id":900,"method":"process/kill","params":{"processHandle":"x","y":'
            + b"[" * 125
            + b"]" * 125
            + b"}}",
            900,
        ),
    ],
    ids=lambda value: ascii(value)[:60],
)
async def test_what_only_looks_odd_is_answered(ws: Place, text: bytes, number: Any) -> None:
    """Silence is for what cannot be understood, and for nothing else."""
    async with app_client(ws) as talking:
        talking.link.send(text)
        answers = await heard(talking)

    (answer,) = answers
    del answer["error"]["data"]  # It repeats the name of the method.
    assert answer == {"error": {"code": -32600, "message": UNKNOWN}, "id": number}


async def test_nesting_has_an_end_of_128_levels(ws: Place) -> None:
    """The last level that is read is the 127th; what is nested deeper is garbage."""
    nested = b'"params":{"processHandle":"x","y":' + b"[" * 126 + b"]" * 126 + b"}"
    async with app_client(ws) as talking:
        talking.link.send(b'{"id":900,"method":"process/kill",' + nested + b"}")

        assert await heard(talking) == []


async def test_an_id_that_is_in_use_already_is_answered_for_both(ws: Place) -> None:
    """Whose it is, is the client's business."""
    async with app_client(ws) as talking:
        talking.link.send(*[b'{"id":"twice",' + KILL + b"}"] * 2)
        answers = await heard(talking)

    assert [answer["id"] for answer in answers] == ["twice", "twice"]


# Frames.


@pytest.mark.parametrize("early", [False, True], ids=["after the greeting", "before the greeting"])
async def test_binary_frames_are_passed_over(ws: Place, *, early: bool) -> None:
    """A message is text; what is not is not looked at, however sound it may be."""
    greet = json.dumps({"id": 900, "method": "initialize", "params": greeting()}).encode()
    async with stranger(ws) as talking:
        assert isinstance(talking.link, SocketLink)
        if not early:
            await talking.initialize()
        talking.link.wire.send(BINARY, greet if early else b'{"id":900,' + KILL + b"}")
        talking.link.wire.send(BINARY, b"\xff\xfe\x00")
        talking.link.wire.send(BINARY, b"")
        if early:
            await talking.initialize()
        answers = await heard(talking)

    assert answers == []
    assert [message["id"] for message in talking.messages] == [1, 2]


async def test_a_request_in_fragments_is_answered_also_with_a_ping_between(ws: Place) -> None:
    """However a client cuts its text, even within a character."""
    request = '{"id":"é","method":"process/kill","params":{"processHandle":"x"}}'.encode()
    cut = request.index("é".encode()) + 1
    async with app_client(ws) as talking:
        assert isinstance(talking.link, SocketLink)
        wire = talking.link.wire
        wire.send(TEXT, request[:cut], final=False)
        wire.send(PING, b"p")
        wire.send(CONTINUATION, b"", final=False)
        wire.send(CONTINUATION, request[cut:])
        answers = await heard(talking)

    assert [answer["id"] for answer in answers] == ["é"]


@pytest.mark.slow
def test_bytes_that_are_no_text_end_the_connection_on_standard_input(tmp_path: Path) -> None:
    """Where the text cannot be trusted, neither can the line ends; what came before is answered."""
    greet = json.dumps({"id": 1, "method": "initialize", "params": greeting(experimentalApi=True)}).encode()
    kill = b'{"id":2,' + KILL + b"}"
    done = run_to_end(
        "--listen", "stdio", "--endpoint", "app", data=b"\n".join((greet, b"", kill, b"\xff", kill, b""))
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]
