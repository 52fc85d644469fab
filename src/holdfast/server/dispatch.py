"""From a request to its handler, and back to its answer.

What must hold:

1. A request is handled when it arrives; one that has to wait holds up nobody.
2. Requests about a process that is starting wait for that start, in the order
   they came; only what gives the start up goes ahead of it.
3. Every request gets exactly one answer, unless the connection is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass
from time import perf_counter
from types import CoroutineType
from typing import Any

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Conversation, Endpoint, LongResult, Method, Sequel, UnknownMethod
from holdfast.errors import Forbidden, HoldfastError, LimitReached
from holdfast.principal import Grant
from holdfast.telemetry import Telemetry
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Request

from .eager import Rest, run_ahead

_log = logging.getLogger(__name__)

INTERNAL_ERROR = -32603


_TO_BE_CONTINUED = frozenset({Sequel, LongResult})
"""Results with which a request is not over, whether or not it had to wait for them."""


async def _given(result: Any) -> Any:
    return result


@dataclass(slots=True)
class Held:
    """A request that waits for a start."""

    request: Request
    method: Method
    params: Any
    size: int
    received: float
    context: Context
    """In which it was received, with its span: it is handled in the course of another request."""


class Dispatch:
    """The requests of one connection."""

    __slots__ = (
        "_conversation",
        "_flush",
        "_grant",
        "_held",
        "_limits",
        "_methods",
        "_recording",
        "_refused",
        "_send",
        "_send_long",
        "_spawn",
        "_telemetry",
        "_wait_alone",
        "_waiting",
        "_waiting_bytes",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        conversation: Conversation,
        *,
        send: Callable[..., None],
        send_long: Callable[[bytes, bytes, LongResult], Awaitable[None]],
        flush: Callable[[], None],
        spawn: Callable[[Coroutine[Any, Any, None], bool], None],
        wait_alone: Callable[[bool], None],
        grant: Grant,
        refused: Callable[[HoldfastError], None],
        telemetry: Telemetry,
        limits: ConnectionLimits,
    ) -> None:
        """
        Args:
            send_long: Sends a long message, with what comes before and behind its result.
            flush: Sends at once what ``send`` would gather.
            spawn: Runs a coroutine as a task of the connection; True if it outlives it.
            wait_alone: Told True when nothing else may be taken in, False when it may again.
            grant: Which methods the client may use.
            refused: Told of each request that is refused, and why.
        """
        self._methods = endpoint.methods
        self._conversation = conversation
        self._send = send
        self._send_long = send_long
        self._flush = flush
        self._spawn = spawn
        self._wait_alone = wait_alone
        self._grant = grant if grant.methods is not None else None
        self._refused = refused
        self._telemetry = telemetry
        self._recording = telemetry.recording
        self._limits = limits
        self._waiting = 0
        self._waiting_bytes = 0
        # Per name of a starting process: the requests that wait for its start.
        self._held: dict[str, deque[Held]] | None = None

    def request(self, request: Request, size: int) -> None:
        """Take a request of so many bytes."""
        received = perf_counter() if self._recording else 0.0
        method = self._methods.get(request.method)
        try:
            if method is None:
                raise UnknownMethod(request.method)
            # The handshake is everybody's: without it nobody could be told anything.
            if self._grant is not None and method.family and not self._grant.allows_method(request.method):
                raise Forbidden("method", request.method)
            params = method.decode(request.params)
            self._conversation.gate(method)
            line = self._line(method, params) if self._held is not None else None
            if self._waiting and (method.waits or line is not None):
                self._check_room(size)
        except HoldfastError as error:
            self._refuse(request, error, received, received, known=method is not None)
            return
        except Exception:  # noqa: BLE001  (a decoder of ours that fails must not leave the client waiting)
            self._break(request, received, received)
            return
        if line is None:
            self._run(request, method, params, size, received)
        else:
            line.append(Held(request, method, params, size, received, copy_context()))
            self._count(size)

    def _line(self, method: Method, params: Any) -> deque[Held] | None:
        """Where a request has to wait for a start, if it has to."""
        name = method.name_of(params)
        return None if name is None or self._held is None else self._held.get(name)

    def _check_room(self, size: int) -> None:
        if self._waiting >= self._limits.waiting_requests:
            most = self._limits.waiting_requests
            raise LimitReached("requests waiting for an answer", most, name="connection.waiting_requests")
        if self._waiting_bytes + size > self._limits.waiting_bytes:
            most = self._limits.waiting_bytes
            raise LimitReached(
                "bytes of requests waiting for an answer", most, name="connection.waiting_bytes"
            )

    def _run(self, request: Request, method: Method, params: Any, size: int, received: float) -> None:
        """Handle a request now.  It becomes a task only if it has to wait."""
        started = perf_counter() if self._recording else 0.0
        try:
            result = method.handle(self._conversation, params)
            if method.starts:
                # A start always waits, and wants to know its own task from the beginning.
                name = method.name_of(params)
                self._hold(name)
                self._count(size)
                self._spawn(self._finish(request, method, result, size, received, started, name), True)
                return
            if type(result) is CoroutineType:
                result = run_ahead(result)
        except HoldfastError as error:
            self._refuse(request, error, received, started)
        except Exception:  # noqa: BLE001  (the one place where a handler's failure ends)
            self._break(request, received, started)
        else:
            if type(result) is not Rest and type(result) not in _TO_BE_CONTINUED:
                self._succeed(request, result, received, started)
                return
            rest = result if type(result) is Rest else _given(result)
            if method.alone:
                self._wait_alone(True)
            self._count(size)
            self._spawn(self._finish(request, method, rest, size, received, started, None), False)

    async def _finish(
        self,
        request: Request,
        method: Method,
        rest: Awaitable[Any],
        size: int,
        received: float,
        started: float,
        starting: str | None,
    ) -> None:
        """Wait for the result of a request and answer it."""
        try:
            result = await rest
            if isinstance(result, asyncio.Future):
                # It has started, and its answer is still to come: others may use it already.
                self._release(starting)
                starting = None
                result = await result
        except HoldfastError as error:
            self._refuse(request, error, received, started)
        except Exception:  # noqa: BLE001  (as above, for a handler that waited)
            self._break(request, received, started)
        else:
            if type(result) is Sequel:
                self._succeed(request, result.result, received, started)
                self._flush()
                await result.rest
            elif type(result) is LongResult:
                await self._send_long(*jsonrpc.around(request.id), result)
                if self._recording:
                    self._record(request.method, "success", received, started)
            else:
                self._succeed(request, result, received, started)
        finally:
            # Outside of any batch of events: nothing is gained by waiting for more to send.
            self._flush()
            self._count(-size)
            self._release(starting)
            if method.alone:
                self._wait_alone(False)

    # Requests behind a start.

    def _hold(self, name: str | None) -> None:
        if name is None:
            return
        if self._held is None:
            self._held = {}
        self._held[name] = deque()

    def _release(self, name: str | None) -> None:
        """The start is over: run what waited for it, in order."""
        if name is None:
            return
        assert self._held is not None
        line = self._held.pop(name)
        while line:
            held = line.popleft()
            self._count(-held.size)
            if name in self._held:  # Another start of that name: the rest waits for this one.
                self._held[name].append(held)
                self._count(held.size)
            else:
                held.context.run(self._run, held.request, held.method, held.params, held.size, held.received)
        if not self._held:
            self._held = None

    def usage(self) -> dict[str, int]:
        """How much of its limits is in use, by their names."""
        return {"connection.waiting_requests": self._waiting, "connection.waiting_bytes": self._waiting_bytes}

    def stop(self) -> None:
        """The connection is gone: what waits for a start has nobody to answer to."""
        for line in (self._held or {}).values():
            line.clear()

    def _count(self, size: int) -> None:
        """One more request waits, of so many bytes; or one less, if negative."""
        self._waiting += 1 if size > 0 else -1
        self._waiting_bytes += size

    # Answers.

    def _succeed(self, request: Request, result: Any, received: float, started: float) -> None:
        self._send(*jsonrpc.result(request.id, result))
        if self._recording:
            self._record(request.method, "success", received, started)

    def _refuse(
        self, request: Request, error: HoldfastError, received: float, started: float, *, known: bool = True
    ) -> None:
        self._refused(error)
        wire = self._conversation.explain(error)
        self._send(jsonrpc.error(request.id, wire.code, wire.message, wire.data))
        if self._recording:
            self._record(request.method if known else "unknown", "error", received, started)

    def _break(self, request: Request, received: float, started: float) -> None:
        _log.exception("%s failed", request.method)
        self._send(jsonrpc.error(request.id, INTERNAL_ERROR, f"internal error in {request.method}"))
        if self._recording:
            self._record(request.method, "error", received, started)

    def _record(self, name: str, result: str, received: float, started: float) -> float:
        """Count a request; return when it was answered."""
        now = perf_counter()
        self._telemetry.request_done(name, result, queued=started - received, handled=now - started)
        return now
