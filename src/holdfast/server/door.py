"""HTTP before the upgrade: requests in, answers out, until somebody is let through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus

from holdfast.errors import LimitReached
from holdfast.wire.http import HEAD_LIMIT, MOST_FIELDS, BadHead, read_head

from .http import Reply, Routes, answer, reply


class Door:
    """What one socket says before it is a WebSocket."""

    __slots__ = ("_head", "_lines", "_refused", "_routes")

    def __init__(self, routes: Routes, refused: Callable[[str], None]) -> None:
        """``refused`` is told why somebody was not let in, in a word."""
        self._routes = routes
        self._refused = refused
        self._head = bytearray()
        self._lines = 0

    def receive(self, data: memoryview) -> Iterator[Reply]:
        """Answer what has come; behind an answer that closes, or lets through, there is no other."""
        first = not self._head
        self._head += data
        lines = data.tobytes().count(b"\n")
        self._lines += lines
        # A head that comes byte by byte is looked at when there is a line more, not with every byte.
        if not (first or lines or len(self._head) > HEAD_LIMIT):
            return
        try:
            while (found := read_head(self._head)) is not None:
                head, end = found
                answered = reply(head, self._routes)
                # Those of this head, not of all behind it: there may be thousands.
                self._lines -= self._head.count(b"\n", 0, end)
                del self._head[:end]
                if answered.refusal:
                    self._refused(answered.refusal)
                yield answered
                if answered.upgrade is not None or answered.close:
                    return
            if self._lines > MOST_FIELDS + 1:
                raise BadHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        except BadHead as bad:
            yield _turned_away(bad.status)

    def rest(self) -> bytes:
        """What came right behind the request that was let through."""
        return bytes(self._head)


def full(limit: LimitReached) -> bytes:
    """The answer to somebody for whom there is no room."""
    return _turned_away(HTTPStatus.SERVICE_UNAVAILABLE, str(limit).encode()).data


def _turned_away(status: HTTPStatus, words: bytes = b"") -> Reply:
    return Reply(answer(status, words, connection="close"), close=True)
