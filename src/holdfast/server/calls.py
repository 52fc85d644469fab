"""The requests of one connection: from each request to its handler, and back to its answer.

What must hold:

1. A request is handled when it arrives.  One that has to wait delays no other.
2. Requests about a process that is starting wait for that start, in the order in which they
   arrived.  Only a request that cancels the start overtakes it.
3. Every request gets exactly one answer, unless the connection is gone.
4. A request that waits can be found, and cancelled, by the identifier its client gave it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from functools import partial
from time import perf_counter
from types import CoroutineType
from typing import Any, Protocol

import msgspec

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Conversation, Endpoint, LongResult, Method, Postponed, Sequel
from holdfast.errors import Forbidden, HoldfastError, LimitReached, RequestCancelled, UnknownMethod
from holdfast.principal import Grant
from holdfast.protocol.errors import INTERNAL
from holdfast.stalls import Stalls
from holdfast.tracing import Span
from holdfast.wire.jsonrpc import Id, Request

from .eager import Rest, run_ahead

_log = logging.getLogger(__name__)

INTERNAL_ERROR = -32603

_CONTINUED = frozenset({Rest, Postponed, Sequel, LongResult})
"""Kinds of results after which the request still has work to do."""
_LONG = frozenset({Sequel, LongResult})
"""Kinds of results that the task of a request takes as they are; it awaits all others."""


class CallObserver(Protocol):
    """An object that is notified of what happens to each request, to count, time or trace it."""

    def received(self, call: Call) -> None:
        """A request has arrived.  The observer may set ``call.context``, in which it is then handled."""

    def answered(self, call: Call, result: str) -> None:
        """The answer was sent; ``result`` is ``success`` or ``error``."""

    def dropped(self, call: Call) -> None:
        """Take note that the connection is gone and there will be no answer.  May follow ``answered``."""


class CallOwner(Protocol):
    """What the requests need of the connection they came on."""

    @property
    def send(self) -> Callable[..., None]:
        """Sends one message, given in parts.  Never waits."""

    def flush(self) -> None:
        """Send at once what ``send`` gathers."""

    async def send_pieces(self, before: bytes, after: bytes, result: LongResult) -> None:
        """Send a long result piece by piece, with ``before`` and ``after`` around it."""

    def own(self, coroutine: Coroutine[Any, Any, None], *, outlives: bool) -> asyncio.Task[None] | None:
        """Run a coroutine as a task of the connection; None if it has ended without waiting.

        The task is cancelled with the connection unless it ``outlives`` it.
        """

    def wait_alone(self, *, alone: bool) -> None:
        """Take no further messages while a request must be alone; go on when it no longer is."""

    def refused(self, error: HoldfastError) -> None:
        """Count a refusal, or write it to the audit log."""


class Call(msgspec.Struct, eq=False):
    """One request, from its receipt to its answer.

    Its handler's result goes to ``answer``, an expected error to ``refuse``, a mistake of
    ours to ``fail``.  Exactly one of them is called, unless the connection is gone.
    """

    calls: Calls
    request: Request
    method: Method | None
    """None for a method that does not exist."""
    size: int
    """Bytes of its message."""
    params: Any = None
    received: float = 0.0
    started: float = 0.0
    """Both by ``perf_counter``, and only where an observer needs them."""
    span: Span | None = None
    context: Context | None = None
    """In which the request is handled; None for that of whoever handles it."""
    key: object = None
    """Under which the call is registered while it waits: the request's identifier, if that is unique."""
    task: asyncio.Task[None] | None = None
    stop: Callable[[], None] | None = None
    """Ends the wait for a postponed result.  A call that waits has this, a task, or a start before it."""
    is_cancelled: bool = False
    is_alone: bool = False
    """Whether whatever the client sends next waits behind it."""

    def answer(self, result: Any) -> None:
        calls = self.calls
        calls.send(*calls.encode(self.request.id, result))
        for observer in calls.observers:
            observer.answered(self, "success")

    async def complete(self, result: Any) -> None:
        """Answer with a result that may be long, or have something to be done after it."""
        calls = self.calls
        if type(result) is LongResult:
            await calls.owner.send_pieces(*calls.conversation.envelope.around(self.request.id), result)
            for observer in calls.observers:
                observer.answered(self, "success")
        elif type(result) is Sequel:
            self.answer(result.result)
            calls.owner.flush()
            await result.rest
        else:
            self.answer(result)

    def refuse(self, error: HoldfastError) -> None:
        calls = self.calls
        calls.owner.refused(error)
        wire = calls.conversation.explain(error)
        self._send_error(wire.code, wire.message, wire.data)

    def fail(self) -> None:
        """Report the exception that is being handled to the log, and an internal error to the client."""
        _log.exception("%s failed", self.request.method)
        self._send_error(INTERNAL_ERROR, f"internal error in {self.request.method}", INTERNAL)

    def _send_error(self, code: int, message: str, data: Any = None) -> None:
        calls = self.calls
        calls.send(calls.conversation.envelope.error(self.request.id, code, message, data))
        for observer in calls.observers:
            observer.answered(self, "error")


