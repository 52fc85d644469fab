"""Requests that wait for their answers, by number (pure).

What must hold:

1. A call is answered once.
2. Calls go out in the order in which they were made.
3. What was sent on a connection that broke goes out again if it may be repeated.
4. What is about a session is never asked in another one, where the same name may mean another's process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import BadRequest, HoldfastError, LinkLost, OutcomeUnknown, SessionUnknown
from holdfast.wire.jsonrpc import Incoming

from .foreign import error_of

if TYPE_CHECKING:
    from asyncio import Future

_encode = msgspec.json.Encoder().encode

Answer = msgspec.Raw | HoldfastError
Answered = Callable[[Answer], object]
"""Told the answer to a call, or why there is none: at once, before the next message is looked at."""


def put_into(future: Future[msgspec.Raw]) -> Answered:
    """Return a function that puts an answer into a future, unless the future is done already."""

    def answered(answer: Answer) -> None:
        if future.done():
            return
        if isinstance(answer, HoldfastError):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    return answered


class Within(Enum):
    """Where a call makes sense."""

    ANY = "any session"
    ONE = "the session in which it was sent"
    """What was sent may have been done there; in another session it would be done a second time."""
    OWN = "the session in which it was made"
    """The call is about something that only this session has, such as a process."""


class _PendingCall:
    __slots__ = ("answered", "method", "repeat", "sent", "text", "tried", "within")

    def __init__(self, method: str, text: bytes, answered: Answered, *, repeat: bool, within: Within) -> None:
        self.method = method
        self.text = text
        self.answered = answered
        self.repeat = repeat
        self.within = within
        self.sent = False
        """Whether it was sent on the connection of the moment."""
        self.tried = 0
        """How often it was sent."""

    def send(self) -> bytes:
        self.sent = True
        self.tried += 1
        return self.text


class PendingCalls:
    """The requests of one client that wait for their answers."""

    def __init__(self) -> None:
        self._calls: dict[int, _PendingCall] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._calls)

    def enter(
        self,
        method: str,
        params: object,
        answered: Answered,
        *,
        repeat: bool,
        within: Within = Within.ANY,
    ) -> int:
        """Add a call; return its number.

        Raises:
            BadRequest: It has texts that are none, and cannot be told in JSON.
        """
        self._last = number = self._last + 1
        try:
            encoded = _encode(params)
        except UnicodeEncodeError:
            raise BadRequest("bytes that are not UTF-8 cannot be told to a server") from None
        # The number comes last: then no byte that is lost or doubled on the way makes another request of it.
        text = b'{"method":"%b","params":%b,"id":%d}' % (method.encode(), encoded, number)
        self._calls[number] = _PendingCall(method, text, answered, repeat=repeat, within=within)
        return number

    def forget(self, number: int) -> None:
        """The answer is no longer wanted."""
        self._calls.pop(number, None)

    def stop_repeating(self, number: int) -> bool:
        """Do not send a call again; return whether its answer may still come, or has come.

        One that was never sent has no answer.  One whose connection breaks, or broke, is told
        ``OutcomeUnknown``.
        """
        call = self._calls.get(number)
        if call is None:
            return True
        call.repeat = False
        if not call.sent:
            del self._calls[number]
            if call.tried:
                call.answered(OutcomeUnknown(call.method))
        return call.tried > 0

    def send(self, number: int) -> bytes:
        """The text of a call, which is sent now."""
        return self._calls[number].send()

    def unsent(self) -> Iterator[bytes]:
        """The texts of all that wait to be sent, and are now."""
        for call in self._calls.values():
            if not call.sent:
                yield call.send()

    def answer(self, message: Incoming) -> None:
        """Pass an answer on to the caller that waits for it, if there is one."""
        call = self._calls.pop(message.id, None) if isinstance(message.id, int) else None
        if call is None:
            return
        if message.error is not None:
            call.answered(error_of(message.error, call.method))
        else:
            call.answered(message.result)

    def broke(self) -> None:
        """The connection is gone: say so of what must not be repeated; the rest waits to be sent again."""
        for number, call in list(self._calls.items()):
            if call.sent and call.repeat:
                call.sent = False
            elif call.sent:
                del self._calls[number]
                call.answered(OutcomeUnknown(call.method))

    def forgotten(self, session: str) -> None:
        """The server no longer knows the session; there is another one."""
        for number, call in list(self._calls.items()):
            if call.within is Within.OWN or (call.within is Within.ONE and call.tried):
                self._calls.pop(number, None)
                own = call.within is Within.OWN
                call.answered(SessionUnknown(session) if own else OutcomeUnknown(call.method))

    def end(self, error: Callable[[], LinkLost]) -> None:
        """There will be no more answers."""
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.answered(error())
