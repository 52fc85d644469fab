"""HTTP requests through the real program: bodies whole and streamed, slow clients, clients that vanish."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.client import Client, Message, Refusal, client
from tests.fakes.server import Program, eventually, program_at, resident_bytes
from tests.fakes.web import Visit, Web, redirect, response, web

MIB = 1 << 20
BLOCK = bytes(range(256)) * 256
"""64 KiB."""

SECRETS = {b"HOLDFAST_TOKEN": b"s3cret", b"HOLDFAST_EMPTY": b"", b"CODEX_API_KEY": b"k"}
DIRECT = dict.fromkeys((b"http_proxy", b"HTTP_PROXY", b"all_proxy", b"ALL_PROXY"), b"")


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all who only ask it something."""
    with program_at(env=SECRETS | DIRECT) as served:
        yield served


@pytest.fixture
def fresh() -> Iterator[tuple[Program, str]]:
    """A server of one's own, whose memory holds no room that an earlier test has left."""
    with program_at(env=SECRETS | DIRECT) as served:
        yield served


def params(served: Web, path: str = "/x", **more: Any) -> Message:
    return {"method": "GET", "url": served.url + path, "requestId": "r", **more}


class Body:
    """What a client is told of streamed bodies."""

    def __init__(self, talking: Client) -> None:
        self.order: list[str] = []
        """The names, as their pieces came."""
        self.seqs: dict[str, list[int]] = {}
        self.digests: dict[str, Any] = {}
        self.sizes: dict[str, int] = {}
        self.ends: dict[str, str | None] = {}
        self.largest = 0
        talking.on_message = self.hear
        self._talking = talking

    def hear(self, message: Message) -> None:
        if message.get("method") != "http/request/bodyDelta":
            return
        self._talking.messages.remove(message)
        delta = message["params"]
        name, data = delta["requestId"], base64.b64decode(delta["deltaBase64"])
        assert name not in self.ends
        self.order.append(name)
        self.seqs.setdefault(name, []).append(delta["seq"])
        self.digests.setdefault(name, hashlib.sha256()).update(data)
        self.sizes[name] = self.sizes.get(name, 0) + len(data)
        self.largest = max(self.largest, len(data))
        if delta["done"]:
            assert data == b""
            self.ends[name] = delta["error"]
        else:
            assert data
            assert delta["error"] is None


def blocks(count: int, *, sent: list[int] | None = None) -> Any:
    """An answer of so many blocks of 64 KiB, each different from its neighbours."""

    async def answer(visit: Visit) -> None:
        visit.writer.transport.set_write_buffer_limits(0)
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (count * len(BLOCK)))
        for number in range(count):
            await visit.send(BLOCK[number % 251 :] + BLOCK[: number % 251])
            if sent is not None:
                sent.append(number)

    return answer


def blocks_hash(count: int) -> str:
    digest = hashlib.sha256()
    for number in range(count):
        digest.update(BLOCK[number % 251 :] + BLOCK[: number % 251])
    return digest.hexdigest()


async def test_a_request_with_everything(served: tuple[Program, str]) -> None:
    """Headers in order, a value from the server's variables, a body both ways."""
    async with (
        web(x=response(b"\xff\x00", "Set-Cookie: a", "set-cookie: b")) as other,
        client(served[1]) as talking,
    ):
        asked = params(
            other,
            method="PUT",
            bodyBase64="aGVsbG8=",
            timeoutMs=60_000,
            headers=[
                {"name": "X-B", "value": "1"},
                {"name": "Authorization", "value": "Bearer ", "valueEnvVar": "HOLDFAST_TOKEN"},
                {"name": "X-B", "value": "2"},
            ],
        )
        result = await talking.call("http/request", asked)

    pairs = [("set-cookie", "a"), ("set-cookie", "b"), ("content-length", "2")]
    headers = [{"name": name, "value": value} for name, value in pairs]
    assert result == {"status": 200, "headers": headers, "bodyBase64": "/wA="}
    [visit] = other.visits
    assert (visit.line, visit.body) == ("PUT /x HTTP/1.1", b"hello")
    assert visit.own_headers == [
        ("x-b", "1"),
        ("authorization", "Bearer s3cret"),
        ("x-b", "2"),
        ("content-length", "5"),
    ]


async def test_the_handshake_says_that_variables_can_be_used(served: tuple[Program, str]) -> None:
    talking = await Client.connect(served[1])
    told = await talking.initialize()
    await talking.close()

    assert told["environmentInfo"]["capabilities"]["httpHeaderEnvVars"] is True


