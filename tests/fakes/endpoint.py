"""A toy dialect and a channel in memory, to try connections and dispatch without sockets and processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from holdfast.dialects.dialect import Breach, Client, LongResult, Method, Sequel, WireError
from holdfast.errors import BadRequest, HoldfastError, OutOfTurn
from holdfast.principal import ANYBODY
from holdfast.server.connection import Connection
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Notification, Response


class MemoryChannel:
    """Implements ``channel.Channel``: keeps what was written, says what it is told to say."""

    transport = "websocket"
    peer = "127.0.0.1:5"
    principal = ANYBODY
    comes_back = True

    def __init__(self) -> None:
        self.sent: list[Any] = []
        """The messages, decoded."""
        self.unsent = 0
        self.congested = False
        self.full = False
        self.pieces: list[bytes] = []
        """Of the long message that is being sent."""
        self.held: list[bool] = []
        """True for each ``hold``, False for each ``go_on``."""
        self.ends: list[tuple[str, bool]] = []
        self.alive = True

    def flush(self) -> None:
        """Nothing is gathered here."""

    def write(self, *parts: bytes) -> None:
        self.sent.append(json.loads(b"".join(parts)))

    def begin(self) -> None:
        self.pieces = []

    def piece(self, data: bytes, *, last: bool) -> None:
        self.pieces.append(data)
        if last:
            self.write(*self.pieces)

    def hold(self) -> None:
        self.held.append(True)

    def go_on(self) -> None:
        self.held.append(False)

    async def is_alive(self, within: float) -> bool:
        return self.alive

    def end(self, reason: str, *, stopping: bool = False) -> None:
        self.ends.append((reason, stopping))

    @property
    def results(self) -> list[Any]:
        """The answers: a result, or the words of an error."""
        return [
            message["result"] if "result" in message else message["error"]["message"] for message in self.sent
        ]


class ToyConversation:
    """Implements ``dialect.Conversation``: remembers what it was told."""

    binary = True
    envelope = jsonrpc.STRICT

    def __init__(self, client: Client) -> None:
        self.client = client
        self.told: list[str] = []
        self.shut = False
        """Whether it is the time for nothing."""
        self.gates: dict[str, asyncio.Future[str]] = {}
        """What ``wait`` and ``start`` wait for, by name."""

    def usage(self) -> dict[str, int]:
        return {"told": len(self.told)}

    def gate(self, method: Method) -> None:
        if self.shut or method.family == "closed":
            raise OutOfTurn("not now")

    def notified(self, notification: Notification) -> None:
        if notification.method == "breach":
            raise Breach("that was wrong")
        self.told.append(notification.method)

    def answered(self, response: Response) -> None:
        raise Breach("nobody asked")

    def congested(self) -> None:
        self.told.append("congested")

    def drained(self) -> None:
        self.told.append("drained")

    def malformed(self, detail: str) -> bytes | None:
        return jsonrpc.error(jsonrpc.UNPARSED, -1, f"malformed: {detail}")

    def explain(self, error: HoldfastError) -> WireError:
        return WireError(-2, str(error), {"kind": type(error).__name__})

    def ended(self) -> None:
        self.told.append("ended")

    async def passed(self, name: str) -> str:
        """Wait until the test opens the gate of that name."""
        self.told.append(f"wait {name}")
        future = self.gates.setdefault(name, asyncio.get_running_loop().create_future())
        try:
            return await future
        except asyncio.CancelledError:
            self.told.append(f"cancelled {name}")
            raise

    def open(self, name: str, outcome: str | Exception = "done") -> None:
        """Let ``wait`` or ``start`` of that name end."""
        future = self.gates.pop(name)
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def _name(params: Any) -> str:
    if not isinstance(params, str):
        raise BadRequest("a name is needed")
    return params


async def _wait(talk: ToyConversation, name: str) -> str:
    return await talk.passed(name)


async def _at_once(talk: ToyConversation, name: str) -> str:
    return f"at once {name}"


async def _long(talk: ToyConversation, name: str) -> LongResult:
    await talk.passed(name)
    return LongResult(b'["', _pieces(talk, name), b'"]', lambda: talk.told.append(f"closed {name}"))


async def _pieces(talk: ToyConversation, name: str) -> AsyncGenerator[bytes, None]:
    """Each piece is what the test opens the gate of that name with, until it opens it with nothing."""
    while piece := await talk.passed(name):
        yield piece.encode()


def _plain(talk: ToyConversation, name: str) -> str:
    talk.told.append(f"plain {name}")
    return f"plain {name}"


def _unreadable(params: Any) -> str:
    raise RuntimeError("a mistake of ours")


def _broken(talk: ToyConversation, name: str) -> str:
    raise RuntimeError("a mistake of ours")


async def _broken_later(talk: ToyConversation, name: str) -> str:
    await talk.passed(name)
    raise RuntimeError("a mistake of ours")


async def _sequel(talk: ToyConversation, name: str) -> Sequel:
    async def rest() -> None:
        talk.told.append(await talk.passed(f"{name} again"))

    return Sequel(await talk.passed(name), rest())


def _refused(talk: ToyConversation, name: str) -> str:
    raise BadRequest(f"no {name}")


class ToyEndpoint:
    """Implements ``dialect.Endpoint``: a method for every way a request can go."""

    def __init__(self) -> None:
        self.conversations: list[ToyConversation] = []
        self.is_closed = False
        self.methods = {
            "plain": Method(_name, _plain),
            "at once": Method(_name, _at_once),
            "wait": Method(_name, _wait, waits=True),
            "alone": Method(_name, _wait, alone=True),
            "start": Method(_name, _wait, name_of=_name, starts=True, waits=True),
            "about": Method(_name, _plain, name_of=_name),
            "wait about": Method(_name, _wait, name_of=_name, waits=True),
            "sequel": Method(_name, _sequel, waits=True),
            "refused": Method(_name, _refused),
            "closed": Method(_name, _plain, family="closed"),
            "long": Method(_name, _long, waits=True),
            "long start": Method(_name, _long, name_of=_name, starts=True, waits=True),
            "broken": Method(_name, _broken),
            "broken later": Method(_name, _broken_later),
            "broken before": Method(_unreadable, _plain),
        }

    def pick(self, text: bytes) -> ToyEndpoint:
        return self

    def usage(self) -> dict[str, int]:
        return {"toys": len(self.conversations)}

    def close(self) -> None:
        self.is_closed = True

    def greet(self, client: Client) -> ToyConversation:
        self.conversations.append(ToyConversation(client))
        return self.conversations[-1]


def deliver(connection: Connection, *messages: bytes, binary: bool = False) -> None:
    """Have a connection receive these messages, in one packet."""
    connection.until = 0.0
    for message in messages:
        connection.receive(message, binary=binary)


def introduce(connection: Connection, endpoint: ToyEndpoint) -> ToyConversation:
    """Have the conversation begin, which it does with the first message."""
    deliver(connection, b'{"method":"hello"}')
    toy = endpoint.conversations[0]
    toy.told.clear()
    return toy


def request(number: int, method: str, params: Any = None) -> bytes:
    return json.dumps({"id": number, "method": method, "params": params}).encode()
