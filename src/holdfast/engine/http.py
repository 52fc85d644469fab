"""HTTP requests from this host, through httpx.

What must hold:

1. A header whose value comes from a variable, or that names a user, goes to the origin of the request's URL
   and to no other, wherever redirects lead.
2. Nothing is kept or changed that nobody asked for: no cookies, no decoding of content.
3. A response counts as a request, and holds its socket, until it is closed.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.config import HttpLimits
from holdfast.errors import BadHeader, BadUrl, HeaderFault, HttpFailed, HttpFault, LimitReached
from holdfast.model import HttpHeader, HttpRequest, is_unicode
from holdfast.value import replace
from holdfast.web import check_value, parse_url, scheme_of

if TYPE_CHECKING:
    import httpx

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_OF_THE_BODY = frozenset(("content-encoding", "content-length", "content-type", "transfer-encoding"))
_OF_THE_ORIGIN = frozenset(
    ("authorization", "cookie", "cookie2", "host", "proxy-authorization", "www-authenticate")
)
"""What another origin is not told: who asks, and a name that would be wrong there."""

_TEXT = re.compile(rb"[\t -~]*")

Headers = tuple[tuple[str, bytes], ...]


class HostHttp:
    """Makes HTTP requests.  Implements ``backend.Http``."""

    def __init__(
        self, environment: Mapping[str, str], loop: asyncio.AbstractEventLoop, limits: HttpLimits
    ) -> None:
        """``environment`` is the server's: headers may be made from it."""
        self._environment = environment
        self._loop = loop
        self._limits = limits
        self._network: asyncio.Future[Network] | None = None
        self.requests = 0
        """Under way, with those whose body is still being read."""

    async def request(self, request: HttpRequest) -> HostResponse:
        headers = self._headers(request.headers)
        if request.timeout == 0:
            raise HttpFailed(HttpFault.NO_TIME, request.url, "the timeout is 0")
        if self.requests >= self._limits.requests:
            raise LimitReached("HTTP requests", self._limits.requests, name="http.requests")
        self.requests += 1
        try:
            network = await self._ready(request)
            # From here: it is not the client's fault that we were not ready.
            deadline = None if request.timeout is None else self._loop.time() + request.timeout
            return await self._respond(network, request, headers, deadline)
        except BaseException:
            self.requests -= 1
            raise

    def _headers(self, asked: tuple[HttpHeader, ...]) -> Headers:
        if len(asked) > self._limits.headers:
            raise LimitReached("HTTP headers", self._limits.headers, name="http.headers")
        headers = tuple((header.name.lower(), self._value(header)) for header in asked)
        if sum(len(name) + len(value) for name, value in headers) > self._limits.header_bytes:
            raise LimitReached("bytes of HTTP headers", self._limits.header_bytes, name="http.header_bytes")
        return headers

    def _value(self, header: HttpHeader) -> bytes:
        value = header.value
        if header.variable is not None:
            secret = self._environment.get(header.variable)
            if secret is None or not is_unicode(secret):
                raise BadHeader(header.name, HeaderFault.MISSING, header.variable)
            if not secret:
                raise BadHeader(header.name, HeaderFault.EMPTY, header.variable)
            value += secret
            check_value(header.name, value)
        # Blanks around a value are no part of it, and the library takes none.
        return value.strip(" \t").encode()

    async def _respond(
        self, network: Network, asked: HttpRequest, headers: Headers, deadline: float | None
    ) -> HostResponse:
        import httpx  # It is there by now.

        url = _url(asked.url)
        shown = str(_without_user(url))
        if any(name == "content-length" and value != b"%d" % len(asked.body) for name, value in headers):
            # The library would notice when half of it is sent.
            raise HttpFailed(HttpFault.SENDING, shown, "the content-length is not that of the body")
        message = Message(asked.method, url, headers, asked.body)
        private = _OF_THE_ORIGIN | {each.name.lower() for each in asked.headers if each.variable is not None}
        try:
            async with asyncio.timeout_at(deadline):
                if asked.follow:
                    response = await self._follow(network, message, private)
                else:
                    response = await network.send(message)
        except TimeoutError:
            raise HttpFailed(HttpFault.TIMEOUT, shown, "timed out") from None
        except (httpx.HTTPError, OSError, UnicodeError) as error:
            # Names that are too long for any resolver are an error of their encoding.
            raise HttpFailed(HttpFault.SENDING, shown, _root(error)) from error
        kept = [(name.lower(), value) for name, value in response.head.headers.raw]
        if sum(len(name) + len(value) for name, value in kept) > self._limits.header_bytes:
            await response.aclose()
            raise LimitReached("bytes of HTTP headers", self._limits.header_bytes, name="http.header_bytes")
        return HostResponse(response, kept, shown, deadline, self._on_closed)

    async def _ready(self, request: HttpRequest) -> Network:
        """What sends; made by the first request, in a thread, because it takes a quarter of a second."""
        making = self._network
        try:
            if making is None:
                self._network = making = self._loop.run_in_executor(None, Network, self._limits)
            # Whoever is cancelled leaves it to the others.
            return await asyncio.shield(making)
        except (OSError, ImportError, RuntimeError) as error:
            # Too many open files, say, or too many threads: the next request may have more luck.
            if self._network is making:
                self._network = None
            parts = urlsplit(request.url)
            shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            reason = getattr(error, "strerror", None) or str(error)
            raise HttpFailed(HttpFault.SENDING, shown, reason) from error

    async def _follow(self, network: Network, message: Message, private: frozenset[str]) -> Received:
        for _ in range(self._limits.redirects + 1):
            response = await network.send(message)
            try:
                target = _target(message.url, response.head)
            except HttpFailed:
                await response.aclose()
                raise
            if target is None:
                return response
            await response.aclose()
            message = message.redirected(response.head.status_code, target, private)
        raise HttpFailed(HttpFault.REDIRECTS, str(_without_user(message.url)), "too many redirects")

    def _on_closed(self) -> None:
        self.requests -= 1

    async def aclose(self) -> None:
        """Close what is open.  Responses are closed before, by those who have them."""
        if self._network is not None:
            await self._network
            self._network = None