@pytest.mark.parametrize(
    ("more", "code", "text"),
    [
        ({"url": "ftp://x/"}, -32602, "http/request only supports http and https URLs, got ftp"),
        ({"timeoutMs": "x"}, -32602, 'invalid type: string "x", expected u64'),
        (
            {"headers": [{"name": "A", "value": "", "valueEnvVar": "HOLDFAST_EMPTY"}]},
            -32602,
            "http/request header A requires a non-empty executor environment variable HOLDFAST_EMPTY",
        ),
        (
            {"headers": [{"name": "A", "value": "", "valueEnvVar": "HOLDFAST_NONE"}]},
            -32602,
            "http/request header A requires executor environment variable HOLDFAST_NONE",
        ),
        (
            {"headers": [{"name": "A", "value": "", "valueEnvVar": "codex_api_key"}]},
            -32602,
            "http/request header A cannot use executor environment variable codex_api_key",
        ),
        (
            {"url": "http://127.0.0.1:1/"},
            -32603,
            "http/request failed: error sending request for url (http://127.0.0.1:1/)",
        ),
        ({"timeoutMs": 0}, -32603, "http/request failed: route-aware request timed out"),
    ],
)
async def test_a_refusal_reaches_the_client(
    served: tuple[Program, str], more: Message, code: int, text: str
) -> None:
    async with web() as other, client(served[1]) as talking:
        with pytest.raises(Refusal) as caught:
            await talking.call("http/request", params(other, **more))

    assert (caught.value.code, caught.value.text) == (code, text)


async def test_a_request_that_waits_holds_up_nobody(served: tuple[Program, str]) -> None:
    """In the reference everything behind it on the connection waits."""

    async def stuck(visit: Visit) -> None:
        await visit.left()

    async with web(stuck=stuck) as other, client(served[1]) as talking:
        waiting = talking.post("http/request", params(other, "/stuck"))
        assert (await talking.call("http/request", params(other)))["bodyBase64"] == "aGk="
        await talking.start("p", "echo", "hi")
        assert (await talking.closed("p")).data() == b"hi\n"
        assert not waiting.done()


async def test_redirects_by_both_policies(served: tuple[Program, str]) -> None:
    async with web(x=redirect(302, "/y")) as other, client(served[1]) as talking:
        followed = await talking.call("http/request", params(other))
        stopped = await talking.call("http/request", params(other, redirectPolicy="stop"))

    assert (followed["status"], stopped["status"]) == (200, 302)
    assert [visit.line.split()[1] for visit in other.visits] == ["/x", "/y", "/x"]


@pytest.mark.slow
async def test_a_body_of_40_mib_in_one_answer(served: tuple[Program, str]) -> None:
    async with web(x=blocks(640)) as other, client(served[1]) as talking:
        result = await talking.call("http/request", params(other))

    body = base64.b64decode(result["bodyBase64"])
    assert hashlib.sha256(body).hexdigest() == blocks_hash(640)


@pytest.mark.slow
async def test_a_body_that_no_message_holds_is_refused_by_name(served: tuple[Program, str]) -> None:
    """Streamed it would arrive; in one message no peer would take it."""
    async with web(x=blocks(800)) as other, client(served[1]) as talking:
        with pytest.raises(Refusal) as caught:
            await talking.call("http/request", params(other))
        await eventually(lambda: other.open == 0)

    limit = 47 * MIB
    assert caught.value.text == f"limit reached: bytes of a buffered HTTP response ({limit})"
    assert caught.value.data == {
        "kind": "limitReached",
        "limit": "bytes of a buffered HTTP response",
        "value": limit,
        "name": "http.buffered_bytes",
    }


@pytest.mark.slow
async def test_a_stream_of_50_mib_arrives_whole_behind_its_answer(served: tuple[Program, str]) -> None:
    order: list[str] = []
    async with web(x=blocks(800)) as other, client(served[1]) as talking:
        body = Body(talking)
        hear = body.hear

        def note(message: Message) -> None:
            order.append(message.get("method", "answer"))
            hear(message)

        talking.on_message = note
        result = await talking.call("http/request", params(other, streamResponse=True))
        await talking.until(lambda: body.ends)

    assert (result["status"], result["bodyBase64"]) == (200, "")
    assert order[0] == "answer"
    assert body.ends == {"r": None}
    assert body.sizes == {"r": 50 * MIB}
    assert body.digests["r"].hexdigest() == blocks_hash(800)
    assert body.seqs["r"] == list(range(1, len(body.seqs["r"]) + 1))
    assert body.largest <= MIB


@pytest.mark.slow
async def test_streams_on_one_connection_go_on_side_by_side(served: tuple[Program, str]) -> None:
    async with web(x=blocks(80)) as other, client(served[1]) as talking:
        body = Body(talking)
        names = [str(number) for number in range(8)]
        for answer in [
            talking.post("http/request", params(other, requestId=name, streamResponse=True)) for name in names
        ]:
            await talking.result(answer)
        await talking.until(lambda: len(body.ends) == len(names))

    assert body.ends == dict.fromkeys(names)
    assert {digest.hexdigest() for digest in body.digests.values()} == {blocks_hash(80)}
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in body.seqs.values())
    changes = sum(one != next_ for one, next_ in zip(body.order, body.order[1:], strict=False))
    assert changes > len(names)


