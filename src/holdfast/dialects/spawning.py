"""Starting a process under a name, and the words for a start that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.backend import HostedBackend, HostedProcess
from holdfast.errors import Fault, ProgramSearch, SpawnFailed, StartCancelled
from holdfast.model import Spec
from holdfast.protocol.paths import printable
from holdfast.tracing import share
from holdfast.wire.serde import quote

from .scope import Scope, Starting

T = TypeVar("T")

Prepare = Callable[[Spec], Awaitable[Spec]]
"""What to do before a start: it returns what is started instead."""


async def start(
    backend: HostedBackend, spec: Spec, scope: Scope[T], starting: Starting, prepare: Prepare | None = None
) -> HostedProcess:
    """Start the process that ``starting`` reserved a name for; if that fails the name is free again.

    Raises:
        StartCancelled: It was given up by ``Starting.cancel``.
        SpawnFailed: See ``HostedBackend.start``.
        LimitReached: See ``HostedBackend.start``.
    """
    task = asyncio.current_task()
    assert task is not None
    share("process.id", starting.name)
    try:
        if starting.cancelled:
            raise StartCancelled(starting.name)
        starting.cancel_with(task.cancel)
        if prepare is not None:
            spec = await prepare(spec)
        return await backend.start(spec)
    except asyncio.CancelledError:
        scope.release(starting.name)
        if starting.cancelled:
            raise StartCancelled(starting.name) from None
        raise
    except BaseException:
        scope.release(starting.name)
        raise


def failure_text(error: SpawnFailed) -> str:
    """The reference's words, which clients know; what they leave out is in the data."""
    kind = "PTY" if error.terminal else "pipe"
    match error:
        case SpawnFailed(fault=Fault.PROGRAM, subject=""):
            return f"missing program for {kind} spawn"
        case SpawnFailed(fault=Fault.ARGUMENT, subject="env", number=None, terminal=False):
            return "data provided contains a nul byte"
        case SpawnFailed(fault=Fault.ARGUMENT | Fault.DIRECTORY, number=None):
            return "nul byte found in provided data"
        case SpawnFailed(terminal=True, search=ProgramSearch(path=None)):
            return f"Unable to spawn {error.subject} because:\nUnable to resolve the PATH"
        case SpawnFailed(terminal=True, search=ProgramSearch(path=str(path))):
            return (
                f"Unable to spawn {error.subject} because:\n"
                f"No viable candidates found in PATH {quote(printable(path))}"
            )
        case SpawnFailed(number=None):
            return f"{error.subject}: {error.reason}"
        case _:
            return f"{error.reason} (os error {error.number})"
