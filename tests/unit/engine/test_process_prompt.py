"""What may have to wait elsewhere and never does on this host."""

from __future__ import annotations

import signal

from holdfast.engine.local import LocalBackend
from holdfast.model import Size, WriteStatus
from tests.fakes.process import TERMINAL, command
from tests.fakes.recorder import record


async def test_what_is_awaited_is_done_at_once(backend: LocalBackend) -> None:
    """The two ways to ask are one: whoever serves a process does not wait, whoever uses it may have to."""
    process = await backend.start(command("cat", terminal=TERMINAL))
    recorder = record(process)

    await process.resize(Size(rows=3, cols=4))
    status = await process.close_stdin()
    await process.signal(signal.SIGKILL, tree=True)

    await recorder.until("closed")
    assert status is WriteStatus.ACCEPTED
