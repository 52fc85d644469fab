"""A client of the exec dialect that keeps everything it is told."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.fakes.frames import CLOSE, CONTINUATION, PING, PONG, TEXT, Frame, Wire, frame_bytes
from tests.fakes.server import PATIENCE

Message = dict[str, Any]

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Refusal(Exception):
    """The server answered with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(error)
        self.error = error
        self.code: int = error["code"]
        self.text: str = error["message"]
        self.data: Any = error.get("data")


@dataclass
class Tale:
    """What a client was told of one process, in the order of arrival."""

    events: list[tuple[str, Message]] = field(default_factory=list)

    @property
    def seqs(self) -> list[int]:
        return [params["seq"] for _, params in self.events]

    @property
    def kinds(self) -> list[str]:
        """``output``, ``exited`` and ``closed``, as they came."""
        return [kind for kind, _ in self.events]

    @property
    def exit_codes(self) -> list[int]:
        return [params["exitCode"] for kind, params in self.events if kind == "exited"]

    @property
    def is_closed(self) -> bool:
        return bool(self.events) and self.events[-1][0] == "closed"

    def data(self, *streams: str) -> bytes:
        """All bytes of the streams, joined in the order of arrival."""
        return b"".join(
            base64.b64decode(params["chunk"])
            for kind, params in self.events
            if kind == "output" and (not streams or params["stream"] in streams)
        )


