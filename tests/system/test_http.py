"""What a listener answers to plain HTTP: load balancers, browsers and the curious."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.frames import Wire
from tests.fakes.server import program_at

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server with the default endpoint."""
    with program_at() as (_, url):
        yield url


@pytest.fixture(scope="module")
def exec_url() -> Iterator[str]:
    """A server pinned to the exec endpoint."""
    with program_at("--endpoint", "exec") as (_, url):
        yield url


async def ask(
    wire: Wire, line: str, fields: dict[str, str] | None = None
) -> tuple[int, bytes, dict[str, str]]:
    """Send a request on an open connection; gives status, body and header fields of the answer."""
    head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "x", **(fields or {})}.items())
    wire.writer.write(f"{line} HTTP/1.1\r\n{head}\r\n".encode())
    first, *rest = (await wire.reader.readuntil(b"\r\n\r\n")).decode().removesuffix("\r\n\r\n").split("\r\n")
    got = {name.lower(): value for name, _, value in (field.partition(": ") for field in rest)}
    length = 0 if line.startswith("HEAD") else int(got.get("content-length", "0"))
    return int(first.split()[1]), await wire.reader.readexactly(length), got


TABLE = {
    "GET readyz": ("GET /readyz", {}, 200, b""),
    "HEAD readyz": ("HEAD /readyz", {}, 200, b""),
    "GET readyz with a query": ("GET /readyz?x=1", {}, 200, b""),
    "GET healthz": ("GET /healthz", {}, 200, b""),
    "HEAD healthz": ("HEAD /healthz", {}, 200, b""),
    "POST readyz": ("POST /readyz", {}, 405, b""),
    "DELETE healthz": ("DELETE /healthz", {}, 405, b""),
    "other path": ("GET /other", {}, 404, b""),
    "upgrade on another path": ("GET /other", UPGRADE, 404, b""),
    "plain GET": ("GET /", {}, 400, b"Connection header did not include 'upgrade'"),
    "plain HEAD": ("HEAD /", {}, 405, b""),
    "plain POST": ("POST /", {}, 405, b"Request method must be `GET`"),
    "old version": (
        "GET /",
        {**UPGRADE, "Sec-WebSocket-Version": "8"},
        400,
        b"`Sec-WebSocket-Version` header did not include '13'",
    ),
    "origin on health": ("GET /readyz", {"Origin": "http://x"}, 403, b""),
    "empty origin": ("GET /readyz", {"Origin": ""}, 403, b""),
    "origin on upgrade": ("GET /", {**UPGRADE, "Origin": "null"}, 403, b""),
    "origin elsewhere": ("GET /other", {"Origin": "http://x"}, 403, b""),
}


@pytest.mark.parametrize(("line", "fields", "status", "body"), TABLE.values(), ids=TABLE.keys())
async def test_the_answer_is_the_one_of_the_table(
    url: str, line: str, fields: dict[str, str], status: int, body: bytes
) -> None:
    """Probes and clients of other servers rely on exactly these."""
    wire = await Wire.dial(url)
    answer = await ask(wire, line, fields)
    await wire.close()

    assert answer[:2] == (status, body)


async def test_a_wrong_method_is_told_which_are_right(url: str) -> None:
    """The protocol asks for this field with every 405."""
    wire = await Wire.dial(url)
    status, _, fields = await ask(wire, "POST /readyz")
    await wire.close()

    assert (status, fields["allow"]) == (405, "GET,HEAD")


async def test_an_upgrade_proves_that_the_key_was_read(url: str) -> None:
    """The example of the standard; no extension and no subprotocol is chosen."""
    wire = await Wire.dial(url)
    offered = {"Sec-WebSocket-Extensions": "permessage-deflate", "Sec-WebSocket-Protocol": "chat"}
    status, _, fields = await ask(wire, "GET /?token=x", {**UPGRADE, **offered})
    await wire.close()

    assert status == 101
    assert fields["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert (fields["upgrade"], fields["connection"]) == ("websocket", "upgrade")
    assert not {"sec-websocket-extensions", "sec-websocket-protocol", "content-length"} & fields.keys()


async def test_one_connection_serves_many_requests_and_then_an_upgrade(url: str) -> None:
    """Probes keep their connection."""
    wire = await Wire.dial(url)
    statuses = [
        (await ask(wire, line))[0]
        for line in ("GET /readyz", "HEAD /readyz", "GET /other", "GET /", "GET /healthz")
    ]
    upgraded = (await ask(wire, "GET /", UPGRADE))[0]
    wire.send_text('{"id":1,"method":"x"}')
    frame = await wire.receive()
    await wire.close()

    assert statuses == [200, 200, 404, 400, 200]
    assert upgraded == 101
    assert frame is not None


async def test_a_client_that_asks_for_the_end_gets_it(url: str) -> None:
    """Some probes read until the end of the connection."""
    wire = await Wire.dial(url)
    status, _, fields = await ask(wire, "GET /readyz", {"Connection": "close"})
    rest = await wire.reader.read()
    await wire.close()

    assert (status, fields["connection"], rest) == (200, "close", b"")


async def test_frames_right_behind_the_upgrade_request_are_not_lost(url: str) -> None:
    """A client in a hurry does not wait for the answer."""
    wire = await Wire.dial(url)
    head = "".join(f"{name}: {value}\r\n" for name, value in UPGRADE.items())
    wire.writer.write(
        f"GET / HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode() + b"\x81\x95\0\0\0\0" + b'{"id":1,"method":"x"}'
    )
    await wire.reader.readuntil(b"\r\n\r\n")
    frame = await wire.receive()
    await wire.close()

    assert frame is not None
    assert b"-32601" in frame.payload


@pytest.mark.parametrize(
    "data", [b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/3.0\r\n\r\n"]
)
async def test_what_is_no_http_is_refused_and_ended(url: str, data: bytes) -> None:
    """TLS and other protocols on the wrong port learn it at once."""
    wire = await Wire.dial(url)
    wire.writer.write(data)
    answer = await wire.reader.read()
    await wire.close()

    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_a_head_without_end_is_refused(url: str) -> None:
    """Nobody makes the server collect without limit."""
    wire = await Wire.dial(url)
    wire.writer.write(b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000)
    answer = await wire.reader.read()
    await wire.close()

    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_the_exec_endpoint_has_no_healthz(exec_url: str) -> None:
    """It behaves as clients of that endpoint know it."""
    wire = await Wire.dial(exec_url)
    answers = [(await ask(wire, line))[0] for line in ("GET /healthz", "GET /readyz")]
    await wire.close()

    assert answers == [404, 200]
