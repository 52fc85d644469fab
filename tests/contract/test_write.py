"""Writing: in order, each once, and an honest answer."""

from __future__ import annotations

import asyncio
import hashlib
import random

import pytest

from holdfast.backend import Backend, HostedBackend, HostedProcess, Process
from holdfast.model import Size, WriteStatus
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, TERMINAL, command, sh
from tests.fakes.recorder import Recorder, finished, record

ACCEPTED, CLOSED = WriteStatus.ACCEPTED, WriteStatus.STDIN_CLOSED

PIECE = b"p" * 65_536


async def echo(backend: Backend, count: int) -> tuple[Process, Recorder]:
    """A process that gives back so many bytes and exits."""
    process = await backend.start(command("head", "-c", str(count), stdin=True))
    return process, record(process)


def fill(process: HostedProcess) -> int:
    """Write until the queue is full; say how many pieces it took."""
    count = 0
    while process.try_write(PIECE, write_id=f"fill {count}") is ACCEPTED:
        count += 1
    return count


async def test_bytes_arrive_in_the_order_of_the_calls(backend: Backend) -> None:
    process, recorder = await echo(backend, 100)

    calls = [process.write(b"%02d" % number, write_id=f"{number}") for number in range(50)]
    assert set(await asyncio.gather(*calls)) == {ACCEPTED}

    await recorder.until("closed")
    assert recorder.said() == b"".join(b"%02d" % number for number in range(50))


async def test_the_same_write_is_written_once(backend: Backend) -> None:
    """A client that lost its connection repeats what was not answered."""
    process, recorder = await echo(backend, 6)

    assert await process.write(b"one", write_id="1") is ACCEPTED
    assert await process.write(b"ONE", write_id="1") is ACCEPTED
    assert await process.write(b"two", write_id="2") is ACCEPTED

    await recorder.until("closed")
    assert recorder.said() == b"onetwo"


async def test_4096_writes_are_remembered_and_the_one_before_is_forgotten(backend: Backend) -> None:
    process, recorder = await echo(backend, 4098)
    for number in range(4097):
        assert await process.write(b".", write_id=f"{number}") is ACCEPTED

    assert await process.write(b"X", write_id="1") is ACCEPTED
    assert await process.write(b"Y", write_id="0") is ACCEPTED

    await recorder.until("closed")
    assert recorder.said() == b"." * 4097 + b"Y"


@pytest.mark.slow
async def test_large_writes_arrive_byte_by_byte(backend: Backend) -> None:
    data = random.Random(7).randbytes(16 << 20)  # noqa: S311 (the same bytes in every run)
    recorder = record(process := await backend.start(sh(f"head -c {len(data)} | sha256sum", stdin=True)))

    for start in range(0, len(data), 1 << 20):
        assert await process.write(data[start : start + (1 << 20)], write_id=f"{start}") is ACCEPTED

    await recorder.until("closed")
    assert recorder.said().split()[0].decode() == hashlib.sha256(data).hexdigest()


@pytest.mark.slow
async def test_large_writes_into_a_terminal_arrive_byte_by_byte(backend: Backend, gate: Gate) -> None:
    data = random.Random(7).randbytes(1 << 20)  # noqa: S311 (the same bytes in every run)
    script = f"stty raw -echo; {gate.shell}; head -c {len(data)} | sha256sum"
    recorder = record(process := await backend.start(sh(script, terminal=TERMINAL)))
    await gate.reached()
    gate.open()

    assert await process.write(data, write_id="all") is ACCEPTED

    await recorder.until("closed")
    assert recorder.said().split()[0].decode() == hashlib.sha256(data).hexdigest()


async def test_a_terminal_is_always_writable(backend: Backend) -> None:
    recorder = record(process := await backend.start(command("cat", terminal=TERMINAL)))

    assert await process.write(b"hello\n\x04", write_id="1") is ACCEPTED

    await recorder.until("closed")
    assert recorder.outline == [("pty", b"hello\r\nhello\r\n"), ("exited", 0), ("closed",)]


async def test_an_empty_write_is_accepted(backend: Backend) -> None:
    process, recorder = await echo(backend, 1)

    assert await process.write(b"", write_id="1") is ACCEPTED
    assert await process.write(b"x", write_id="2") is ACCEPTED

    await recorder.until("closed")
    assert recorder.said() == b"x"


# Without waiting.


async def test_what_need_not_wait_can_be_had_without_waiting(kept: HostedBackend, gate: Gate) -> None:
    process = await kept.start(sh(f"{gate.shell}; exec head -c 6", stdin=True))
    recorder = record(process)
    await gate.reached()

    assert process.try_write(b"one", write_id="1") is ACCEPTED
    assert process.try_write(b"ONE", write_id="1") is ACCEPTED
    assert await process.write(b"two", write_id="2") is ACCEPTED
    gate.open()

    await recorder.until("closed")
    assert recorder.said() == b"onetwo"
    assert process.try_write(b"x") is CLOSED


# A full queue.


async def test_a_write_waits_while_the_child_does_not_read(kept: HostedBackend, gate: Gate) -> None:
    recorder = record(process := await kept.start(sh(f"{gate.shell}; exec wc -c", stdin=True)))
    await gate.reached()
    count = fill(process)
    waiting = asyncio.ensure_future(process.write(b"more", write_id="more"))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert process.try_write(b"again", write_id="fill 0") is ACCEPTED

    gate.open()

    assert await asyncio.wait_for(waiting, PATIENCE) is ACCEPTED
    assert count >= 128
    assert recorder.told == []


