"""A toy dialect: JSON-RPC 2.0 proper, and a request that runs a command and can be cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.backend import HostedBackend
from holdfast.dialects.dialect import Client, Method, WireError
from holdfast.dialects.endpoints import Services
from holdfast.errors import BadRequest, HoldfastError, RequestCancelled
from holdfast.model import Chunk, Exit, Leftovers, Spec, Stream
from holdfast.wire.jsonrpc import Envelope, Id, Malformed, Message, Notification, Request, Response

_encode = msgspec.json.encode


# The envelope: every message says that it is JSON-RPC 2.0.


def _decode(text: bytes) -> Message:
    try:
        tree = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Malformed(str(error)) from None
    match tree:
        case {"jsonrpc": "2.0", "method": str(method), "id": key}:
            return Request(key, method, tree.get("params"))
        case {"jsonrpc": "2.0", "method": str(method)}:
            return Notification(method, tree.get("params"))
        case _:
            raise Malformed("not JSON-RPC 2.0")


def _result(key: Id, value: Any) -> Sequence[bytes]:
    return (_encode({"jsonrpc": "2.0", "id": key, "result": value}),)


def _around(key: Id) -> tuple[bytes, bytes]:
    return b'{"jsonrpc":"2.0","id":%b,"result":' % _encode(key), b"}"


def _error(key: Id | None, code: int, message: str, data: Any = None) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message, "data": data}})


ENVELOPE = Envelope(_decode, _result, _around, _error)


# The conversation.


class ToyTalk:
    """One client.  Implements ``dialect.Conversation``."""

    binary = False
    envelope = ENVELOPE

    def __init__(self, backend: HostedBackend, client: Client) -> None:
        self.backend = backend
        self.client = client

    def gate(self, method: Method) -> None: ...

    def notified(self, notification: Notification) -> None:
        match notification:
            case Notification(method="$/cancelRequest", params={"id": int() | str() as key}):
                self.client.cancel(key)

    def answered(self, response: Response) -> None: ...

    def congested(self) -> None: ...

    def drained(self) -> None: ...

    def malformed(self, detail: str) -> bytes:
        return _error(None, -32700, detail)

    def explain(self, error: HoldfastError) -> WireError:
        return WireError(-32800 if isinstance(error, RequestCancelled) else -32000, str(error))

    def usage(self) -> Mapping[str, int]:
        return {}

    def ended(self) -> None: ...


class Gathered:
    """What a process says on its standard output.  Implements ``backend.Watcher``."""

    def __init__(self) -> None:
        self.text = b""

    def output(self, chunk: Chunk) -> None:
        self.text += chunk.data

    def ended(self, stream: Stream) -> None: ...

    def exited(self, seq: int, exit: Exit) -> None: ...  # noqa: A002

    def closed(self, seq: int) -> None: ...


async def _run(talk: ToyTalk, argv: list[str]) -> dict[str, Any]:
    """Run a command to its end; a cancelled request ends the command."""
    process = await talk.backend.start(Spec(argv=argv, cwd="/", env={"PATH": "/usr/bin:/bin"}))
    gathered = Gathered()
    process.watch(gathered)
    try:
        done = await process.wait(3600.0)
    finally:
        process.forget(Leftovers.END)
    return {"code": None if done is None else done.code, "said": gathered.text.decode()}


def _argv(params: Any) -> list[str]:
    try:
        return msgspec.convert(params, dict[str, list[str]])["argv"]
    except (msgspec.ValidationError, KeyError) as error:
        raise BadRequest(str(error)) from None


class ToyDialect:
    """Implements ``dialect.Endpoint``."""

    methods: Mapping[str, Method] = {"toy/run": Method(_argv, _run, "toy", waits=True)}

    def __init__(self, backend: HostedBackend) -> None:
        self._backend = backend

    def pick(self, text: bytes) -> ToyDialect:
        return self

    def greet(self, client: Client) -> ToyTalk:
        return ToyTalk(self._backend.on_behalf_of(client.principal, client.peer), client)

    def usage(self) -> Mapping[str, int]:
        return {}

    def close(self) -> None: ...


def make_endpoint(services: Services) -> ToyDialect:
    return ToyDialect(services.backend)