class HostResponse:
    """The response to a request.  Implements ``backend.HttpResponse``."""

    def __init__(
        self,
        response: Received,
        headers: list[tuple[bytes, bytes]],
        url: str,
        deadline: float | None,
        on_closed: Callable[[], None],
    ) -> None:
        self.status = response.head.status_code
        self.headers = [
            (name.decode("ascii"), value.decode("ascii")) for name, value in headers if _TEXT.fullmatch(value)
        ]
        self._response = response
        self._pieces: AsyncIterator[bytes] = response.head.aiter_raw()
        self._url = url
        self._deadline = deadline
        self._on_closed: Callable[[], None] | None = on_closed

    async def read(self) -> bytes:
        import httpx  # It is there by now.

        try:
            async with asyncio.timeout_at(self._deadline):
                return await anext(self._pieces, b"")
        except TimeoutError:
            raise HttpFailed(HttpFault.BODY_TIMEOUT, self._url, "timed out") from None
        except (httpx.HTTPError, OSError) as error:
            raise HttpFailed(HttpFault.BODY, self._url, _root(error)) from error

    async def aclose(self) -> None:
        on_closed, self._on_closed = self._on_closed, None
        if on_closed is not None:
            try:
                await self._response.aclose()
            finally:
                on_closed()


@dataclass(frozen=True, slots=True)
class Message:
    """One request of an exchange: redirects make another of it."""

    method: str
    url: httpx.URL
    headers: Headers
    body: bytes

    def redirected(self, status: int, target: httpx.URL, private: frozenset[str]) -> Message:
        """What to ask of ``target``.  Only its own origin is told what is ``private``."""
        method, body, dropped = self.method, self.body, {"referer"}
        if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
            method, body = "GET", b""
            dropped |= _OF_THE_BODY
        stays = _origin(self.url) == _origin(target)
        if not stays:
            dropped |= private
        headers = tuple(header for header in self.headers if header[0] not in dropped)
        if self.url.scheme == target.scheme or target.scheme == "https":
            shown = _without_user(self.url).copy_with(fragment=None)
            referer = str(shown) if stays else f"{shown.scheme}://{shown.netloc.decode('ascii')}/"
            headers = (*headers, ("referer", referer.encode("ascii")))
        return replace(self, method=method, url=target, headers=headers, body=body)

    def as_request(self) -> httpx.Request:
        """With the headers that nobody has to ask for."""
        import httpx

        names = {name for name, _ in self.headers}
        headers = [(name.encode("ascii"), value) for name, value in self.headers]
        if "accept" not in names:
            headers.append((b"accept", b"*/*"))
        if "host" not in names:
            headers.append((b"host", self.url.netloc))
        if self.body and not names & {"content-length", "transfer-encoding"}:
            headers.append((b"content-length", b"%d" % len(self.body)))
        if self.url.userinfo and "authorization" not in names:
            user = httpx.BasicAuth(self.url.username, self.url.password)
            signed = next(user.auth_flow(httpx.Request("GET", self.url)))
            headers.append((b"authorization", signed.headers["authorization"].encode("ascii")))
        # Given a stream, it adds no header of its own.
        request = httpx.Request(self.method, self.url, headers=headers, stream=httpx.ByteStream(self.body))
        request.method = self.method  # It makes capitals of it.
        if self.method == "CONNECT":
            request.extensions["target"] = b"%b:%d" % (self.url.raw_host, _port(self.url))
        return request