async def test_a_cancelled_write_that_waited_is_not_written_and_may_be_repeated(
    kept: HostedBackend, gate: Gate
) -> None:
    process = await kept.start(sh(f"{gate.shell}; exec tr -d p", stdin=True))
    recorder = record(process)
    await gate.reached()
    fill(process)
    waiting = asyncio.ensure_future(process.write(b"cancelled", write_id="w"))
    await asyncio.sleep(0)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.open()

    assert await asyncio.wait_for(process.write(b"retry\n", write_id="w"), PATIENCE) is ACCEPTED
    assert await asyncio.wait_for(process.write(b"x" * 65_536, write_id="x"), PATIENCE) is ACCEPTED
    await recorder.until_said(b"retry\n")
    assert recorder.said().startswith(b"retry\n")


async def test_a_retry_while_the_first_still_waits_is_written_once(kept: HostedBackend, gate: Gate) -> None:
    process = await kept.start(sh(f"{gate.shell}; exec tr -d p", stdin=True))
    recorder = record(process)
    await gate.reached()
    fill(process)
    first = asyncio.ensure_future(process.write(b"once", write_id="w"))
    second = asyncio.ensure_future(process.write(b"once", write_id="w"))
    end = asyncio.ensure_future(process.write(b"end" + b"x" * 65_536, write_id="e"))
    await asyncio.sleep(0)

    gate.open()

    assert {await asyncio.wait_for(each, PATIENCE) for each in (first, second, end)} == {ACCEPTED}
    await recorder.until_said(b"onceend")
    assert recorder.said().startswith(b"onceend")


async def test_those_who_wait_are_told_when_the_child_is_gone(kept: HostedBackend, gate: Gate) -> None:
    process = await kept.start(sh(f"{gate.shell}; exit 0", stdin=True))
    await gate.reached()
    fill(process)
    waiting = asyncio.ensure_future(process.write(b"x", write_id="w"))
    await asyncio.sleep(0)

    gate.open()

    assert await asyncio.wait_for(waiting, PATIENCE) is CLOSED


# No stdin.


async def test_without_stdin_nothing_can_be_written(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(gate.shell))

    assert await process.write(b"x", write_id="1") is CLOSED


async def test_when_the_child_closed_its_stdin_nothing_can_be_written(backend: Backend, gate: Gate) -> None:
    """Bytes that nobody will ever read are not accepted."""
    process = await backend.start(sh(f"exec 0<&-; {gate.shell}", stdin=True))
    await gate.reached()

    assert await process.write(b"x", write_id="1") is CLOSED
    assert await process.write(b"x", write_id="1") is CLOSED


@pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])
async def test_after_the_exit_nothing_can_be_written(backend: Backend, terminal: Size | None) -> None:
    process = await backend.start(sh("exit 0", terminal=terminal, stdin=True))
    await finished(process)

    assert await process.write(b"x", write_id="1") is CLOSED


async def test_what_was_accepted_before_the_exit_stays_accepted(backend: Backend) -> None:
    """The answer to a retry must not depend on what happened in between."""
    process, recorder = await echo(backend, 1)
    assert await process.write(b"x", write_id="1") is ACCEPTED
    await recorder.until("closed")

    assert await process.write(b"x", write_id="1") is ACCEPTED


# Without an identifier.


async def test_a_write_without_an_identifier_is_written_each_time(backend: Backend) -> None:
    process, recorder = await echo(backend, 9)

    assert await process.write(b"one") is ACCEPTED
    assert await process.write(b"one") is ACCEPTED
    assert await process.write(b"one", write_id=None) is ACCEPTED

    await recorder.until("closed")
    assert recorder.said() == b"oneoneone"


# The end of stdin.


async def test_closing_stdin_is_the_end_of_the_childs_input(backend: Backend) -> None:
    recorder = record(process := await backend.start(command("cat", stdin=True)))
    await process.write(b"last words")

    await process.close_stdin()
    await process.close_stdin()

    assert await process.write(b"more") is CLOSED
    await recorder.until("closed")
    assert recorder.outline == [("stdout", b"last words"), ("exited", 0), ("closed",)]
    await process.close_stdin()


async def test_everything_offered_before_the_close_arrives_before_the_end(
    kept: HostedBackend, gate: Gate
) -> None:
    """What is in the queue, and what still waits for room in it."""
    recorder = record(process := await kept.start(sh(f"{gate.shell}; exec sha256sum", stdin=True)))
    await gate.reached()
    digest = hashlib.sha256(PIECE * fill(process))
    waiting = [asyncio.ensure_future(process.write(bytes([n]) * 1000)) for n in range(20)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)

    await process.close_stdin()
    refused = process.try_write(b"too late")
    gate.open()
    answers = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE)
    await recorder.until("closed")

    digest.update(b"".join(bytes([n]) * 1000 for n in range(20)))
    assert (refused, answers) == (CLOSED, [ACCEPTED] * 20)
    assert recorder.said().split()[0].decode() == digest.hexdigest()


async def test_closing_the_stdin_of_a_terminal_takes_no_more_and_is_the_end_for_its_reader(
    backend: Backend, gate: Gate
) -> None:
    """Our side stays open, for it is the output as well: hanging up would kill the child."""
    script = f"cat; {gate.shell}; echo over"
    recorder = record(process := await backend.start(sh(script, terminal=TERMINAL)))
    await process.write(b"word\n")

    await process.close_stdin()
    await process.close_stdin()
    status = await process.write(b"x")
    await gate.reached()
    gate.open()

    await recorder.until("closed")
    assert status is CLOSED
    assert recorder.said().replace(b"\r\n", b" ").split() == [b"word", b"word", b"over"]
    assert process.exit_code == 0


async def test_closing_a_stdin_that_never_was_is_nothing(backend: Backend) -> None:
    recorder = record(process := await backend.start(command("true")))

    await process.close_stdin()

    await recorder.until("closed")
    assert recorder.told == [("exited", 0), ("closed",)]