async def test_a_name_is_taken_as_long_as_its_stream(served: tuple[Program, str]) -> None:
    more = asyncio.Event()

    async def answer(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab")
        await more.wait()
        await visit.send(b"cd")

    async with web(x=answer) as other, client(served[1]) as talking, client(served[1]) as stranger:
        body = Body(talking)
        await talking.call("http/request", params(other, streamResponse=True))
        with pytest.raises(Refusal) as caught:
            await talking.call("http/request", params(other, "/y", streamResponse=True))
        await stranger.call("http/request", params(other, "/y", streamResponse=True))
        more.set()
        await talking.until(lambda: body.ends)
        body.ends.clear()
        await talking.call("http/request", params(other, "/y", streamResponse=True))
        await talking.until(lambda: body.ends)

    assert caught.value.text == "http/request streamResponse requestId `r` is already active"
    assert body.sizes == {"r": 6}


async def test_a_stream_that_is_cut_says_so_and_nothing_else_suffers(served: tuple[Program, str]) -> None:
    cut = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"
    async with web(x=cut) as other, client(served[1]) as talking:
        body = Body(talking)
        result = await talking.call("http/request", params(other, streamResponse=True))
        await talking.until(lambda: body.ends)
        assert (await talking.call("environment/status")) == {"status": "ready"}

    assert result["status"] == 200
    assert body.sizes == {"r": 3}
    assert (body.ends["r"] or "").startswith("error decoding response body: peer closed connection")


@pytest.mark.slow
@pytest.mark.stress
async def test_a_client_that_does_not_read_slows_the_sender_down(fresh: tuple[Program, str]) -> None:
    """75 MiB stay where they come from; when the client reads on, nothing is missing."""
    program, url = fresh
    sent: list[int] = []
    async with web(x=blocks(1200, sent=sent)) as other, client(url) as talking, client(url) as bystander:
        body = Body(talking)
        await talking.call("http/request", params(other, "/warm"))
        before = resident_bytes(program.pid)
        talking.stop_listening()
        talking.post("http/request", params(other, streamResponse=True))
        counts: list[int] = []

        def stands() -> bool:
            counts.append(len(sent))
            return len(counts) > 60 and counts[-1] > 0 and len(set(counts[-60:])) == 1

        await eventually(stands)
        grown = resident_bytes(program.pid) - before
        stopped_at = len(sent)
        assert (await bystander.call("http/request", params(other, "/y")))["bodyBase64"] == "aGk="
        talking.listen_again()
        await talking.until(lambda: body.ends)

    assert stopped_at * len(BLOCK) < 40 * MIB
    assert grown < 16 * MIB
    assert body.ends == {"r": None}
    assert body.digests["r"].hexdigest() == blocks_hash(1200)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"])
async def test_a_client_that_vanishes_takes_its_requests_with_it(
    served: tuple[Program, str], head: bytes, *, streamed: bool
) -> None:
    """Nobody would ever hear of the answer; the other server is not kept waiting."""
    reached = asyncio.Event()

    async def stuck(visit: Visit) -> None:
        await visit.send(head)
        reached.set()
        await visit.left()

    async with web(x=stuck) as other:
        talking = await Client.open(served[1])
        talking.post("http/request", params(other, streamResponse=streamed))
        await reached.wait()
        await talking.abort()
        await eventually(lambda: other.open == 0)
        async with client(served[1], resume=talking.session) as back:
            assert (await back.call("http/request", params(other, "/y", streamResponse=True)))[
                "status"
            ] == 200


async def test_a_server_that_stops_leaves_no_request_behind() -> None:
    reached = asyncio.Event()

    async def stuck(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
        reached.set()
        await visit.left()

    async with web(x=stuck) as other:
        with program_at(env=DIRECT) as (program, url):
            talking = await Client.open(url)
            talking.post("http/request", params(other, streamResponse=True))
            await reached.wait()
            program.send_signal(signal.SIGTERM)
            await talking.ended()
            assert await asyncio.to_thread(program.wait) == 0
            await talking.abort()
        await eventually(lambda: other.open == 0)


async def test_a_time_limit_holds_for_the_whole_exchange(served: tuple[Program, str]) -> None:
    """A body that trickles for ever ends, and its end says why."""

    async def trickle(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
        await visit.left()

    async with web(x=trickle) as other, client(served[1]) as talking:
        body = Body(talking)
        # The first request of a server takes longer: what makes it has to be imported.
        await talking.call("http/request", params(other, streamResponse=True, timeoutMs=3_000))
        await talking.until(lambda: body.ends)
        with pytest.raises(Refusal) as caught:
            await talking.call("http/request", params(other, timeoutMs=1_500))
        await eventually(lambda: other.open == 0)

    assert body.ends == {"r": "error decoding response body: timed out"}
    assert (caught.value.data["fault"], caught.value.data["reason"]) == ("bodyTimeout", "timed out")
