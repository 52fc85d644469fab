"""Requests that wait for their answers, by number (pure).

What must hold: a call is answered once; calls go out in the order in which they were
made; what was sent on a connection that broke goes out again if it may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from holdfast.errors import BadRequest, HoldfastError, LinkLost, OutcomeUnknown

from . import answers as a
from .failures import error_of

_encode = msgspec.json.Encoder().encode

Answer = msgspec.Raw | HoldfastError
Answered = Callable[[Answer], object]
"""Told the answer to a call, or why there is none: at once, before the next message is looked at."""


class _Call:
    __slots__ = ("answered", "method", "repeat", "sent", "text")

    def __init__(self, method: str, text: bytes, answered: Answered, *, repeat: bool) -> None:
        self.method = method
        self.text = text
        self.answered = answered
        self.repeat = repeat
        self.sent = False


class Calls:
    """Those of one client."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._calls)

    def enter(self, method: str, params: object, answered: Answered, *, repeat: bool) -> int:
        """Add a call; return its number.

        Raises:
            BadRequest: It has texts that are none, and cannot be told in JSON.
        """
        self._last = number = self._last + 1
        try:
            told = _encode(params)
        except UnicodeEncodeError:
            raise BadRequest("bytes that are not UTF-8 cannot be told to a server") from None
        # The number comes last: then no byte that is lost or doubled on the way makes another request of it.
        text = b'{"method":"%b","params":%b,"id":%d}' % (method.encode(), told, number)
        self._calls[number] = _Call(method, text, answered, repeat=repeat)
        return number

    def forget(self, number: int) -> None:
        """The answer is no longer wanted."""
        self._calls.pop(number, None)

    def send(self, number: int) -> bytes:
        """The text of a call, which is sent now."""
        call = self._calls[number]
        call.sent = True
        return call.text

    def unsent(self) -> Iterator[bytes]:
        """The texts of all that wait to be sent, and are now."""
        for call in self._calls.values():
            if not call.sent:
                call.sent = True
                yield call.text

    def answer(self, message: a.Envelope) -> None:
        """Pass an answer on to whoever waits for it, if anybody does."""
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

    def end(self, error: Callable[[], LinkLost]) -> None:
        """There will be no more answers."""
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.answered(error())
