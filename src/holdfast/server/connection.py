"""One client: what it sends, what it is sent, and the end of both."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from time import monotonic
from typing import Any

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Breach, Conversation, Endpoint, LongResult
from holdfast.errors import Forbidden, HoldfastError
from holdfast.principal import Principal
from holdfast.telemetry import Audit, Telemetry
from holdfast.wire.jsonrpc import Id, Malformed, Notification, Request, Response

from .calls import CallObserver, Calls
from .channel import Channel
from .eager import Rest, run_ahead
from .observers import observers_of

_log = logging.getLogger(__name__)


class Connection:
    """One client on one channel.  Owns all tasks of its requests.

    Implements ``dialect.Client`` for the conversation, and ``calls.CallOwner`` for its requests.
    """

    __slots__ = (
        "_alone",
        "_at_end",
        "_audit",
        "_calls",
        "_channel",
        "_conversation",
        "_endpoint",
        "_inbox",
        "_limits",
        "_long",
        "_observers",
        "_on_end",
        "_passed_over",
        "_room",
        "_since",
        "_tasks",
        "_telemetry",
        "_turn",
        "send",
        "until",
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
        observers: Sequence[CallObserver] | None = None,
    ) -> None:
        """``observers`` of its requests are shared by all connections; by default the telemetry's."""
        self._channel = channel
        self._audit = audit
        self.send: Callable[..., None] = channel.write
        self._telemetry = telemetry
        self._observers = observers_of(telemetry) if observers is None else observers
        self._limits = limits
        self._on_end: Callable[[Connection], None] | None = on_end
        self.until = 0.0
        """When others get their turn; 0.0 before the first message of what the channel has received."""
        self._alone = False
        self._passed_over = False
        # Made when first needed: an idle connection has none of them.
        self._tasks: dict[asyncio.Task[None], bool] | None = None
        self._inbox: deque[bytes] | None = None
        self._turn: asyncio.Handle | None = None
        self._at_end: Callable[[], None] | None = None
        self._long: asyncio.Lock | None = None
        self._room: asyncio.Future[None] | None = None
        self._endpoint = endpoint
        # The first message tells which dialect it is.
        self._conversation: Conversation | None = None
        self._calls: Calls | None = None
        self._since = monotonic()
        telemetry.connection_opened(channel.transport)
        if _log.isEnabledFor(logging.INFO):
            facts = {"transport": channel.transport, "peer": channel.peer}
            _log.info("client connected: %s", self._shown, extra=facts)

    def _greet(self, text: bytes) -> tuple[Conversation, Calls]:
        endpoint = self._endpoint.pick(text)
        self._conversation = conversation = endpoint.greet(self)
        self._calls = calls = Calls(
            endpoint,
            conversation,
            self,
            grant=self._channel.principal.grant,
            observers=self._observers,
            stalls=self._telemetry.stalls,
            limits=self._limits,
        )
        if self._channel.congested:
            conversation.congested()
        return conversation, calls

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

    def receive(self, text: bytes, binary: bool = False) -> None:  # noqa: FBT001, FBT002  (the hot path)
        """Take one message.  The only way in."""
        if self._on_end is None:
            return
        if binary and not (self._conversation or self._greet(text)[0]).binary:
            return
        if self._inbox is not None:
            if self._at_end is None:
                self._inbox.append(text)
            return
        now = monotonic()
        if not self.until:
            self.until = now + self._limits.turn_seconds
        elif now > self.until:
            self._put_aside(text)
            self._give_turn()
            return
        if self._channel.congested and self._is_choked():
            self._put_aside(text)
        else:
            self._handle(text)

    def call_after_queued(self, end: Callable[[], None]) -> None:
        """Call ``end`` after the messages that wait for their turn: the peer sent them before it ended."""
        if self._turn is None:
            end()
        elif self._at_end is None:
            self._at_end = end

    def _put_aside(self, *texts: bytes) -> None:
        self._inbox = deque(texts)
        self._channel.hold()

    def _is_choked(self) -> bool:
        """Whether the peer sends and does not read: then it waits for itself, and we do not grow."""
        return self._channel.congested and self._channel.unsent > self._limits.unsent_bytes

    def wait_alone(self, *, alone: bool) -> None:
        self._alone = alone
        if not alone:
            self._take_in()
        elif self._inbox is None:
            self._put_aside()

    def _give_turn(self) -> None:
        """Let others have their turn, and go on in the next one."""
        self._turn = asyncio.get_running_loop().call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._turn = None
        self._take_in()

    def _take_in(self) -> None:
        """Handle what was put aside, as far as nothing stands against it and for as long as a turn is."""
        if self._turn is not None:
            return
        until = monotonic() + self._limits.turn_seconds
        while self._inbox and not self._alone and not self._is_choked():
            self._handle(self._inbox.popleft())
            if self._inbox and monotonic() > until:
                self._give_turn()
                return
        end, self._at_end = self._at_end, None
        if end is not None:
            end()  # What waits for more than its turn is given up.
        elif self._inbox is not None and not self._inbox and not self._alone and not self._is_choked():
            self._inbox = None
            self._channel.go_on()

    def _handle(self, text: bytes) -> None:
        if self._on_end is None:
            return
        conversation, calls = self._conversation, self._calls
        if conversation is None or calls is None:
            conversation, calls = self._greet(text)
        try:
            message = conversation.envelope.decode(text)
        except Malformed as malformed:
            self._answer_malformed(conversation, malformed)
            return
        if type(message) is Request:
            calls.take(message, len(text))
            return
        try:
            if isinstance(message, Response):
                conversation.answered(message)
            elif isinstance(message, Notification):
                conversation.notified(message)
        except Breach as breach:
            self.cut(str(breach))

    def _answer_malformed(self, conversation: Conversation, malformed: Malformed) -> None:
        answer = conversation.malformed(str(malformed))
        if answer is None:
            # Once: the peer must not decide how long our log gets.
            if not self._passed_over:
                _log.warning("%s sent something that is no message: %s", self.peer or "the client", malformed)
            self._passed_over = True
        else:
            self.send(answer)

    def cancel(self, key: Id) -> bool:
        return self._calls is not None and self._calls.cancel(key)

    def refused(self, error: HoldfastError) -> None:
        # Only what was refused because of an operator's rules is of interest, not mistakes in requests.
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

    def send_long(self, message: LongResult) -> None:
        self.own(self.send_pieces(b"", b"", message), outlives=False)

    def flush(self) -> None:
        self._channel.flush()

    async def send_pieces(self, before: bytes, after: bytes, result: LongResult) -> None:
        # Others that are long wait for the end of this one.
        if self._long is None:
            self._long = asyncio.Lock()
        try:
            async with self._long:
                await self._send_pieces(before, after, result)
        finally:
            try:
                await result.pieces.aclose()
            finally:
                result.close()

    async def _send_pieces(self, before: bytes, after: bytes, result: LongResult) -> None:
        channel = self._channel
        if self._is_over():
            return
        channel.begin()
        try:
            channel.piece(before + result.head, last=False)
            async for data in result.pieces:
                if self._is_over():
                    return  # The answer to a start: its task goes on when the connection is lost.
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
            channel.piece(result.tail + after, last=True)

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
        if self._calls is not None and self._conversation is not None:
            used |= {**self._calls.usage(), **self._conversation.usage()}
        return used

    # The end.

    def _is_over(self) -> bool:
        return self._on_end is None

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
        self._inbox = self._at_end = None
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self._room is not None:
            self._room.cancel()
        if self._calls is not None:
            self._calls.stop()
        if self._conversation is not None:
            self._conversation.ended()
        # Who knows each other in a circle is not freed when it is no longer needed, but when somebody looks.
        self._calls = self._conversation = None
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

    def own(self, coroutine: Coroutine[Any, Any, None], *, outlives: bool) -> asyncio.Task[None] | None:
        if not outlives:
            # Before it is a task: one that is cancelled before its first step runs nothing, and what its
            # request has begun by now would be left.
            try:
                rest = run_ahead(coroutine)
            except Exception:  # noqa: BLE001  (of a handler, behind its answer: as in a task)
                _log.exception("a request's task failed")
                return None
            if type(rest) is not Rest:
                return None
            coroutine = rest
        task = asyncio.get_running_loop().create_task(coroutine)
        if self._tasks is None:
            self._tasks = {}
        self._tasks[task] = outlives
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        assert self._tasks is not None
        del self._tasks[task]
        if not self._tasks:
            self._tasks = None
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a request's task failed", exc_info=error)
