"""A client of the app dialects that keeps what it is told, on any of the three transports."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from tests.fakes.client import Message, Refusal
from tests.fakes.frames import CLOSE, CONTINUATION, TEXT, Wire, frame_bytes
from tests.fakes.server import COMMAND, PATIENCE, Program, program

TRANSPORTS = ("ws", "unix", "stdio")

FULL_ACCESS = {"type": "dangerFullAccess"}


class Link(Protocol):
    """Whole messages, there and back."""

    def send(self, *texts: bytes) -> None:
        """Send messages in one write, so that they arrive together."""

    async def receive(self) -> bytes | None:
        """The next message; None when the server has ended the connection."""

    async def close(self) -> None:
        """Say goodbye, and wait for the server's part."""

    async def abort(self) -> None:
        """Vanish, as after a crash."""


class SocketLink:
    """A WebSocket, on TCP or on a Unix socket."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def send(self, *texts: bytes) -> None:
        self.wire.writer.write(b"".join(frame_bytes(TEXT, text) for text in texts))

    async def receive(self) -> bytes | None:
        parts: list[bytes] = []
        while (frame := await self.wire.receive()) is not None:
            if frame.op in (TEXT, CONTINUATION):
                parts.append(frame.payload)
                if frame.final:
                    return b"".join(parts)
        return None

    async def close(self) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.wire.send(CLOSE, (1000).to_bytes(2, "big"))
            await self.wire.ended()
        await self.wire.close()

    async def abort(self) -> None:
        self.wire.abort()
        await self.wire.close()


class StdioLink:
    """A server of one's own, on its standard streams."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._in = process.stdin
        self._out = process.stdout
        # The reader has no public way to its own transport.
        self._reading: asyncio.ReadTransport = self._out._transport  # type: ignore[attr-defined]

    def send(self, *texts: bytes) -> None:
        self._in.write(b"".join(text + b"\n" for text in texts))

    async def receive(self) -> bytes | None:
        try:
            line = await self._out.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return None
        return line[:-1]

    def pause(self) -> None:
        """Leave what the server writes in the pipe."""
        self._reading.pause_reading()

    def resume(self) -> None:
        self._reading.resume_reading()

    async def close(self) -> None:
        self._in.close()
        await self._end()

    async def abort(self) -> None:
        # Both ends vanish, as those of a client that was killed.
        self._in.transport.abort()
        self._reading.close()
        await self._end()

    async def _end(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.receive() is not None:
                pass
            assert self.process.stderr is not None
            errors = await self.process.stderr.read()
            code = await self.process.wait()
        assert code == 0, f"exit code {code}: {errors.decode()}"
        assert b"Traceback" not in errors, errors.decode()


@dataclass
class Place:
    """Where a server can be reached, or how one is started for a single client."""

    transport: str
    url: str
    options: tuple[str, ...]
    program: Program | None
    env: dict[str, str] = field(default_factory=dict)

    async def link(self) -> Link:
        if self.transport != "stdio":
            return SocketLink(await Wire.open(self.url))
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            "--listen",
            "stdio",
            *self.options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 27,
            env={**os.environ, **self.env},
        )
        return StdioLink(process)


@contextlib.contextmanager
def serving(
    transport: str, folder: Path, *options: str, env: dict[str, str] | None = None
) -> Iterator[Place]:
    """A server that speaks to app clients on this transport, stopped and looked after at the end."""
    options = options if "--endpoint" in options else ("--endpoint", "app", *options)
    if "--command-sandbox" not in options:
        options = ("--command-sandbox", "danger-full-access", *options)
    if transport == "stdio":
        yield Place(transport, "stdio", options, None, env or {})
        return
    where = "ws://127.0.0.1:0" if transport == "ws" else f"unix://{folder}/app.sock"
    encoded = {os.fsencode(name): os.fsencode(value) for name, value in (env or {}).items()}
    with program("--listen", where, *options, env=encoded) as started:
        yield Place(transport, started.read_url(), options, started, env or {})


@dataclass
class Tale:
    """What a client was told of one process, in the order of arrival."""

    deltas: list[Message] = field(default_factory=list)
    exits: list[Message] = field(default_factory=list)

    def data(self, *streams: str) -> bytes:
        """All bytes of the streams, joined in the order of arrival."""
        return b"".join(
            base64.b64decode(delta["deltaBase64"])
            for delta in self.deltas
            if not streams or delta["stream"] in streams
        )

    def caps(self, stream: str = "stdout") -> list[bool]:
        """What each delta of a stream said of the cap."""
        return [delta["capReached"] for delta in self.deltas if delta["stream"] == stream]


