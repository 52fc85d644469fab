"""What a handle adds to the process it has: what is not in the contract."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.api.embedded import Embedded
from holdfast.api.handle import Handle, returncode
from holdfast.api.options import spec_of
from holdfast.model import Exit, Kind, Outcome, Stream
from tests.fakes.gate import Gate
from tests.fakes.process import eventually

ROUTES: dict[Stream, Stream | None] = {Stream.STDOUT: Stream.STDOUT, Stream.STDERR: None}


async def test_a_handle_shows_what_it_is(gate: Gate) -> None:
    place = Embedded()
    process = await place.start(spec_of(["sh", "-c", gate.shell], {}, cwd="/"), name="shown")
    handle = Handle(process, ["sh"], ROUTES, stdin=False)

    assert repr(handle) == f"<Handle 'shown' pid {process.pid}, running>"
    assert (handle.outcome, handle.usage, handle.stdin, handle.stderr) == (None, None, None, None)
    assert handle.stdout is not None
    gate.open()
    await handle.wait()
    assert repr(handle) == f"<Handle 'shown' pid {process.pid}, returncode 0>"
    await place.aclose()


async def test_a_terminal_is_not_closed_by_whoever_has_nothing_to_say() -> None:
    """What would close it is a character, which the terminal echoes into the output."""
    async with holdfast.local() as host:
        silent = await host.start(["true"], terminal=True)
        talking = await host.start(["cat"], terminal=True)

        assert await silent.communicate() == (b"", None)
        out, _ = await talking.communicate(b"hello\n")

    assert out is not None
    assert out.count(b"hello\r\n") == 2


async def test_leaving_the_block_does_not_wait_for_unread_output() -> None:
    async with holdfast.local() as host, await host.start(["yes"]) as handle:
        await eventually(lambda: not handle._feed._valve.is_open)

    assert handle.returncode == -9


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (Exit(7, Outcome(Kind.EXIT, 7)), 7),
        (Exit(137, Outcome(Kind.SIGNAL, None, 9)), -9),
        (Exit(143, Outcome(Kind.TIMEOUT, 143)), 143),
        (Exit(-1, Outcome(Kind.LOST)), 255),
    ],
)
def test_the_return_code_is_that_of_subprocess(end: Exit, code: int) -> None:
    assert returncode(end) == code
