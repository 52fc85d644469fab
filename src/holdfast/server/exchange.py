"""One request to a route and its answer, where either takes time: bodies in, streams out.

HTTP/1.1 itself is done by h11.  It is imported when the first such request arrives.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus

import h11

from holdfast.config import ConnectionLimits
from holdfast.errors import BadRequest, Forbidden, HoldfastError, LimitReached, Refused
from holdfast.wire.http import HEAD_LIMIT
from holdfast.wording import counted

from .routes import HttpAnswer, HttpRefused, HttpSocket, RouteCall, date

_log = logging.getLogger(__name__)

_UNREAD_MOST = 256 * 1024
"""Bytes of a body that may wait for their reader; above that the socket is not read."""


_ANSWERED = (h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)
"""States in which nothing more is wanted of the peer."""


class HttpExchange:
    """From the head of a request to the last byte of its answer."""

    __slots__ = (
        "_body",
        "_call",
        "_http",
        "_is_held",
        "_limits",
        "_loop",
        "_received",
        "_room",
        "_seen",
        "_socket",
        "_timer",
        "_transport",
    )

    def __init__(
        self,
        call: RouteCall,
        transport: asyncio.Transport,
        socket: HttpSocket,
        *,
        loop: asyncio.AbstractEventLoop,
        limits: ConnectionLimits,
    ) -> None:
        self._call = call
        self._transport = transport
        self._socket = socket
        self._loop = loop
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        self._received = 0
        self._body = 0
        self._is_held = False
        self._room: asyncio.Future[None] | None = None
        self._seen = (0, 0)
        self._timer = loop.call_later(limits.handshake_seconds, self._on_check_due)
        call.body.on_room(self._on_read)

    # In.

    def receive(self, data: bytes) -> None:
        """Take bytes: first the request's head, then its body, then what is behind it."""
        self._received += len(data)
        if self._http.our_state in _ANSWERED:
            return
        body = self._call.body
        try:
            self._http.receive_data(data)
            event = self._http.next_event()
            while event is not h11.NEED_DATA and event is not h11.PAUSED:
                if isinstance(event, h11.Data):
                    self._take_piece(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    body.end()
                elif self._http.they_are_waiting_for_100_continue and self._call.route.body_bytes:
                    self._send(h11.InformationalResponse(status_code=100, headers=[]))
                event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            body.end(HttpRefused(HTTPStatus(error.error_status_hint), str(error)))
        self._hold(body.size > _UNREAD_MOST)

    def _take_piece(self, piece: bytes) -> None:
        most = self._call.route.body_bytes
        self._body += len(piece)
        if self._body > most:
            words = f"the body is longer than {counted(most, 'byte')}"
            self._call.body.end(HttpRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, words))
        else:
            self._call.body.feed(piece)

    def _on_read(self) -> None:
        self._hold(self._call.body.size > _UNREAD_MOST)

    def _hold(self, hold: bool) -> None:  # noqa: FBT001
        if hold != self._is_held:
            self._is_held = hold
            (self._transport.pause_reading if hold else self._transport.resume_reading)()

    # Out.

    async def run(self) -> bytes | None:
        """Answer.  Return what came behind the request; None if the connection cannot be used again."""
        try:
            await self._send_answer(await self._answer())
        finally:
            self.drop()
            self._hold(False)
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            return bytes(self._http.trailing_data[0])
        return None

    async def _answer(self) -> HttpAnswer:
        given = self._call.answer
        if isinstance(given, HttpAnswer):
            return given
        try:
            return await given
        except HttpRefused as refused:
            return HttpAnswer(refused.words.encode(), refused.status)
        except HoldfastError as error:
            return HttpAnswer(str(error).encode(), _status_of(error))
        except Exception:  # noqa: BLE001  (the one place where a route's failure ends)
            _log.exception("%s %s failed", self._call.head.method, self._call.route.path)
            return HttpAnswer(b"internal error", HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _send_answer(self, answer: HttpAnswer) -> None:
        fields = {"date": date(), **answer.fields}
        body = answer.body
        if isinstance(body, bytes):
            if body:
                fields.setdefault("content-type", "text/plain; charset=utf-8")
            fields["content-length"] = str(len(body))
        if self._http.their_state is not h11.DONE:
            # Nobody will read the rest of the request, so no other one can follow it.
            fields["connection"] = "close"
        self._send(h11.Response(status_code=answer.status, headers=list(fields.items())))
        if isinstance(body, bytes):
            if body and self._call.head.method != "HEAD":
                self._send(h11.Data(data=body))
        else:
            try:
                async for piece in body:
                    self._send(h11.Data(data=piece))
                    await self._has_room()
            finally:
                await body.aclose()
        self._send(h11.EndOfMessage())
        await self._has_room()

    def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._transport.write(data)

    async def _has_room(self) -> None:
        while self._socket.full:
            self._room = self._loop.create_future()
            await self._room

    def on_room(self) -> None:
        """The peer has taken what it was sent."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def drop(self) -> None:
        """End an exchange that nobody will run."""
        self._timer.cancel()
        if not isinstance(self._call.answer, HttpAnswer):
            self._call.answer.close()

    # A peer that neither sends what it has announced nor takes what it has asked for.

    def _on_check_due(self) -> None:
        """Give up on a peer for which the exchange waits, and which has done nothing since the last look."""
        seen = (self._received, self._transport.get_write_buffer_size())
        is_idle, self._seen = seen == self._seen, seen
        if is_idle and self._call.body.is_awaited:
            self._call.body.end(HttpRefused(HTTPStatus.REQUEST_TIMEOUT, "the body takes too long"))
        elif is_idle and self._socket.full:
            self._socket.abort("connection.handshake_seconds")
            return
        self._timer = self._loop.call_later(self._limits.handshake_seconds, self._on_check_due)


def _status_of(error: HoldfastError) -> HTTPStatus:
    match error:
        case BadRequest():
            return HTTPStatus.BAD_REQUEST
        case Forbidden():
            return HTTPStatus.FORBIDDEN
        case LimitReached():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case Refused():
            return HTTPStatus.CONFLICT
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR
