"""A stand-in for what makes HTTP requests."""

from __future__ import annotations

from holdfast.model import HttpRequest


class FakeResponse:
    """Implements ``backend.HttpResponse``."""

    status = 200
    headers = (("x-a", "1"),)

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self.closed = False

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    async def aclose(self) -> None:
        self.closed = True


class FakeHttp:
    """Implements ``backend.Http``: answers everything with the same pieces."""

    pieces: tuple[bytes, ...] = (b"hi",)

    async def request(self, request: HttpRequest) -> FakeResponse:
        return FakeResponse(*self.pieces)
