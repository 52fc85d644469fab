"""Cuts the output of a terminal program into text and control sequences, however it arrives (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LONGEST: Final = 65_536
"""Bytes of one sequence that are held together: no query is longer, and no title."""

_C0 = rb"\x00-\x17\x19\x1c-\x1f"
_STRING = rb"[^\x18\x1a\x1b]"

# What follows the escape character.  One that another sequence breaks off is whole, too.
_WHOLE = re.compile(
    rb"\[[ -?%b]*(?:[@-~]|[\x18\x1a]|(?=\x1b))" % _C0
    + rb"|\][^\x07\x18\x1a\x1b]*(?:\x1b\\|[\x07\x18\x1a]|(?=\x1b[^\\]))"
    + rb"|[PX^_]%b*(?:\x1b\\|[\x18\x1a]|(?=\x1b[^\\]))" % _STRING
    + rb"|[ -/%b]+(?:[0-OQ-WYZ\\`-~]|[\x18\x1a\x30-\x7e]|(?=\x1b))" % _C0
    + rb"|[0-OQ-WYZ\\`-~\x18\x1a]|(?=\x1b)|[\x7f-\xff]",
    re.DOTALL,
)


class Sequences:
    """Cuts a stream into pieces: each is one control sequence, or bytes outside of any.

    What must hold:

    1. The pieces, and what is held, put together are the stream.
    2. Which sequences are found does not depend on how the stream was cut.
    3. No more than ``LONGEST`` bytes are held: a longer sequence is passed on in parts, as text.
    """

    def __init__(self) -> None:
        self._held = b""
        self._is_long = False  # Within a sequence that was too long to hold.

    @property
    def held(self) -> bytes:
        """The beginning of a sequence that is not complete."""
        return self._held

    def feed(self, data: bytes) -> Iterator[tuple[bool, bytes]]:
        """Yield the next pieces, each with whether it is a control sequence.  Is to be read to its end."""
        data, self._held = self._held + data, b""
        at, end = 0, len(data)
        while at < end:
            if self._is_long:
                found = _END_OF_STRING.search(data, at)
                if found is None:
                    # An escape character at the end may be half of what ends the string.
                    stop = end - data.endswith(b"\x1b", at)
                    self._held = data[stop:]
                    if stop > at:
                        yield False, data[at:stop]
                    return
                self._is_long = False
                yield False, data[at : found.end()]
                at = found.end()
                continue
            start = data.find(b"\x1b", at)
            if start < 0:
                yield False, data[at:]
                return
            if start > at:
                yield False, data[at:start]
            match = _WHOLE.match(data, start + 1)
            at = end if match is None else match.end()
            if at - start > LONGEST:
                # Also if it is all there: how the stream was cut makes no difference.
                at = start + LONGEST
                self._is_long = True
                yield False, data[start:at]
            elif match is None:
                self._held = data[start:]
            else:
                yield True, data[start:at]

    def rest(self) -> bytes:
        """Return what is held, and hold nothing: at the end of the stream."""
        rest, self._held, self._is_long = self._held, b"", False
        return rest


_END_OF_STRING = re.compile(rb"\x1b\\|[\x07\x18\x1a]|(?=\x1b[^\\])", re.DOTALL)
