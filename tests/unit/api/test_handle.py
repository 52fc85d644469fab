"""What a handle adds to the process it has: what is not in the contract."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from subprocess import PIPE

import pytest

import holdfast
from holdfast.api.embedded import Embedded
from holdfast.api.embedded_process import EmbeddedProcess
from holdfast.api.handle import Handle, returncode
from holdfast.api.options import spec_of
from holdfast.errors import Forbidden
from holdfast.model import Exit, Kind, Outcome, Stream, WriteStatus
from holdfast.place import Naming
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, eventually

ROUTES: dict[Stream, Stream | None] = {Stream.STDOUT: Stream.STDOUT, Stream.STDERR: None}


async def test_a_handle_shows_what_it_is(gate: Gate) -> None:
    place = Embedded()
    process = await place.start(spec_of(["sh", "-c", gate.shell], {}, cwd="/"), Naming(name="shown"))
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


# Input that cannot be handed over.


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be written: as with a token that does not allow it."""

    async def write(process: EmbeddedProcess, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        raise Forbidden("method", "process/write")

    monkeypatch.setattr(EmbeddedProcess, "write", write)


Waiting = Callable[[Handle], Awaitable[object]]


async def _read(handle: Handle) -> object:
    assert handle.stdout is not None
    return await handle.stdout.read()


WAYS: dict[str, Waiting] = {
    "wait": lambda handle: handle.wait(),
    "chunks": lambda handle: anext(handle.chunks()),
    "read": _read,
}


@pytest.mark.parametrize("wait", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
@pytest.mark.usefixtures("forbidden")
async def test_who_waits_for_a_process_that_waits_for_input_is_told(wait: Waiting, *, early: bool) -> None:
    """The process never gets its input and never ends: without the error nobody would know why."""
    async with holdfast.local() as host, await host.start(["cat"], stdin=PIPE) as handle:
        assert handle.stdin is not None
        if early:
            waiting = asyncio.ensure_future(wait(handle))
            await asyncio.sleep(0)
            handle.stdin.write(b"x")
        else:
            handle.stdin.write(b"x")
            await eventually(handle.stdin.is_closing)
            waiting = asyncio.ensure_future(wait(handle))

        with pytest.raises(Forbidden):
            async with asyncio.timeout(PATIENCE):
                await waiting


@pytest.mark.usefixtures("forbidden")
async def test_who_was_told_can_still_wait_for_the_end() -> None:
    async with holdfast.local() as host, await host.start(["cat"], stdin=PIPE) as handle:
        with pytest.raises(Forbidden):
            await handle.communicate(b"x")
        with pytest.raises(Forbidden):
            await handle.communicate(b"x")  # This has not arrived, either.
        await handle.kill()

        assert (await handle.wait()).signal == signal.SIGKILL
        assert await handle.communicate() == (b"", b"")


async def test_what_a_process_said_is_read_before_the_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    async def write(process: EmbeddedProcess, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        await eventually(lambda: process.next_seq > 1)
        raise Forbidden("method", "process/write")

    monkeypatch.setattr(EmbeddedProcess, "write", write)
    talking = ["sh", "-c", "echo ready; cat"]
    async with holdfast.local() as host, await host.start(talking, stdin=PIPE) as handle:
        assert handle.stdin is not None
        assert handle.stdout is not None
        handle.stdin.write(b"x")
        await eventually(handle.stdin.is_closing)

        assert await handle.stdout.readline() == b"ready\n"
        with pytest.raises(Forbidden):
            await handle.stdout.readline()


async def test_the_end_of_a_process_counts_more_than_what_it_was_not_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It did not need it: there is nothing to wait for."""

    async def write(process: EmbeddedProcess, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        await process.wait(PATIENCE)
        raise Forbidden("method", "process/write")

    monkeypatch.setattr(EmbeddedProcess, "write", write)
    async with holdfast.local() as host, await host.start(["echo", "said"], stdin=PIPE) as handle:
        assert handle.stdin is not None
        handle.stdin.write(b"x")
        await eventually(handle.stdin.is_closing)

        assert (await handle.wait()).exit_code == 0
        assert await _read(handle) == b"said\n"