class Calls:
    """All requests of one connection."""

    __slots__ = (
        "_grant",
        "_held",
        "_limits",
        "_methods",
        "_stalls",
        "_waiting",
        "_waiting_bytes",
        "conversation",
        "encode",
        "observers",
        "owner",
        "send",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        conversation: Conversation,
        owner: CallOwner,
        *,
        grant: Grant,
        observers: Sequence[CallObserver],
        stalls: Stalls,
        limits: ConnectionLimits,
    ) -> None:
        """
        Args:
            grant: The methods that the client may use.
            stalls: Is told which method is being handled.
        """
        self.conversation = conversation
        self.owner = owner
        self.observers = observers
        # Looked up once: they are needed for every request.
        self.send = owner.send
        self.encode = conversation.envelope.result
        self._methods = endpoint.methods
        self._grant = grant if grant.methods is not None else None
        self._stalls = stalls
        self._limits = limits
        # The calls that wait, by key.  Made when first needed, like the next one.
        self._waiting: dict[object, Call] | None = None
        self._waiting_bytes = 0
        # Per name of a starting process: the calls that wait for its start.  None is no name.
        self._held: dict[str | None, deque[Call]] | None = None

    # From the request to its handler.

    def take(self, request: Request, size: int) -> None:
        """Take a request whose message has ``size`` bytes."""
        call = Call(self, request, self._methods.get(request.method), size)
        if self.observers:
            call.received = call.started = perf_counter()
            for observer in self.observers:
                observer.received(call)
            if call.context is not None:
                call.context.run(self._take, call)
                return
        if self._admit(call):
            self._handle(call)

    def _take(self, call: Call) -> None:
        """Admit and handle a call in its own context."""
        if self._admit(call):
            self._handle(call)

    def _admit(self, call: Call) -> bool:
        """Check a request.  Return whether to handle it now: it may wait for the start of its process."""
        request, method = call.request, call.method
        try:
            if method is None:
                raise UnknownMethod(request.method)
            self._stalls.doing = request.method
            if self._grant is not None and not method.is_granted(request.method, self._grant):
                raise Forbidden("method", request.method)
            call.params = params = method.decode(request.params)
            self.conversation.gate(method)
            # The line of calls in which this one has to wait for a start, if it has to.
            line = None if self._held is None else self._held.get(method.name_of(params))
            if self._waiting and (method.waits or line is not None):
                self._check_room(call.size)
        except HoldfastError as error:
            call.refuse(error)
            return False
        except Exception:  # noqa: BLE001  (a decoder of ours that fails must not leave the client waiting)
            call.fail()
            return False
        if line is None:
            return True
        line.append(call)
        self._register(call)
        return False

    def _check_room(self, size: int) -> None:
        if len(self._waiting or ()) >= self._limits.waiting_requests:
            most = self._limits.waiting_requests
            raise LimitReached("requests waiting for an answer", most, name="connection.waiting_requests")
        if self._waiting_bytes + size > self._limits.waiting_bytes:
            most = self._limits.waiting_bytes
            raise LimitReached(
                "bytes of requests waiting for an answer", most, name="connection.waiting_bytes"
            )

    def _handle(self, call: Call) -> None:
        """Run the handler.  The call becomes a task only if the handler has to wait."""
        method = call.method
        assert method is not None
        if self.observers:
            call.started = perf_counter()
        try:
            result = method.handle(self.conversation, call.params)
            if method.starts:
                # A start always waits, and its handler wants to run in its task from the beginning.
                name = method.name_of(call.params)
                if name is not None:
                    self._held = self._held or {}
                    self._held[name] = deque()
                self._register(call)
                call.task = self.owner.own(self._finish(call, result, name), outlives=True)
                return
            if type(result) is CoroutineType:
                result = run_ahead(result)
        except HoldfastError as error:
            call.refuse(error)
        except Exception:  # noqa: BLE001  (the one place where a handler's failure ends)
            call.fail()
        else:
            if type(result) not in _CONTINUED:
                call.answer(result)
                return
            if method.alone:
                call.is_alone = True
                self.owner.wait_alone(alone=True)
            self._register(call)
            self._continue(call, method, result)

    def _continue(self, call: Call, method: Method, result: Any) -> None:
        """Wait for what a result still lacks, or do what follows it."""
        if type(result) is Postponed:
            resume = partial(self._resume, call, method, result.result)
            call_soon = asyncio.get_running_loop().call_soon
            call.stop = result.listen(partial(call_soon, resume, context=call.context))
            return
        call.task = self.owner.own(self._finish(call, result, None), outlives=False)

    def _resume(self, call: Call, method: Method, get: Callable[[], Any]) -> None:
        """What a postponed result has waited for has happened."""
        if call.stop is None:  # Cancelled in between.
            return
        call.stop = None
        self._stalls.doing = call.request.method
        try:
            result = get()
            if type(result) is CoroutineType:
                result = run_ahead(result)
        except HoldfastError as error:
            call.refuse(error)
        except Exception:  # noqa: BLE001  (as in ``_handle``)
            call.fail()
        else:
            if type(result) in _CONTINUED:
                self._continue(call, method, result)
                return
            call.answer(result)
        self.owner.flush()
        self._unregister(call)

    async def _finish(self, call: Call, given: Any, starting: str | None) -> None:
        """Wait for the result of a handler, if there is something to wait for, and answer with it."""
        try:
            result = given if type(given) in _LONG else await given
            if isinstance(result, asyncio.Future):
                # The process runs, and the answer is still to come: others may use the process already.
                self._release(starting)
                starting = None
                result = await result
        except HoldfastError as error:
            call.refuse(error)
        except asyncio.CancelledError:
            if not call.is_cancelled:
                raise
            call.refuse(RequestCancelled())
        except Exception:  # noqa: BLE001  (as above, for a handler that waited)
            call.fail()
        else:
            self._stalls.doing = call.request.method
            await call.complete(result)
        finally:
            # Outside of any batch of events: nothing is gained by waiting for more to send.
            self.owner.flush()
            self._unregister(call)
            self._release(starting)

    # Requests that wait.

    def cancel(self, key: Id) -> bool:
        """Cancel the request with this identifier; return whether one was waiting.

        Its client gets an answer all the same: ``RequestCancelled``, or the result if
        the handler completes in spite of the cancellation.
        """
        call = (self._waiting or {}).get(key)
        if call is None:
            return False
        call.is_cancelled = True
        if call.task is not None:
            # Later: a task that is cancelled before its first step runs no clean-up, and answers nobody.
            asyncio.get_running_loop().call_soon(call.task.cancel)
        else:
            for line in (self._held or {}).values():
                if call in line:
                    line.remove(call)
            self._unregister(call)
            call.refuse(RequestCancelled())
        return True

    def _register(self, call: Call) -> None:
        if self._waiting is None:
            self._waiting = {}
        # Identifiers may repeat, and each request is answered all the same.
        call.key = call if call.request.id in self._waiting else call.request.id
        self._waiting[call.key] = call
        self._waiting_bytes += call.size

    def _unregister(self, call: Call) -> None:
        assert self._waiting is not None
        del self._waiting[call.key]
        self._waiting_bytes -= call.size
        if not self._waiting:
            self._waiting = None
        # Without an effect on one that was answered.
        for observer in self.observers:
            observer.dropped(call)
        # A task that was cancelled keeps the exception, which leads to this call by way of the frames it
        # went through.  A circle is freed when somebody looks for it, and may hold a message of 64 MiB.
        call.task = None
        if call.stop is not None:
            call.stop()
            call.stop = None
        if call.is_alone:
            self.owner.wait_alone(alone=False)

    def _release(self, name: str | None) -> None:
        """The start is over: handle what waited for it, in order."""
        if name is None:
            return
        assert self._held is not None
        line = self._held.pop(name)
        while line:
            call = line.popleft()
            if name in self._held:  # Another start of that name has begun: the rest waits for that one.
                self._held[name].append(call)
                continue
            assert self._waiting is not None
            del self._waiting[call.key]
            self._waiting_bytes -= call.size
            if call.context is None:
                self._handle_held(call)
            else:
                call.context.run(self._handle_held, call)
        if not self._held:
            self._held = None

    def _handle_held(self, call: Call) -> None:
        """Handle a request that has waited, if the conversation still allows it."""
        assert call.method is not None
        try:
            self.conversation.gate(call.method)
        except HoldfastError as error:
            call.refuse(error)
        else:
            self._handle(call)

    # Questions, and the end.

    def usage(self) -> dict[str, int]:
        """How much of its limits is in use, by their names."""
        return {
            "connection.waiting_requests": len(self._waiting or ()),
            "connection.waiting_bytes": self._waiting_bytes,
        }

    def stop(self) -> None:
        """The connection is gone: drop what waits for a start, and tell observers what is not answered."""
        for line in (self._held or {}).values():
            line.clear()
        for call in list((self._waiting or {}).values()):
            if call.stop is not None:
                self._unregister(call)
            elif call.task is None or call.method is None or not call.method.starts:  # A start goes on.
                for observer in self.observers:
                    observer.dropped(call)