class AppClient:
    """Speaks the app dialects and keeps what it hears."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.processes: dict[str, Tale] = {}
        self.commands: dict[str, Tale] = {}
        self.messages: list[Message] = []
        """Everything in the order of arrival; of output only what ``keeps_output`` asks for."""
        self.keeps_output = True
        self.on_message: Callable[[Message], None] | None = None
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._listening = asyncio.Event()
        self._listening.set()
        self._news: set[asyncio.Future[None]] = set()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def initialize(self, **capabilities: Any) -> Message:
        """The whole handshake; gives the answer to ``initialize``."""
        result = await self.call("initialize", greeting(**{"experimentalApi": True, **capabilities}))
        self.link.send(b'{"method":"initialized"}')
        return result

    # Out.

    def compose(self, method: str, params: Any = None) -> tuple[bytes, asyncio.Future[Message]]:
        """A request and the future of its answer; sending it is the caller's."""
        self._next += 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._next] = answer
        message = {"id": self._next, "method": method}
        if params is not None:
            message["params"] = params
        return msgspec.json.encode(message), answer

    def post(self, method: str, params: Any = None) -> asyncio.Future[Message]:
        """Send a request and go on; the future holds the whole answer."""
        return self.post_together((method, params))[0]

    def post_together(self, *requests: tuple[str, Any]) -> list[asyncio.Future[Message]]:
        """Send several requests in one write, so that they arrive together."""
        composed = [self.compose(method, params) for method, params in requests]
        self.link.send(*(text for text, _ in composed))
        return [answer for _, answer in composed]

    async def call(self, method: str, params: Any = None) -> Message:
        """Send a request and wait for its result.

        Raises:
            Refusal: The answer is an error.
        """
        return await self.result(self.post(method, params))

    async def result(self, answer: asyncio.Future[Message]) -> Message:
        """The result in an answer."""
        message = await self.answer(answer)
        if "error" in message:
            raise Refusal(message["error"])
        result: Message = message["result"]
        return result

    async def answer(self, answer: asyncio.Future[Message]) -> Message:
        async with asyncio.timeout(PATIENCE):
            return await answer

    async def refusal(self, method: str, params: Any = None) -> tuple[int, str]:
        """Code and text of the error that a request is answered with."""
        message = await self.answer(self.post(method, params))
        assert "error" in message, message
        return message["error"]["code"], message["error"]["message"]

    # Processes and commands.

    async def spawn(self, handle: str, *command: str, **options: Any) -> Message:
        return await self.call("process/spawn", spawn_params(handle, *command, **options))

    async def write(self, handle: str, data: bytes | None = None, *, close: bool = False) -> Message:
        return await self.call("process/writeStdin", write_params(handle, data, close=close))

    async def execute(self, *command: str, **options: Any) -> Message:
        return await self.call("command/exec", exec_params(*command, **options))

    def tale(self, handle: str) -> Tale:
        return self.processes.setdefault(handle, Tale())

    def command(self, name: str) -> Tale:
        return self.commands.setdefault(name, Tale())

    async def exited(self, handle: str, times: int = 1) -> Message:
        """Wait until the process has exited so often; gives the last exit's params."""
        tale = self.tale(handle)
        await self.until(lambda: len(tale.exits) >= times)
        return tale.exits[times - 1]

    async def said(self, handle: str, data: bytes) -> None:
        """Wait until the process has said ``data``."""
        tale = self.tale(handle)
        await self.until(lambda: data in tale.data())

    async def until(self, condition: Callable[[], object], *, within: float = PATIENCE) -> None:
        """Wait until what was heard makes ``condition`` true."""
        async with asyncio.timeout(within):
            while not condition():
                assert not self._reading.done(), "the connection ended first"
                news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._news.add(news)
                await news

    # In.

    def stop_listening(self) -> None:
        """Read nothing more, but for what is on its way into the client already."""
        self._listening.clear()

    def listen_again(self) -> None:
        self._listening.set()

    async def _read(self) -> None:
        try:
            while True:
                await self._listening.wait()
                text = await self.link.receive()
                if text is None:
                    return
                self._hear(msgspec.json.decode(text))
        finally:
            for answer in self._waiting.values():
                answer.cancel()
            self._wake()

    def _hear(self, message: Message) -> None:
        match message:
            case {"method": "process/outputDelta", "params": params} if self.keeps_output:
                self.tale(params["processHandle"]).deltas.append(params)
            case {"method": "command/exec/outputDelta", "params": params} if self.keeps_output:
                self.command(params["processId"]).deltas.append(params)
            case {"method": "process/exited", "params": params}:
                self.tale(params["processHandle"]).exits.append(params)
            case {"id": int(number)} if (answer := self._waiting.pop(number, None)) is not None:
                if not answer.done():  # Whoever asked may have given up.
                    answer.set_result(message)
        if self.keeps_output or "outputDelta" not in message.get("method", ""):
            self.messages.append(message)
        if self.on_message is not None:
            self.on_message(message)
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, set()
        for waiting in news:
            if not waiting.done():
                waiting.set_result(None)

    # The end.

    async def ended(self) -> None:
        """Wait until the server has ended the connection."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait([self._reading])

    async def close(self) -> None:
        await self._stop_reading()
        await self.link.close()

    async def abort(self) -> None:
        await self._stop_reading()
        await self.link.abort()

    async def _stop_reading(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])


@contextlib.asynccontextmanager
async def stranger(place: Place) -> AsyncIterator[AppClient]:
    """A client that has said nothing yet, closed at the end."""
    client = AppClient(await place.link())
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def app_client(place: Place, **capabilities: Any) -> AsyncIterator[AppClient]:
    """A client after the handshake, closed at the end."""
    async with stranger(place) as client:
        await client.initialize(**capabilities)
        yield client


def greeting(*, name: str = "test", **capabilities: Any) -> Message:
    """Parameters of ``initialize``."""
    return {"clientInfo": {"name": name, "version": "1"}, "capabilities": capabilities}


def spawn_params(handle: str, *command: str, **options: Any) -> Message:
    """Parameters of ``process/spawn``; ``options`` are laid over the defaults."""
    return {"processHandle": handle, "command": list(command), "cwd": "/", **options}


def exec_params(*command: str, **options: Any) -> Message:
    """Parameters of ``command/exec``; ``options`` are laid over the defaults."""
    return {"command": list(command), "sandboxPolicy": FULL_ACCESS, **options}


def write_params(
    name: str, data: bytes | None = None, *, close: bool = False, key: str = "processHandle"
) -> Message:
    """Parameters of a write to stdin."""
    params: Message = {key: name}
    if data is not None:
        params["deltaBase64"] = base64.b64encode(data).decode()
    if close:
        params["closeStdin"] = True
    return params
