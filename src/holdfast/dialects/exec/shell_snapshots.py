"""Shell snapshots: the profiles of a login shell are read once per session, and restored for later commands.

What must hold: one shell at a time reads the profiles for the same key; whatever goes wrong, the command runs
as it would have without a snapshot; what the profiles have started lives as long as the session.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from holdfast.backend import HostedBackend, HostedProcess
from holdfast.dialects.scope import Strays
from holdfast.errors import HoldfastError
from holdfast.model import Leftovers, ProcessTerms, Spec, Stream
from holdfast.value import replace

from .shells import MOST, ShellKind, ShellSnapshots, ShellState, is_written, read_state, restoring, writing

PATIENCE = 10.0
"""Seconds that a login shell has to read its profiles."""

_OUTPUT = MOST + 64 * 1024
"""Bytes that such a shell may say, with what its profiles say."""

_LAST_STEP = 1.0
"""Seconds from the last byte of the text to the shell's end, before it is not waited for any more."""


async def with_snapshot(
    snapshots: ShellSnapshots, key: bytes, backend: HostedBackend, spec: Spec, kind: ShellKind, strays: Strays
) -> Spec:
    """Return what to start instead of a login shell, so that it need not read its profiles again.

    Args:
        key: The same for requests whose shells read the same profiles under the same conditions.
        strays: Gets a shell that has left somebody behind, such as an agent for keys.
    """

    async def read() -> ShellState | None:
        process = await backend.start(_reader(spec, kind, marker := secrets.token_hex(16)))
        leftovers = Leftovers.END
        try:
            output = await _listen(process, marker)
            if await process.wait(_LAST_STEP) is not None and not snapshots.ended:
                strays.keep(process)
                leftovers = Leftovers.SPARE
        finally:
            process.forget(leftovers)
        return read_state(kind, output, marker, spec.env)

    try:
        state = await _find(snapshots, key, read)
    except HoldfastError:
        return spec  # Whatever hinders the one may hinder the other, and is told then.
    found = None if state is None else restoring(kind, state, spec.argv, spec.env)
    return spec if found is None else replace(spec, argv=found[0], env=found[1])


async def _find(
    snapshots: ShellSnapshots, key: bytes, read: Callable[[], Awaitable[ShellState | None]]
) -> ShellState | None:
    """Return the state for a key; the first who asks for it reads it, others wait meanwhile."""
    while key not in snapshots:
        pending = snapshots.pending.get(key)
        if pending is not None:
            await pending.wait()
            continue
        snapshots.pending[key] = pending = asyncio.Event()
        try:
            state = await read()
            snapshots.keep(key, state)
            return state
        finally:
            del snapshots.pending[key]
            pending.set()
    return snapshots.find(key)


def _reader(spec: Spec, kind: ShellKind, marker: str) -> Spec:
    """A login shell that runs under the same conditions as a command, and writes down its state."""
    return replace(
        spec,
        argv=writing(spec.argv[0], kind, marker),
        arg0=None,
        terminal=None,
        stdin=False,
        terms=ProcessTerms(timeout=PATIENCE, output=_OUTPUT, limits=spec.terms.limits),
        note=b"",
        record=None,
    )


async def _listen(process: HostedProcess, marker: str) -> bytes:
    """Return what the shell says, until it has written all; others may hold its output open for longer."""
    output, after = bytearray(), 0
    while True:
        page = await process.read(after=after, wait=PATIENCE)
        for chunk in page.chunks:
            after = chunk.seq
            if chunk.stream is Stream.STDOUT:
                output += chunk.data
        if page.closed or is_written(output, marker):
            return bytes(output)
        if page.exited and not page.chunks:
            return bytes(output)
