"""One message per line: cuts a stream of bytes into lines (pure)."""

from __future__ import annotations

from collections.abc import Iterator


class LineTooLong(Exception):
    """A line goes over the limit; the stream cannot be read any further."""


class Lines:
    """Collects bytes, gives whole lines without their ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._partial = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that ``data`` completes.

        Raises:
            LineTooLong: A line is longer than the limit, complete or not.
        """
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            yield self._line(data[start:end])
            start = end + 1
        self._partial += data[start:]
        if len(self._partial) > self._limit:
            self._partial.clear()
            raise LineTooLong

    def rest(self) -> bytes:
        """What came after the last line end, when the stream is at its end."""
        return self._line(b"")

    def _line(self, tail: bytes) -> bytes:
        line = bytes(self._partial) + tail if self._partial else tail
        self._partial.clear()
        if len(line) > self._limit:
            raise LineTooLong
        return line.removesuffix(b"\r")
