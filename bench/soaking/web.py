"""``http/request``, and the server on the loopback interface that answers it."""

from __future__ import annotations

import asyncio
import base64
import contextlib

from bench.soaking.peer import Message, check
from bench.soaking.tale import digest
from bench.soaking.user import NOISE_BYTES, User


class Web:
    """A small HTTP server that also misbehaves on request."""

    def __init__(self, noise: bytes) -> None:
        self._noise = noise
        self._talks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> str:
        """Listen; give the URL."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.create_task(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                length = next((int(line[15:]) for line in head if line.startswith("content-length:")), 0)
                body = await reader.readexactly(length)
                if not await self._answer(head[0].split()[1], body, writer, reader):
                    break
        writer.close()

    async def _answer(
        self, path: str, body: bytes, writer: asyncio.StreamWriter, reader: asyncio.StreamReader
    ) -> bool:
        """Whether the connection can be used for another request."""
        kind, _, rest = path[1:].partition("/")
        size = int(rest or 0)
        if kind == "hang":
            await reader.read()
            return False
        if kind == "redirect":
            writer.write(b"HTTP/1.1 302 Found\r\nlocation: /bytes/%d\r\ncontent-length: 0\r\n\r\n" % size)
        elif kind == "chunked":
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            for start in range(0, size, 7000):
                part = self._noise[start : min(size, start + 7000)]
                writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        else:
            data = body if kind == "echo" else self._noise[:size]
            # A body that is cut promises more than comes.
            promised = len(data) + (kind == "cut")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (promised, data))
        await writer.drain()
        return kind != "cut"


async def buffered(user: User) -> None:
    """The body comes with the answer."""
    size, data = user.size(), user.chance.randbytes(user.size(1 << 16))
    for path in (f"/bytes/{size}", f"/redirect/{size}", f"/chunked/{size}"):
        got = await _request(user, path)
        check(got == user.noise(size), f"{path}: {got}")
    got = await _request(user, "/echo", method="POST", bodyBase64=base64.b64encode(data).decode())
    check(got == digest(data), f"/echo: {got}")


async def broken(user: User) -> None:
    """Requests that fail, each in its own way."""
    stopped = await user.peer.call("http/request", _params(user, "/redirect/1", redirectPolicy="stop"))
    check(stopped["status"] == 302, f"redirect: {stopped}")
    for path, fault, timeout in (("/hang", "timeout", 50), ("/cut/100", "body", None)):
        params = _params(user, path, timeoutMs=timeout)
        refusal = await user.peer.refused(-32603, "", "http/request", params)
        check(refusal.data["fault"] == fault, f"{path}: {refusal.data}")
    nobody = {**_params(user, "/"), "url": "http://127.0.0.1:1/"}
    refusal = await user.peer.refused(-32603, "error sending request", "http/request", nobody)
    check(refusal.data["fault"] == "sending", f"nobody there: {refusal.data}")
    await user.peer.refused(-32602, "only supports", "http/request", {**nobody, "url": "ftp://127.0.0.1/"})


async def streamed(user: User) -> None:
    """The body comes in pieces behind the answer; sometimes the client goes away in between."""
    size = user.size(NOISE_BYTES)
    params = _params(user, user.chance.choice((f"/chunked/{size}", f"/bytes/{size}")), streamResponse=True)
    answer = await user.peer.call("http/request", params)
    check(answer["status"] == 200 and answer["bodyBase64"] == "", f"{params}: {answer}")
    if user.chance.random() < 0.2:
        await user.leave(user.peer)
        user.forget()
        return
    told = user.peer.told
    await user.peer.until(lambda: told and told[-1]["params"].get("done"), f"{params} was done")
    pieces = [note["params"] for note in told]
    told.clear()
    check([piece["seq"] for piece in pieces] == list(range(1, len(pieces) + 1)), f"{params}: order")
    check({piece["requestId"] for piece in pieces} == {params["requestId"]}, f"{params}: others")
    check(pieces[-1]["error"] is None, f"{params}: {pieces[-1]}")
    data = b"".join(base64.b64decode(piece["deltaBase64"]) for piece in pieces)
    check(digest(data) == user.noise(size), f"{params}: {digest(data)}")


async def hanging(user: User) -> None:
    """Go away while a request waits for its response."""
    await user.peer.post("http/request", _params(user, "/hang"))
    await user.leave(user.peer)
    user.forget()


def _params(user: User, path: str, *, method: str = "GET", **options: object) -> Message:
    return {"method": method, "url": user.world.web + path, "requestId": user.name(), **options}


async def _request(user: User, path: str, *, method: str = "GET", **options: object) -> str:
    answer = await user.peer.call("http/request", _params(user, path, method=method, **options))
    check(answer["status"] == 200, f"{path}: {answer}")
    return digest(base64.b64decode(answer["bodyBase64"]))
