"""A terminal session as asciicast, version 3: lines of JSON that asciinema plays (pure)."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.model import Size

_DIGITS = 3
"""Of the seconds between two events."""


class Recording:
    """Makes the lines of one recording.

    What must hold: the intervals add up to the time that has passed, whatever each of them is rounded to,
    and a character that came in two pieces is written as one.
    """

    def __init__(self, now: float) -> None:
        """``now`` is the time of the beginning, by the clock by which the events are told."""
        self._told = now
        self._decoders = {code: codecs.getincrementaldecoder("utf-8")("replace") for code in "oi"}

    @staticmethod
    def header(
        size: Size,
        *,
        timestamp: float,
        command: Sequence[str] = (),
        title: str = "",
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Return the first line.  ``timestamp`` is in seconds since 1970; of ``env`` ``TERM`` is the type."""
        term: dict[str, Any] = {"cols": size.cols, "rows": size.rows}
        if env and env.get("TERM"):
            term["type"] = env["TERM"]
        header: dict[str, Any] = {"version": 3, "term": term, "timestamp": int(timestamp)}
        if command:
            header["command"] = " ".join(command)
        if title:
            header["title"] = title
        if env and env.get("SHELL"):
            header["env"] = {"SHELL": env["SHELL"]}
        return _line(header)

    def output(self, now: float, data: bytes) -> str:
        """Return the line for what was shown; nothing if it is not a whole character yet."""
        return self._bytes(now, "o", data)

    def input(self, now: float, data: bytes) -> str:
        """Return the line for what was typed."""
        return self._bytes(now, "i", data)

    def resized(self, now: float, size: Size) -> str:
        """Return the line for another size."""
        return self._event(now, "r", f"{size.cols}x{size.rows}")

    def marked(self, now: float, words: str) -> str:
        """Return the line for a mark, at which players can stop."""
        return self._event(now, "m", words)

    def ended(self, now: float, code: int) -> str:
        """Return the line for the end."""
        return self._event(now, "x", str(code))

    def _bytes(self, now: float, code: str, data: bytes) -> str:
        text = self._decoders[code].decode(data)
        return self._event(now, code, text) if text else ""

    def _event(self, now: float, code: str, text: str) -> str:
        interval = round(max(0.0, now - self._told), _DIGITS)
        self._told += interval
        return _line([interval, code, text])


def _line(value: object) -> str:
    # A surrogate stands for a byte that is no text, in an argument for example; JSON has no word for it.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"
