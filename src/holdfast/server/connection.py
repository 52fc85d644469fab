"""One client: what it sends, what it is sent, and the end of both."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from time import monotonic
from typing import Any, Protocol

from holdfast.audit import Audit
from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Breach, Conversation, Endpoint, LongResult
from holdfast.errors import Forbidden, HoldfastError
from holdfast.principal import Principal
from holdfast.telemetry import Telemetry
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Malformed, Notification, Request, Response

from .dispatch import Dispatch
from .traced import TracedDispatch

_log = logging.getLogger(__name__)


class Channel(Protocol):
    """The bytes' side of a connection: a WebSocket or a pair of pipes."""

    transport: str
    peer: str
    principal: Principal
    comes_back: bool

    def write(self, *parts: bytes) -> None:
        """Send one message, given in parts.  Never waits; does nothing after the end."""

    def begin(self) -> None:
        """Begin a long message.  Until its end the peer counts as behind, and what is written waits."""

    def piece(self, data: bytes, *, last: bool) -> None:
        """Send a piece of the long message; behind the last one goes what has waited, in its order."""

    @property
    def full(self) -> bool:
        """Whether the peer should first take what it was sent; ``on_room`` tells when it has."""

    def flush(self) -> None:
        """Send now what was gathered."""

    @property
    def unsent(self) -> int:
        """Bytes written and not yet taken by the system."""

    @property
    def congested(self) -> bool:
        """Whether the peer is so far behind that no more output should come."""

    def hold(self) -> None:
        """Receive no more for now."""

    def go_on(self) -> None:
        """Receive again."""

    async def is_alive(self, within: float) -> bool:
        """Ask the peer for a sign of life, and wait for it that many seconds at the most."""

    def end(self, reason: str, *, stopping: bool = False) -> None:
        """Tell the peer why, and end: because of the peer, or because the server stops."""


