"""HTTP requests as programs make them, from the host that their processes run on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.config import MIB, HttpLimits
from holdfast.errors import BadRequest, BadUrl, LimitReached, OutOfTurn
from holdfast.model import HttpHeader, HttpRequest
from holdfast.web import check_header, is_token, parse_url, scheme_of

if TYPE_CHECKING:
    from holdfast.web import Http, HttpResponse

Headers = Mapping[str, str] | Iterable[tuple[str, str] | HttpHeader]
"""Headers by name, or in an order; a ``HttpHeader`` can take its value from a variable of the host."""

MOST_SENT = HttpLimits().buffered_bytes
"""Bytes of the body of a request: encoded it stays below what a server takes as one message."""

MOST_READ = 64 * MIB
"""Bytes that ``WebResponse.read`` collects by default."""


class HttpClient:
    """Makes HTTP requests from the host, with its network, its names and its proxies.

    Nothing is kept between requests: no cookies, no connections.
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    async def get(
        self,
        url: str,
        *,
        headers: Headers = (),
        timeout: float | None = None,  # noqa: ASYNC109  (the host's, not ours)
        follow: bool = True,
    ) -> WebResponse:
        """Make a GET request; see ``request``."""
        return await self.request("GET", url, headers=headers, timeout=timeout, follow=follow)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Headers = (),
        body: bytes = b"",
        timeout: float | None = None,  # noqa: ASYNC109  (the host's, not ours)
        follow: bool = True,
    ) -> WebResponse:
        """Make a request, and return the response once its head is here; any status is a response.

        Read the response, or close it.  Cancelling gives the request up; a server goes on with it until its
        end or its timeout.

        Args:
            method: As it is sent: ``GET``, not ``get``.
            url: ``http:`` or ``https:``, as the host sees it: ``localhost`` is the host.
            headers: Sent in their order, after ``accept`` and ``host`` where those are missing.
            body: At most 47 MiB.
            timeout: Seconds for the whole exchange, the body of the response included.
            follow: Follow up to ten redirects.  Otherwise a redirect is the response.

        Raises:
            BadRequest: The method, the URL or a header cannot be sent.
            HttpFailed: There is no response: no connection, no certificate, no time left.
            OutcomeUnknown: The connection to the server was lost, and the request may have been made.
            LimitReached: The body is too large, or the host makes as many requests as it may.
        """
        if not is_token(method):
            raise BadRequest(f"{method!r} is no HTTP method", field="method")
        if (scheme := scheme_of(url)) not in ("http", "https"):
            raise BadUrl(f"only http and https can be asked for, not {scheme}")
        if len(body) > MOST_SENT:
            raise LimitReached("bytes of the body of an HTTP request", MOST_SENT)
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        made = tuple(each if isinstance(each, HttpHeader) else HttpHeader(*each) for each in pairs)
        for header in made:
            check_header(header)
        asked = HttpRequest(method, parse_url(url), made, body, timeout, follow)
        return WebResponse(await self._http.request(asked))


class WebResponse:
    """The response to a request.  Its body comes as it is read, in ``async for`` or by ``read``.

    From a server, a body that is not read fast enough is given up when 32 MiB of it wait to be read.
    """

    def __init__(self, response: HttpResponse) -> None:
        self._response = response
        self.status = response.status
        """Of the last response, if redirects were followed."""
        self.headers = list(response.headers)
        """In their order, repeats included; names in lower case."""
        self._is_whole = self._is_closed = False

    def __repr__(self) -> str:
        return f"<WebResponse {self.status}>"

    def header(self, name: str) -> str | None:
        """Return the value of the first header with this name, in whatever case; None if there is none."""
        return next((value for key, value in self.headers if key == name.lower()), None)

    async def read(self, most: int = MOST_READ) -> bytes:
        """Return the whole body, or what was not read of it, as it came: nothing is decoded.

        Raises:
            LimitReached: It has more than ``most`` bytes.
            HttpFailed: It broke off, or took longer than the timeout.
        """
        body = bytearray()
        async with self:
            async for piece in self:
                body += piece
                if len(body) > most:
                    raise LimitReached("bytes of the body of an HTTP response", most)
        return bytes(body)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the body as it comes, in pieces of any size.  Another iteration continues it.

        Raises, when it is read:
            HttpFailed: It broke off, or took longer than the timeout.
            OutOfTurn: The response was closed before.
        """
        while not self._is_whole:
            if self._is_closed:
                raise OutOfTurn("the response was closed before its end")
            try:
                piece = await self._response.read()
            except BaseException:
                await self.aclose()
                raise
            if piece:
                yield piece
            else:
                self._is_whole = True
                await self.aclose()

    async def aclose(self) -> None:
        """Let go of the response, read or not.  May be called twice."""
        self._is_closed = True
        await self._response.aclose()

    async def __aenter__(self) -> WebResponse:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the response, read or not."""
        await self.aclose()
