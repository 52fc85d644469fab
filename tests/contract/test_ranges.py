"""Output by place, near and far alike: however it is cut, it is the whole."""

from __future__ import annotations

import hashlib
import random
import sys
import uuid
from itertools import pairwise

import pytest

from holdfast import Handle, HeadTail, Host, OutputRange, Size, Stream
from holdfast.errors import BadRequest
from tests.fakes.gate import Gate

OUT, ERR, PTY = Stream.STDOUT, Stream.STDERR, Stream.PTY

INTERLEAVED = """
import os, random, sys
chance, left = random.Random(int(sys.argv[1])), int(sys.argv[2])
while left > 0:
    piece = chance.randbytes(min(left, chance.choice([1, 30, 700, 9000, 70_000])))
    left -= len(piece)
    fd, at = chance.choice([1, 2]), 0
    while at < len(piece):
        at += os.write(fd, piece[at:])
"""
"""Writes random bytes to both outputs by turns."""

MUCH = 5_000_000


def interleaved(seed: int, size: int) -> dict[Stream, bytes]:
    """What that program writes."""
    chance, left = random.Random(seed), size  # noqa: S311  (no secret)
    said = {OUT: bytearray(), ERR: bytearray()}
    while left > 0:
        piece = chance.randbytes(min(left, chance.choice([1, 30, 700, 9000, 70_000])))
        left -= len(piece)
        said[(OUT, ERR)[chance.choice([1, 2]) - 1]] += piece
    return {stream: bytes(data) for stream, data in said.items()}


def argv(seed: int, size: int) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", INTERLEAVED, str(seed), str(size)]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def drained(handle: Handle) -> None:
    async for _ in handle:
        pass
    await handle.wait()


async def test_any_partition_of_five_megabytes_is_the_whole(host: Host) -> None:
    handle = await host.start(argv(1, MUCH), name=f"much-{uuid.uuid4()}", keep=True, retain=2 * MUCH)
    await drained(handle)

    for stream, said in interleaved(1, MUCH).items():
        whole = await handle.read_range(stream)
        cuts = [len(said) * part // 97 for part in (0, 1, 2, 30, 31, 64, 96)]
        places = [*cuts, len(said)]
        parts = [await handle.read_range(stream, offset=a, length=b - a) for a, b in pairwise(places)]

        assert digest(whole.data) == digest(said) == digest(b"".join(part.data for part in parts))
        assert (whole.total, whole.first_offset, whole.ended) == (len(said), 0, True)
        assert all(part.data == said[part.offset : part.next] for part in parts)


@pytest.mark.slow
async def test_of_what_was_dropped_it_is_said_from_where_on_there_is_more(host: Host) -> None:
    """Far away the host keeps more than it was asked for, as long as a client has acknowledged less."""
    handle = await host.start(argv(3, 4 * MUCH), retain=1_000_000)
    await drained(handle)

    for stream, said in interleaved(3, 4 * MUCH).items():
        lost = await handle.read_range(stream.value, offset=5, length=10)
        found = await handle.read_range(stream, offset=lost.first_offset)

        assert (lost.data, lost.offset, lost.next, lost.is_lost) == (b"", 5, lost.first_offset, True)
        assert (lost.total, found.total) == (len(said), len(said))
        assert len(found.data) > 300_000
        assert digest(found.data) == digest(said[lost.first_offset :])


async def test_the_end_is_counted_from_behind(host: Host) -> None:
    handle = await host.start(["printf", "0123456789"], name=f"tail-{uuid.uuid4()}", keep=True)
    await drained(handle)

    last = await handle.read_range(offset=-3)
    more = await handle.read_range(offset=-30, length=2)

    assert last == OutputRange(OUT, 7, b"789", 10, 10, 0, ended=True)
    assert (more.offset, more.data) == (0, b"01")


async def test_a_running_process_is_read_while_it_goes_on(host: Host, gate: Gate) -> None:
    script = f"printf one; {gate.shell}; printf two"
    handle = await host.start(script, shell=True, name=f"on-{uuid.uuid4()}", keep=True)
    await gate.reached()
    assert handle.stdout is not None
    assert await handle.stdout.readexactly(3) == b"one"

    before = await handle.read_range("stdout", offset=1)
    gate.open()
    await handle.communicate()
    after = await handle.read_range("stdout", offset=before.next)

    assert before == OutputRange(OUT, 1, b"ne", 3, 3, 0, ended=False)
    assert after == OutputRange(OUT, 3, b"two", 6, 6, 0, ended=True)


async def test_a_terminal_has_one_stream(host: Host) -> None:
    handle = await host.start(["printf", "hi"], terminal=Size(), name=f"tty-{uuid.uuid4()}", keep=True)
    await drained(handle)

    assert (await handle.read_range()).stream is PTY
    assert (await handle.read_range("pty", offset=1)).data == b"i"
    with pytest.raises(BadRequest, match="all its output is in the stream pty"):
        await handle.read_range("stderr")


async def test_pipes_are_no_terminal(host: Host) -> None:
    handle = await host.start(["true"], name=f"pipes-{uuid.uuid4()}", keep=True)

    with pytest.raises(BadRequest, match="stdout and stderr"):
        await handle.read_range("pty")


@pytest.mark.parametrize("wrong", [{"length": -1}, {"stream": "stdin"}])
async def test_a_range_that_makes_no_sense_is_refused(host: Host, wrong: dict[str, object]) -> None:
    handle = await host.start(["true"])

    with pytest.raises(ValueError, match=r"length|stdin"):
        await handle.read_range(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [False, True])
async def test_what_a_result_left_out_can_be_fetched(host: Host, *, text: bool) -> None:
    """A model asks for the middle after it has seen both ends."""
    name = f"middle-{uuid.uuid4()}"
    script = "for n in 1 2 3 4 5 6 7 8 9; do printf äöü; done"

    done = await host.run(
        script, shell=True, capture=HeadTail(5, 5, "|"), text=text, name=name, keep=True, retain=1000
    )
    async with await host.attach(done.identifier) as handle:
        middle = await handle.read_range("stdout", offset=done.omitted.stdout_at, length=done.omitted.stdout)

    said = done.stdout.encode() if isinstance(done.stdout, str) else bytes(done.stdout or b"")
    head, tail = said.split(b"|")
    assert head + middle.data + tail == ("äöü" * 9).encode()
    assert (done.omitted.stdout_at, done.omitted.stderr_at) == (len(head), 0)
