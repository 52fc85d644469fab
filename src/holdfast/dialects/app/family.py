"""The two families of methods, and how each speaks of its processes (pure)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.value import value
from holdfast.wire.serde import quote


@value
class Family:
    """The words that differ between ``process/...`` and ``command/exec...``."""

    start: str
    """The method that starts one."""
    write: str
    """The method that writes to its stdin."""
    noun: str
    """What it is called when it runs."""
    thing: str
    """What it is called while it is started."""
    key: str
    """What its name is called."""
    field: str
    """The member of params that holds its name."""
    delta: str
    """The method of the notifications of its output."""
    quote: Callable[[str], str]
    """How its name is put in quotes."""

    def name(self, params: Any) -> str | None:
        """The process that a request is about."""
        name: str | None = getattr(params, self.field)
        return name

    def unknown(self, name: str) -> str:
        return f"no active {self.noun} for {self.key} {self.quote(name)}"

    def over(self, name: str) -> str:
        return f"{self.noun} {self.quote(name)} is no longer running"

    def no_stdin(self) -> str:
        return f"stdin streaming is not enabled for this {self.noun}"

    def taken(self, name: str) -> str:
        scope = "" if self.noun in self.key else f"{self.noun} "
        return f"duplicate active {scope}{self.key}: {self.quote(name)}"

    def no_size(self) -> str:
        return f"{self.noun} size rows and cols must be greater than 0"

    def size_without_terminal(self) -> str:
        return f"{self.start} size requires tty: true"

    def negative_timeout(self, value: int) -> str:
        return f"{self.start} timeoutMs must be non-negative, got {value}"

    def nothing_to_write(self) -> str:
        return f"{self.write} requires deltaBase64 or closeStdin"

    def not_started(self, reason: str) -> str:
        return f"failed to spawn {self.thing}: {reason}"


PROCESS = Family(
    start="process/spawn",
    write="process/writeStdin",
    noun="process",
    thing="process",
    key="process handle",
    field="process_handle",
    delta="process/outputDelta",
    quote=quote,
)

COMMAND = Family(
    start="command/exec",
    write="command/exec/write",
    noun="command/exec",
    thing="command",
    key="process id",
    field="process_id",
    delta="command/exec/outputDelta",
    quote=partial(json.dumps, ensure_ascii=False),
)