class Connection:
    """One client on one channel.  Owns all tasks of its requests.  Implements ``dialect.Client``."""

    __slots__ = (
        "_alone",
        "_audit",
        "_channel",
        "_conversation",
        "_dispatch",
        "_endpoint",
        "_inbox",
        "_limits",
        "_long",
        "_on_end",
        "_passed_over",
        "_room",
        "_since",
        "_tasks",
        "_telemetry",
        "send",
    )

    def __init__(
        self,
        channel: Channel,
        endpoint: Endpoint,
        *,
        telemetry: Telemetry,
        limits: ConnectionLimits,
        on_end: Callable[[Connection], None],
        audit: Audit | None = None,
    ) -> None:
        self._channel = channel
        self._audit = audit
        self.send: Callable[..., None] = channel.write
        self._telemetry = telemetry
        self._limits = limits
        self._on_end: Callable[[Connection], None] | None = on_end
        self._alone = False
        self._passed_over = False
        # Made when first needed: an idle connection has none of them.
        self._tasks: dict[asyncio.Task[None], bool] | None = None
        self._inbox: deque[bytes] | None = None
        self._long: asyncio.Lock | None = None
        self._room: asyncio.Future[None] | None = None
        self._endpoint = endpoint
        # The first message tells which dialect it is.
        self._conversation: Conversation | None = None
        self._dispatch: Dispatch | None = None
        self._since = monotonic()
        telemetry.connection_opened(channel.transport)
        if _log.isEnabledFor(logging.INFO):
            facts = {"transport": channel.transport, "peer": channel.peer}
            _log.info("client connected: %s", self._shown, extra=facts)

    def _greet(self, text: bytes) -> tuple[Conversation, Dispatch]:
        endpoint = self._endpoint.pick(text)
        self._conversation = conversation = endpoint.greet(self)
        make: Callable[..., Dispatch] = Dispatch
        if self._telemetry.tracer is not None:
            make = partial(TracedDispatch, tracer=self._telemetry.tracer)
        self._dispatch = dispatch = make(
            endpoint,
            conversation,
            send=self.send,
            send_long=self._send_long,
            flush=self._channel.flush,
            spawn=self._own,
            wait_alone=self._wait_alone,
            grant=self._channel.principal.grant,
            refused=self._refused,
            telemetry=self._telemetry,
            limits=self._limits,
        )
        if self._channel.congested:
            conversation.congested()
        return conversation, dispatch

    @property
    def transport(self) -> str:
        return self._channel.transport

    @property
    def peer(self) -> str:
        return self._channel.peer

    @property
    def principal(self) -> Principal:
        return self._channel.principal

    @property
    def _shown(self) -> str:
        return self._channel.peer or self._channel.transport

    @property
    def comes_back(self) -> bool:
        return self._channel.comes_back

    # In.

    def receive(self, text: bytes, *, binary: bool = False) -> None:
        """Take one message.  The only door in."""
        if self._on_end is None:
            return
        if binary and not (self._conversation or self._greet(text)[0]).binary:
            return
        if self._inbox is not None:
            self._inbox.append(text)
        elif self._is_choked():
            self._inbox = deque((text,))
            self._channel.hold()
        else:
            self._handle(text)

    def _is_choked(self) -> bool:
        """Whether the peer sends and does not read: then it waits for itself, and we do not grow."""
        return self._channel.congested and self._channel.unsent > self._limits.unsent_bytes

    def _wait_alone(self, alone: bool) -> None:  # noqa: FBT001
        """Put what comes next aside while a request must be alone; take it in afterwards."""
        self._alone = alone
        if not alone:
            self._take_in()
        elif self._inbox is None:
            self._inbox = deque()
            self._channel.hold()

    def _take_in(self) -> None:
        """Handle what was put aside, as far as nothing stands against it."""
        while self._inbox and not self._alone and not self._is_choked():
            self._handle(self._inbox.popleft())
        if self._inbox is not None and not self._inbox and not self._alone and not self._is_choked():
            self._inbox = None
            self._channel.go_on()

    def _handle(self, text: bytes) -> None:
        if self._on_end is None:
            return
        conversation, dispatch = self._conversation, self._dispatch
        if conversation is None or dispatch is None:
            conversation, dispatch = self._greet(text)
        try:
            message = conversation.decode(text)
        except Malformed as malformed:
            self._answer_malformed(conversation, malformed)
            return
        if type(message) is Request:
            dispatch.request(message, len(text))
            return
        try:
            if isinstance(message, Response):
                conversation.answered(message)
            elif isinstance(message, Notification):
                conversation.notified(message)
        except Breach as breach:
            self.cut(str(breach))

    def _answer_malformed(self, conversation: Conversation, malformed: Malformed) -> None:
        wire = conversation.malformed(str(malformed))
        if wire is None:
            # Once: the peer must not decide how long our log gets.
            if not self._passed_over:
                _log.warning("%s sent something that is no message: %s", self.peer or "the client", malformed)
            self._passed_over = True
        else:
            self.send(jsonrpc.error(jsonrpc.UNPARSED, wire.code, wire.message))

    def _refused(self, error: HoldfastError) -> None:
        """Keep account of what was refused because of somebody's rules, and not of the request."""
        if error.bound:
            self._telemetry.limit_reached(error.bound)
        elif isinstance(error, Forbidden) and self._audit is not None:
            self._audit.forbidden(self.principal, self.peer, error.what, error.subject)

    # Out.

    def congested(self) -> None:
        """The peer is so far behind that no more output should come."""
        if self._conversation is not None:
            self._conversation.congested()

    def drained(self) -> None:
        """The peer has caught up."""
        self._take_in()
        if not self._channel.congested and self._conversation is not None:
            self._conversation.drained()

    # Long messages.

    async def _send_long(self, before: bytes, behind: bytes, result: LongResult) -> None:
        """Send an answer piece by piece; others that are long wait for its end."""
        if self._long is None:
            self._long = asyncio.Lock()
        try:
            async with self._long:
                await self._send_pieces(before, behind, result)
        finally:
            await result.pieces.aclose()
            result.close()

    async def _send_pieces(self, before: bytes, behind: bytes, result: LongResult) -> None:
        channel = self._channel
        channel.begin()
        try:
            channel.piece(before + result.head, last=False)
            async for data in result.pieces:
                if channel.full:
                    await self._has_room()
                channel.piece(data, last=False)
                channel.flush()
        except HoldfastError as error:
            self.cut(f"an answer broke off: {error}")
        except BaseException:
            # The connection is gone, or we are to blame: in any case nothing may look like an answer.
            self.cut("an answer broke off")
            raise
        else:
            channel.piece(result.tail + behind, last=True)

    async def _has_room(self) -> None:
        self._room = room = asyncio.get_running_loop().create_future()
        try:
            await room
        finally:
            self._room = None

    def on_room(self) -> None:
        """The peer has taken what it was sent of a long message."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    async def is_alive(self, within: float) -> bool:
        return await self._channel.is_alive(within)

    def usage(self) -> dict[str, int]:
        """How much of its limits is in use, by their names."""
        used = {"connection.unsent_bytes": self._channel.unsent}
        if self._dispatch is not None and self._conversation is not None:
            used |= {**self._dispatch.usage(), **self._conversation.usage()}
        return used

    # The end.

    def cut(self, reason: str, *, stopping: bool = False) -> None:
        """End the connection from our side."""
        if self._on_end is not None:
            self._channel.end(reason, stopping=stopping)
            self.lost()

    def lost(self) -> None:
        """The connection is gone.  Everything that waited for an answer is given up."""
        on_end, self._on_end = self._on_end, None
        if on_end is None:
            return
        self._inbox = None
        if self._dispatch is not None:
            self._dispatch.stop()
        if self._conversation is not None:
            self._conversation.ended()
        # Who knows each other in a circle is not freed when it is no longer needed, but when somebody looks.
        self._dispatch = self._conversation = None
        for task, outlives in list((self._tasks or {}).items()):
            if not outlives:
                task.cancel()
        self._telemetry.connection_closed(self._channel.transport)
        if _log.isEnabledFor(logging.INFO):
            seconds = monotonic() - self._since
            facts = {"transport": self.transport, "peer": self.peer, "seconds": seconds}
            _log.info("client gone after %.3f s: %s", seconds, self._shown, extra=facts)
        on_end(self)

    async def finished(self) -> None:
        """Wait until every task of a lost connection has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _own(self, coroutine: Coroutine[Any, Any, None], outlives: bool) -> None:  # noqa: FBT001
        task = asyncio.get_running_loop().create_task(coroutine)
        if self._tasks is None:
            self._tasks = {}
        self._tasks[task] = outlives
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        assert self._tasks is not None
        del self._tasks[task]
        if not self._tasks:
            self._tasks = None
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a request's task failed", exc_info=error)
