"""What a result keeps of an output: all of it, or its beginning and its end (pure)."""

from __future__ import annotations

import codecs

from holdfast.value import value

_SLACK = 65_536
"""Bytes that the end may be longer than it has to be, so that it is not cut for every read."""

_LONGEST = 4
"""Bytes of a character in UTF-8."""


@value
class HeadTail:
    """Keep the beginning and the end of each output, and count what is left out between them.

    For output that somebody or something has to read whole, such as a model.  However much a command says, no
    more than this is held.
    """

    head: int
    """Bytes to keep from the beginning."""
    tail: int
    """Bytes to keep from the end."""
    marker: str = "\n[... {omitted} bytes omitted ...]\n"
    """What stands between them if there is something left out; empty for nothing."""


class Coding:
    """Whether input and output are text, and in which encoding."""

    def __init__(
        self, *, text: bool | None = None, encoding: str | None = None, errors: str | None = None
    ) -> None:
        self.is_text = bool(text or encoding or errors)
        self._encoding = encoding or "utf-8"
        self._errors = errors or "strict"

    def encode(self, given: bytes | str) -> bytes:
        return given.encode(self._encoding, self._errors) if isinstance(given, str) else given

    def decode(self, data: bytes | bytearray) -> str:
        # As ``subprocess`` does it.
        return data.decode(self._encoding, self._errors).replace("\r\n", "\n").replace("\r", "\n")

    def whole_head(self, head: bytearray) -> int:
        """Return how many of these bytes are whole characters."""
        decoder = codecs.getincrementaldecoder(self._encoding)("replace")
        decoder.decode(bytes(head))
        return len(head) - len(decoder.getstate()[0])

    def whole_tail(self, tail: bytearray) -> int:
        """Return where the first whole character begins.  Only UTF-8 shows that."""
        if codecs.lookup(self._encoding).name != "utf-8":
            return 0
        begins = (place for place, byte in enumerate(tail[:_LONGEST]) if byte & 0xC0 != 0x80)
        return next(begins, len(tail) if len(tail) < _LONGEST else 0)


class CaptureBuffer:
    """What is kept of one output."""

    def __init__(self, shape: HeadTail | None = None) -> None:
        """
        Raises:
            ValueError: A size is negative.
        """
        if shape is not None and (shape.head < 0 or shape.tail < 0):
            raise ValueError("head and tail must be at least 0")
        self._shape = shape
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self.omitted_at = 0
        """Where the bytes begin that were left out, once it is finished; 0 if there are none."""

    def add(self, data: bytes) -> None:
        """Take note of more output."""
        shape = self._shape
        if shape is None:
            self._head += data
            return
        self._total += len(data)
        room = shape.head - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > shape.tail + _SLACK:
            del self._tail[: len(self._tail) - shape.tail]

    def finish(self, coding: Coding) -> tuple[bytes | str, int]:
        """Return what was kept, and how many bytes were left out."""
        head, tail, shape = self._head, self._tail, self._shape
        if shape is not None:
            del tail[: max(0, len(tail) - shape.tail)]
        omitted = 0 if shape is None else self._total - len(head) - len(tail)
        if shape is None or not omitted:
            whole = head + tail
            return (coding.decode(whole) if coding.is_text else bytes(whole)), 0
        if coding.is_text:
            # A character that was cut in two is none: it is left out whole.
            del head[coding.whole_head(head) :]
            del tail[: coding.whole_tail(tail)]
            omitted = self._total - len(head) - len(tail)
        self.omitted_at = len(head)
        marker = shape.marker.replace("{omitted}", str(omitted))
        if coding.is_text:
            return coding.decode(head) + marker + coding.decode(tail), omitted
        return bytes(head) + marker.encode() + bytes(tail), omitted
