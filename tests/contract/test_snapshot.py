"""What a terminal shows: asked for, and drawn by whoever attaches."""

from __future__ import annotations

import uuid

import pytest

from holdfast import PIPE, Host, Size
from holdfast.cursors import CursorShape
from holdfast.errors import NoTerminal
from holdfast.screens import ScreenSnapshot
from holdfast.terminal.emulator import Emulator
from tests.fakes.gate import Gate

SIZE = Size(6, 20)


@pytest.fixture
def job() -> str:
    """A name that nobody has: a server may have had other clients."""
    return f"job-{uuid.uuid4()}"


def shown(*pieces: bytes) -> bytes:
    emulator = Emulator(SIZE)
    for piece in pieces:
        emulator.feed(piece)
    return emulator.snapshot(0, complete=True).data


async def begun(host: Host, job: str, script: str, gate: Gate) -> bytes:
    """A kept process that has run this script and waits; what it said."""
    # The last byte says that everything has come.
    script = f"stty -opost; {script}; printf '\\001'; {gate.shell}; printf after"
    handle = await host.start(["sh", "-c", script], name=job, keep=True, terminal=SIZE)
    said = b""
    async for chunk in handle.chunks():
        said += chunk.data
        if said.endswith(b"\1"):
            break
    handle.detach()
    return said


async def test_a_snapshot_says_what_a_terminal_shows(host: Host, job: str, gate: Gate) -> None:
    said = await begun(host, job, r"printf '\033]0;title\007one\r\n\033[?1049h\033[31mtwo\033[?25l'", gate)

    handle = await host.attach(job)
    found = await handle.snapshot()

    assert found.data == shown(said)
    assert (found.size, found.row, found.col, found.cursor_visible) == (SIZE, 2, 4, False)
    assert (found.title, found.alternate, found.complete) == ("title", True, True)


async def test_a_snapshot_says_what_the_cursor_looks_like(host: Host, job: str, gate: Gate) -> None:
    await begun(host, job, r"printf '\033[5 qone'", gate)

    found = await (await host.attach(job)).snapshot()

    assert (found.cursor_shape, found.cursor_blinking) == (CursorShape.BAR, True)
    assert b"\x1b[5 q" in found.data


async def test_whoever_attaches_begins_with_the_screen_and_reads_on(host: Host, job: str, gate: Gate) -> None:
    """Even where the snapshot is taken in the midst of a sequence: what follows goes on with it."""
    said = await begun(host, job, r"printf 'one\033[6ntwo\r\n\033[31'", gate)

    handle = await host.attach(job, snapshot=True)
    gate.open()
    read = b"".join([piece async for piece in handle])

    assert isinstance(handle.shown, ScreenSnapshot)
    assert read == handle.shown.data + b"after"
    assert b"\x1b[6n" not in read
    assert shown(read) == shown(said, b"after")


async def test_a_flood_is_not_repeated(host: Host, job: str, gate: Gate) -> None:
    await begun(host, job, "seq 1 100000", gate)

    handle = await host.attach(job, snapshot=True)
    gate.open()
    read = b"".join([piece async for piece in handle])

    assert b"100000" in read
    assert len(read) < 2000


async def test_the_screen_of_an_ended_process_can_still_be_seen(host: Host, job: str) -> None:
    script = "stty -opost; printf 'one\r\n\033[?25ltwo'"
    async with await host.start(["sh", "-c", script], name=job, keep=True, terminal=SIZE) as handle:
        said = b"".join([piece async for piece in handle])
        await handle.wait()

    again = await host.attach(job, snapshot=True)
    read = b"".join([piece async for piece in again])

    assert shown(read) == shown(said)
    assert read.startswith(again.shown.data if again.shown is not None else b"?")


async def test_a_size_that_changed_is_told(host: Host, job: str, gate: Gate) -> None:
    await begun(host, job, "printf one", gate)

    handle = await host.attach(job)
    await handle.resize(Size(9, 30))
    found = await handle.snapshot()

    assert found.size == Size(9, 30)


async def test_pipes_have_no_screen_and_are_read_from_the_beginning(host: Host, job: str) -> None:
    async with await host.start(["sh", "-c", "echo said"], name=job, keep=True, stdin=PIPE) as started:
        await started.communicate()

    handle = await host.attach(job, snapshot=True)

    assert b"".join([piece async for piece in handle]) == b"said\n"
    assert handle.shown is None
    with pytest.raises(NoTerminal):
        await handle.snapshot()
