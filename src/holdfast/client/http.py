"""HTTP requests from a server's host.

What must hold:

1. The pieces of a body are given in the order of their numbers.  A body with a piece missing,
   or cut by a lost connection, ends with an error, never as if it were whole.
2. What has come and was not read is bounded, over all responses of this client.  The protocol
   has no word to slow one body down, and everything else comes the same way; so a body that is
   not read fast enough is given up.
3. The protocol has no word to end a response, either.  What comes of one that was closed is
   passed over; the server counts it until its end, or until the request's timeout.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import re
from collections import deque
from collections.abc import Sequence

import msgspec

from holdfast.config import MIB
from holdfast.errors import BadRequest, HoldfastError, HttpFailed, HttpFault, LinkLost
from holdfast.model import HttpRequest
from holdfast.protocol import base64
from holdfast.protocol.http import (
    HTTP_REQUEST,
    HttpBodyDelta,
    HttpRequestParams,
    RedirectPolicy,
    RequestHeader,
)
from holdfast.protocol.shapes import reader

from .calls import Answer
from .link import Link

_MOST_UNREAD = 32 * MIB
"""Bytes of all bodies that wait to be read: some seconds of a fast line, and no trouble for a program."""

_LONGEST_MS = 2**62
"""The protocol counts with 64 bits; this is for ever."""

_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
"""Methods that change nothing, by the rules of HTTP: such a request may be made again."""

_DECODING = "error decoding response body: "


_body_delta = reader(HttpBodyDelta)


class RemoteHttp:
    """Implements ``backend.Http``."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._nonce = os.urandom(4).hex()
        self._names = itertools.count(1)
        self._responses: dict[str, RemoteResponse] = {}
        self.unread_bytes = 0
        """Bytes of all responses that wait to be read."""

    async def request(self, request: HttpRequest) -> RemoteResponse:
        """See ``backend.Http``.

        Raises:
            OutcomeUnknown: The connection broke before there was a response, and the request may
                have changed something; others are made again.
        """
        name = f"{self._nonce}.{next(self._names)}"
        params = _params(request, name)
        await self._link.room()
        response = self._responses[name] = RemoteResponse(self, name, _shown(request.url))
        number = self._link.ask(HTTP_REQUEST, params, response.answered, repeat=request.method in _SAFE)
        try:
            await response.head
        except BaseException:
            self.drop(response)
            self._link.forget(number)
            raise
        return response

    def drop(self, response: RemoteResponse) -> None:
        """Pass over what comes of it from now on.  May be called twice."""
        self._responses.pop(response.name, None)

    # What the link tells, by way of the backend.

    def notified(self, params: msgspec.Raw) -> None:
        """Take ``http/request/bodyDelta``."""
        delta = _body_delta(params)
        response = self._responses.get(delta.request_id)
        if response is None:
            return
        try:
            data = base64.decode(delta.delta_base64)
        except BadRequest as error:
            raise msgspec.DecodeError(str(error)) from None
        if delta.seq != response.last + 1:
            response.fail("a piece of it is missing")
        elif self.unread_bytes + len(data) > _MOST_UNREAD:
            response.fail(f"it was not read, and no more than {_MOST_UNREAD} bytes are kept")
        else:
            response.take(delta.seq, data)
            if delta.done:
                response.end(delta.error)

    def broke(self, reason: str) -> None:
        """The connection is gone, and with it the rest of all bodies."""
        for response in list(self._responses.values()):
            if response.has_head:
                response.fail(f"the connection to the server is lost: {reason}")


class RemoteResponse:
    """Implements ``backend.HttpResponse``."""

    def __init__(self, http: RemoteHttp, name: str, url: str) -> None:
        self.name = name
        self.status = 0
        self.headers: Sequence[tuple[str, str]] = ()
        self.head: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when status and headers are there, or why there are none."""
        self.last = 0
        """The number of the last piece."""
        self._http = http
        self._url = url
        self._pieces: deque[bytes] = deque()
        self._whole = False
        self._failure: tuple[HttpFault, str] | None = None
        self._news: asyncio.Future[None] | None = None

    # What comes in.

    @property
    def has_head(self) -> bool:
        return bool(self.status)

    def answered(self, answer: Answer) -> None:
        """Take the head.  At once, before anything of the body comes or the connection breaks."""
        if self.head.done():
            return
        try:
            if isinstance(answer, HoldfastError):
                raise self._about(answer)
            found = HTTP_REQUEST.read(answer)
        except HoldfastError as error:
            self.head.set_exception(error)
        except msgspec.DecodeError as error:
            self.head.set_exception(LinkLost(f"the server's answer makes no sense: {error}"))
        else:
            self.status = found.status
            self.headers = [(each.name, each.value) for each in found.headers]
            self.head.set_result(None)

    def _about(self, error: HoldfastError) -> HoldfastError:
        """Add the URL to an error, if the server's words do not have it."""
        if isinstance(error, HttpFailed) and not error.subject:
            return HttpFailed(error.fault, self._url, error.reason)
        return error

    def take(self, seq: int, data: bytes) -> None:
        self.last = seq
        if data:
            self._pieces.append(data)
            self._http.unread_bytes += len(data)
            self._wake()

    def end(self, error: str | None) -> None:
        """There is no more; ``error`` says why it is not all there should be."""
        if error is None:
            self._whole = True
            self._finish()
        else:
            self.fail(error.removeprefix(_DECODING))

    def fail(self, reason: str) -> None:
        fault = HttpFault.BODY_TIMEOUT if reason == "timed out" else HttpFault.BODY
        self._failure = (fault, reason)
        self._finish()

    def _finish(self) -> None:
        self._http.drop(self)
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # Implements ``backend.HttpResponse``.

    async def read(self) -> bytes:
        while not self._pieces:
            if self._failure is not None:
                fault, reason = self._failure
                raise HttpFailed(fault, self._url, reason)
            if self._whole:
                return b""
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        data = self._pieces.popleft()
        self._http.unread_bytes -= len(data)
        return data

    async def aclose(self) -> None:
        self._http.unread_bytes -= sum(map(len, self._pieces))
        self._pieces.clear()
        if not self._whole and self._failure is None:
            self.fail("the response was closed")


def _params(request: HttpRequest, name: str) -> HttpRequestParams:
    timeout = request.timeout
    return HttpRequestParams(
        method=request.method,
        url=request.url,
        request_id=name,
        headers=[RequestHeader(each.name, each.value, each.variable) for each in request.headers],
        body_base64=base64.encode(request.body).decode() if request.body else None,
        timeout_ms=None if timeout is None else min(math.ceil(max(0.0, timeout) * 1000), _LONGEST_MS),
        redirect_policy=RedirectPolicy.FOLLOW if request.follow else RedirectPolicy.STOP,
        stream_response=True,
    )


def _shown(url: str) -> str:
    """The URL without the user's name and password."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url, count=1)
