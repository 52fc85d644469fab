"""What a client was told of one process, and whether it was told in the right order."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

KINDS = {
    "process/output": "output",
    "process/outputDelta": "output",
    "command/exec/outputDelta": "output",
    "process/exited": "exited",
    "process/closed": "closed",
}


class Tale:
    """Filled by notifications; mistakes in their order are kept until somebody asks."""

    __slots__ = (
        "_is_middle",
        "after",
        "answered",
        "code",
        "data",
        "end",
        "is_closed",
        "may_be_late",
        "mistakes",
        "name",
    )

    def __init__(self, name: str, *, is_middle: bool = False) -> None:
        self.name = name
        self._is_middle = is_middle
        """Whether the first number that is heard may be any."""
        self.answered = is_middle
        """Whether the answer to the start has come; nothing may come before it."""
        self.after = 0
        """The number of the last event; the app dialects have none."""
        self.data: dict[str, bytearray] = {}
        self.code: int | None = None
        self.end: dict[str, Any] = {}
        """The params of the exit."""
        self.is_closed = False
        self.may_be_late = False
        """Whether somebody else may write after the exit."""
        self.mistakes: list[str] = []

    def hear(self, method: str, params: dict[str, Any]) -> None:
        kind = KINDS.get(method)
        if kind is None:
            self.mistakes.append(f"unknown notification {method}")
            return
        if not self.answered:
            self.mistakes.append(f"{kind} before the answer to the start")
        if self.is_closed:
            self.mistakes.append(f"{kind} after the end")
        if "seq" in params:
            if params["seq"] != self.after + 1 and not self._is_middle:
                self.mistakes.append(f"{kind} has number {params['seq']} after {self.after}")
            self.after = params["seq"]
        was_middle, self._is_middle = self._is_middle, False
        if kind == "output":
            self._output(params)
        elif kind == "exited":
            self._exited(params)
        else:
            if self.code is None and not was_middle:
                self.mistakes.append("closed before exited")
            self.is_closed = True

    def _output(self, params: dict[str, Any]) -> None:
        if self.code is not None and not self.may_be_late:
            self.mistakes.append("output after the exit")
        text = params["chunk"] if "chunk" in params else params["deltaBase64"]
        self.add(params["stream"], base64.b64decode(text))

    def _exited(self, params: dict[str, Any]) -> None:
        if self.code is not None:
            self.mistakes.append("exited twice")
        self.code, self.end = params["exitCode"], params
        # In the app dialects this is all there is.
        self.is_closed = "seq" not in params

    def add(self, stream: str, data: bytes) -> None:
        """Bytes that came, by a notification or by a read."""
        self.data.setdefault(stream, bytearray()).extend(data)

    def catch_up(self, page: dict[str, Any]) -> None:
        """Take what was missed from the answer to a read that went on where the tale stopped."""
        for chunk in page["chunks"]:
            if chunk["seq"] != self.after + 1:
                self.mistakes.append(f"a read gave number {chunk['seq']} after {self.after}")
            self.after = chunk["seq"]
            self.add(chunk["stream"], base64.b64decode(chunk["chunk"]))
        if page.get("gap"):
            self.mistakes.append(f"a gap: {page['gap']}")
        self.after = page["nextSeq"] - 1
        if page["exited"]:
            self.code, self.end = page["exitCode"], page
        self.is_closed = page["closed"]

    def bytes(self, stream: str) -> bytes:
        return bytes(self.data.get(stream, b""))

    def digest(self, stream: str) -> str:
        return digest(self.data.get(stream, b""))


def digest(data: bytes | bytearray | memoryview) -> str:
    """What bytes are compared by, so that a mistake does not fill the screen."""
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}"