class Client:
    """Speaks the exec dialect, answers pings, and keeps what it hears."""

    def __init__(self, wire: Wire, *, answers_pings: bool = True) -> None:
        self.wire = wire
        self.session = ""
        self.tales: dict[str, Tale] = {}
        self.messages: list[Message] = []
        """Everything but output notifications, in the order of arrival."""
        self.largest_frame = 0
        self.close_frame: Frame | None = None
        self.on_message: Callable[[Message], None] | None = None
        self._answers_pings = answers_pings
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._listening = asyncio.Event()
        self._listening.set()
        self._news: set[asyncio.Future[None]] = set()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def connect(cls, url: str, *, answers_pings: bool = True, token: str | None = None) -> Client:
        """Connected, no word said."""
        headers = () if token is None else (f"Authorization: Bearer {token}",)
        return cls(await Wire.open(url, headers=headers), answers_pings=answers_pings)

    @classmethod
    async def open(
        cls, url: str, *, resume: str | None = None, answers_pings: bool = True, token: str | None = None
    ) -> Client:
        """Connected, with a session, ready to start processes."""
        client = await cls.connect(url, answers_pings=answers_pings, token=token)
        try:
            await client.initialize(resume)
        except BaseException:
            await client.close()
            raise
        return client

    async def initialize(self, resume: str | None = None) -> Message:
        """The whole handshake; gives the answer to ``initialize``."""
        params = (
            {"clientName": "test"} if resume is None else {"clientName": "test", "resumeSessionId": resume}
        )
        result = await self.call("initialize", params)
        self.session = result["sessionId"]
        self.notify("initialized")
        return result

    # Out.

    def post(self, method: str, params: Any = None) -> asyncio.Future[Message]:
        """Send a request and go on; the future holds the whole answer."""
        message, answer = self.compose(method, params)
        self.wire.send_text(message)
        return answer

    def compose(self, method: str, params: Any = None) -> tuple[bytes, asyncio.Future[Message]]:
        """A request and the future of its answer; sending it is the caller's."""
        self._next += 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._next] = answer
        message = {"id": self._next, "method": method}
        if params is not None:
            message["params"] = params
        return msgspec.json.encode(message), answer

    def post_together(self, *requests: tuple[str, Any]) -> list[asyncio.Future[Message]]:
        """Send several requests in one write, so that they arrive together."""
        composed = [self.compose(method, params) for method, params in requests]
        self.wire.writer.write(b"".join(frame_bytes(TEXT, message) for message, _ in composed))
        return [answer for _, answer in composed]

    async def call(self, method: str, params: Any = None, *, within: float = PATIENCE) -> Message:
        """Send a request and wait for its result.

        Raises:
            Refusal: The answer is an error.
        """
        return await self.result(self.post(method, params), within=within)

    async def result(self, answer: asyncio.Future[Message], *, within: float = PATIENCE) -> Message:
        """The result in an answer."""
        async with asyncio.timeout(within):
            message = await answer
        if "error" in message:
            raise Refusal(message["error"])
        result: Message = message["result"]
        return result

    def notify(self, method: str) -> None:
        self.wire.send_text(msgspec.json.encode({"method": method}))

    # Processes.

    async def start(self, name: str, *argv: str, **options: Any) -> Message:
        """Start a process and wait for the answer."""
        return await self.call("process/start", start_params(name, *argv, **options))

    async def read(self, name: str, **params: Any) -> Message:
        return await self.call("process/read", {"processId": name, **params})

    async def write(self, name: str, data: bytes, write_id: str) -> str:
        """Offer bytes to stdin; gives the status."""
        result = await self.call("process/write", write_params(name, data, write_id))
        status: str = result["status"]
        return status

    async def terminate(self, name: str) -> bool:
        result = await self.call("process/terminate", {"processId": name})
        running: bool = result["running"]
        return running

    def tale(self, name: str) -> Tale:
        return self.tales.setdefault(name, Tale())

    async def closed(self, name: str, *, within: float = PATIENCE) -> Tale:
        """Wait until the process has closed; gives all that was told of it."""
        tale = self.tale(name)
        await self.until(lambda: tale.is_closed, within=within)
        return tale

    async def until(self, condition: Callable[[], object], *, within: float = PATIENCE) -> None:
        """Wait until what was heard makes ``condition`` true."""
        async with asyncio.timeout(within):
            while not condition():
                assert not self._reading.done(), f"the connection ended first: {self.close_frame}"
                news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._news.add(news)
                await news

    # In.

    def stop_listening(self) -> None:
        """Read nothing more from the socket, but for what is on its way into the client already."""
        self._listening.clear()

    def listen_again(self) -> None:
        self._listening.set()

    async def _read(self) -> None:
        try:
            async for message in self._whole_messages():
                self._hear(msgspec.json.decode(message))
        finally:
            for answer in self._waiting.values():
                answer.cancel()
            self._wake()

    async def _whole_messages(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        while True:
            await self._listening.wait()
            frame = await self.wire.receive()
            if frame is None:
                return
            if frame.op == PING:
                if self._answers_pings:
                    self.wire.send(PONG, frame.payload)
            elif frame.op == CLOSE:
                self.close_frame = frame
                self.wire.send(CLOSE, frame.payload[:2])
            elif frame.op in (TEXT, CONTINUATION):
                self.largest_frame = max(self.largest_frame, len(frame.payload))
                parts.append(frame.payload)
                if frame.final:
                    yield b"".join(parts)
                    parts.clear()

    def _hear(self, message: Message) -> None:
        kind = message.get("method", "")
        if kind.startswith("process/"):
            params = message["params"]
            self.tale(params["processId"]).events.append((kind.removeprefix("process/"), params))
        if kind != "process/output":
            self.messages.append(message)
        answer = self._waiting.pop(message["id"], None) if "method" not in message else None
        if answer is not None and not answer.done():  # Whoever asked may have given up.
            answer.set_result(message)
        if self.on_message is not None:
            self.on_message(message)
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, set()
        for waiting in news:
            if not waiting.done():
                waiting.set_result(None)

    # The end.

    @property
    def over(self) -> bool:
        """Whether the connection has ended."""
        return self._reading.done()

    async def ended(self) -> Frame | None:
        """Wait until the server has ended the connection; gives its close frame."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait([self._reading])
        return self.close_frame

    async def close(self, code: int = 1000) -> None:
        """Say goodbye the way WebSocket asks for, and wait for the server's part."""
        self.listen_again()
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.wire.send(CLOSE, code.to_bytes(2, "big"))
        with contextlib.suppress(TimeoutError):
            await self.ended()
        await self._let_go()

    async def abort(self) -> None:
        """Vanish, as after a crash."""
        self.wire.abort()
        self.listen_again()
        await self._let_go()

    async def _let_go(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])
        await self.wire.close()


@contextlib.asynccontextmanager
async def client(url: str, *, resume: str | None = None, token: str | None = None) -> AsyncIterator[Client]:
    """A client with a session, closed at the end."""
    opened = await Client.open(url, resume=resume, token=token)
    try:
        yield opened
    finally:
        await opened.close()


def start_params(name: str, *argv: str, **options: Any) -> Message:
    """Parameters of ``process/start``; ``options`` are laid over the defaults."""
    return {
        "processId": name,
        "argv": list(argv),
        "cwd": "file:///",
        "env": {"PATH": PATH},
        "tty": False,
        **options,
    }


def write_params(name: str, data: bytes, write_id: str) -> Message:
    return {"processId": name, "chunk": base64.b64encode(data).decode(), "writeId": write_id}


def page_bytes(page: Message, *streams: str) -> bytes:
    """The bytes in the answer to a read."""
    return b"".join(
        base64.b64decode(chunk["chunk"])
        for chunk in page["chunks"]
        if not streams or chunk["stream"] in streams
    )


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
