"""From a request to its handler, and back to its answer.

What must hold:

1. A request is handled when it arrives; one that has to wait holds up nobody.
2. Requests about a process that is starting wait for that start, in the order
   they came; only what gives the start up goes ahead of it.
3. Every request gets exactly one answer, unless the connection is gone.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Conversation, Endpoint, Method, UnknownMethod
from holdfast.errors import HoldfastError, LimitReached
from holdfast.telemetry import Telemetry
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Id, Request

from .eager import Rest, run_ahead

_log = logging.getLogger(__name__)

INTERNAL_ERROR = -32603


@dataclass(slots=True)
class Call:
    """A request on its way to an answer."""

    key: Id
    name: str
    method: Method
    params: Any
    size: int
    """Bytes of the message: what the call may hold in memory while it waits."""
    process: str | None
    received: float
    started: float = 0.0


class Dispatch:
    """The requests of one connection."""

    __slots__ = (
        "_conversation",
        "_held",
        "_limits",
        "_methods",
        "_recording",
        "_send",
        "_spawn",
        "_telemetry",
        "_waiting",
        "_waiting_bytes",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        conversation: Conversation,
        *,
        send: Callable[[bytes], None],
        spawn: Callable[[Coroutine[Any, Any, None], bool], None],
        telemetry: Telemetry,
        limits: ConnectionLimits,
    ) -> None:
        """``spawn`` runs a coroutine as a task of the connection; True if it outlives it."""
        self._methods = endpoint.methods
        self._conversation = conversation
        self._send = send
        self._spawn = spawn
        self._telemetry = telemetry
        self._recording = telemetry.recording
        self._limits = limits
        self._waiting = 0
        self._waiting_bytes = 0
        # Per name of a starting process: the calls that wait for its start.
        self._held: dict[str, deque[Call]] | None = None

    def request(self, request: Request, size: int) -> None:
        """Take a request."""
        received = perf_counter() if self._recording else 0.0
        method = self._methods.get(request.method)
        try:
            if method is None:
                raise UnknownMethod(request.method)
            params = method.decode(request.params)
            self._conversation.gate(method)
            if self._waiting and method.waits:
                self._check_room(size)
        except HoldfastError as error:
            name = request.method if method is not None else "unknown"
            self._send(self._refusal(request.id, error))
            self._record(name, "error", received, received)
            return
        process = method.name_of(params) if self._held or method.starts else None
        self._admit(Call(request.id, request.method, method, params, size, process, received))

    def _check_room(self, size: int) -> None:
        if self._waiting >= self._limits.waiting_requests:
            raise LimitReached("requests waiting for an answer", self._limits.waiting_requests)
        if self._waiting_bytes and self._waiting_bytes + size > self._limits.waiting_bytes:
            raise LimitReached("bytes of requests waiting for an answer", self._limits.waiting_bytes)

    def _admit(self, call: Call) -> None:
        """Run the call now, or hold it until the process it is about has started."""
        if self._held is not None and call.process is not None and call.process in self._held:
            self._held[call.process].append(call)
            self._count(call, 1)
            return
        if self._recording:
            call.started = perf_counter()
        if call.method.starts:
            assert call.process is not None
            if self._held is None:
                self._held = {}
            self._held[call.process] = deque()
            # A start always waits, and wants to know its own task from the beginning.
            self._count(call, 1)
            self._spawn(self._finish(call, call.method.handle(self._conversation, call.params)), True)
            return
        try:
            result = run_ahead(call.method.handle(self._conversation, call.params))
        except HoldfastError as error:
            self._fail(call, error)
        except Exception:  # noqa: BLE001  (the one place where a handler's failure ends)
            self._break(call)
        else:
            if type(result) is Rest:
                self._count(call, 1)
                self._spawn(self._finish(call, result), False)
            else:
                self._succeed(call, result)

    async def _finish(self, call: Call, rest: Awaitable[Any]) -> None:
        """Wait for the call's result and answer."""
        try:
            result = await rest
        except HoldfastError as error:
            self._fail(call, error)
        except Exception:  # noqa: BLE001  (as above, for a handler that waited)
            self._break(call)
        else:
            self._succeed(call, result)
        finally:
            self._count(call, -1)
            if call.method.starts:
                self._release(call)

    def _release(self, start: Call) -> None:
        """The start is over: run what waited for it, in order."""
        assert self._held is not None
        assert start.process is not None
        held = self._held.pop(start.process)
        while held:
            call = held.popleft()
            self._count(call, -1)
            self._admit(call)  # Behind another start of that name it is held again, in order.
        if not self._held:
            self._held = None

    def _count(self, call: Call, change: int) -> None:
        self._waiting += change
        self._waiting_bytes += change * call.size

    # Answers.

    def _succeed(self, call: Call, result: Any) -> None:
        self._send(jsonrpc.result(call.key, result))
        if self._recording:
            self._record(call.name, "success", call.received, call.started)

    def _fail(self, call: Call, error: HoldfastError) -> None:
        self._send(self._refusal(call.key, error))
        self._record(call.name, "error", call.received, call.started)

    def _break(self, call: Call) -> None:
        _log.exception("%s failed", call.name)
        self._send(jsonrpc.error(call.key, INTERNAL_ERROR, f"internal error in {call.name}"))
        self._record(call.name, "error", call.received, call.started)

    def _refusal(self, key: Id, error: HoldfastError) -> bytes:
        wire = self._conversation.explain(error)
        return jsonrpc.error(key, wire.code, wire.message, wire.data)

    def _record(self, name: str, result: str, received: float, started: float) -> None:
        if self._recording:
            self._telemetry.request_done(
                name, result, queued=started - received, handled=perf_counter() - started
            )