@dataclass(frozen=True, slots=True)
class Received:
    """A response, and the connection that it comes from."""

    head: httpx.Response
    transport: httpx.AsyncHTTPTransport

    async def aclose(self) -> None:
        try:
            await self.head.aclose()
        finally:
            # A cancellation that meets the library while it closes a response leaves the socket open, and
            # it takes the response for closed.  This does not wait before the socket is closed.
            await self.transport.aclose()


class Network:
    """The way to HTTP servers, or to the proxies that the server's variables name."""

    def __init__(self, limits: HttpLimits) -> None:
        """Takes long and does not need the loop."""
        import ssl
        from urllib.request import getproxies, proxy_bypass

        import certifi
        import httpx

        # What it says for debugging has the values of headers in it.
        logging.getLogger("httpcore").setLevel(logging.INFO)
        self._tls = ssl.create_default_context()
        paths = ssl.get_default_verify_paths()
        if not paths.cafile and not paths.capath:  # A Python that knows no store of this host.
            self._tls.load_verify_locations(certifi.where())
        # No connection is used twice: a server that sends more than it announced would answer the next
        # request with it, and one that has just closed would have it fail, done or not.
        self._limits = httpx.Limits(max_connections=limits.requests, max_keepalive_connections=0)
        self._proxies = getproxies()
        self._bypass = proxy_bypass

    async def send(self, message: Message) -> Received:
        """The head of the response.

        Raises:
            HttpFailed: The proxy is of a kind that cannot be used.
            httpx.HTTPError: There is no response.
        """
        transport = self._transport(message.url)
        try:
            return Received(await transport.handle_async_request(message.as_request()), transport)
        except BaseException:
            await transport.aclose()
            raise

    def _transport(self, url: httpx.URL) -> httpx.AsyncHTTPTransport:
        import httpx

        proxy = self._proxy(url)
        try:
            return httpx.AsyncHTTPTransport(
                verify=self._tls,
                limits=self._limits,
                proxy=None if proxy is None else httpx.Proxy(proxy),
                trust_env=False,
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            shown = str(_without_user(url))
            reason = f"the proxy that the server is to use cannot be used: {error}"
            raise HttpFailed(HttpFault.SENDING, shown, reason) from error

    def _proxy(self, url: httpx.URL) -> str | None:
        proxy = self._proxies.get(url.scheme) or self._proxies.get("all")
        if not proxy or self._bypass(f"{url.host}:{_port(url)}", self._proxies):
            return None
        return proxy if "://" in proxy else f"http://{proxy}"


def _url(text: str) -> httpx.URL:
    import httpx

    try:
        return httpx.URL(text)
    except httpx.InvalidURL as error:
        idna = "IDNA" in str(error)
        raise BadUrl("invalid international domain name" if idna else str(error)) from error


def _target(url: httpx.URL, response: httpx.Response) -> httpx.URL | None:
    """Where a response sends us; None if it does not, or nobody could tell where to."""
    location = response.headers.get("location")
    if response.status_code not in _REDIRECTS or location is None:
        return None
    import httpx

    try:
        try:
            scheme = scheme_of(location)
        except BadUrl:
            scheme, location = url.scheme, str(url.join(location))
        if scheme not in ("http", "https"):
            raise HttpFailed(HttpFault.SCHEME, scheme, "a redirect to something that is not HTTP")
        return _url(parse_url(location))
    except (BadUrl, httpx.InvalidURL):
        return None


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, _port(url)


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _without_user(url: httpx.URL) -> httpx.URL:
    return url.copy_with(userinfo=b"")


def _root(error: BaseException) -> str:
    """What is behind an error: the libraries wrap the system's words in their own."""
    if type(error).__name__ == "LocalProtocolError" and "header" in str(error):
        return "the headers cannot be sent"  # The library's words have the value in them, a secret perhaps.
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error) or type(error).__name__
