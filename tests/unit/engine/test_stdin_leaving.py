"""Those who wait for room in a stdin and are gone before there is any."""

from __future__ import annotations

from holdfast.config import EngineLimits
from holdfast.model import WriteStatus
from tests.unit.engine.test_stdin import FILL, _form, piped, start  # noqa: F401 (for both forms)


async def test_bytes_of_a_call_that_is_dropped_while_it_waits_are_not_written() -> None:
    """Nobody cancels a coroutine that was closed: it leaves the line all the same."""
    with piped(EngineLimits(stdin_chunks=1)) as pipe:
        pipe.stdin.try_write(FILL, "fill")
        waiting = pipe.stdin.write(b"dropped", "w")
        waiting.send(None)

        waiting.close()
        after = start(pipe, b"after", "x")

        assert await pipe.take(len(FILL) + 5) == FILL + b"after"
        assert await after is WriteStatus.ACCEPTED
