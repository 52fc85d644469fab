"""HTTP requests for programs without an event loop: every call waits for its result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from types import TracebackType

from . import http as asynchronous
from .http import MOST_READ, Headers
from .thread import LoopThread


class HttpClient:
    """Makes HTTP requests from the host.  The synchronous ``holdfast.api.http.HttpClient``."""

    def __init__(self, http: asynchronous.HttpClient, thread: LoopThread) -> None:
        self._http = http
        self._thread = thread

    def get(
        self, url: str, *, headers: Headers = (), timeout: float | None = None, follow: bool = True
    ) -> WebResponse:
        """Make a GET request; see ``request``."""
        return self.request("GET", url, headers=headers, timeout=timeout, follow=follow)

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Headers = (),
        body: bytes = b"",
        timeout: float | None = None,
        follow: bool = True,
    ) -> WebResponse:
        """Make a request, and return the response once its head is here."""
        asking = self._http.request(method, url, headers=headers, body=body, timeout=timeout, follow=follow)
        return WebResponse(self._thread.call(asking), self._thread)


class WebResponse:
    """The response to a request.  The synchronous ``holdfast.api.http.WebResponse``."""

    def __init__(self, response: asynchronous.WebResponse, thread: LoopThread) -> None:
        self._response = response
        self._thread = thread

    def __repr__(self) -> str:
        return repr(self._response)

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        return self._response.headers

    def header(self, name: str) -> str | None:
        """Return the value of the first header with this name; None if there is none."""
        return self._response.header(name)

    def read(self, most: int = MOST_READ) -> bytes:
        """Return the whole body, or what was not read of it."""
        return self._thread.call(self._response.read(most))

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the body as it comes, in pieces of any size."""
        pieces = aiter(self._response)
        while piece := self._thread.call(_next(pieces)):
            yield piece

    def close(self) -> None:
        """Let go of the response, read or not.  May be called twice."""
        self._thread.call(self._response.aclose())

    def __enter__(self) -> WebResponse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _next(pieces: AsyncIterator[bytes]) -> bytes:
    return await anext(pieces, b"")
