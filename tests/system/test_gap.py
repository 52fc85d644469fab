"""Output that is no longer kept: a client is told how much is missing, and the rest is right."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.client import Client, Message, page_bytes, sha256
from tests.fakes.server import Program, eventually, is_running, open_files, program_at
from tests.fakes.trees import knowing

MIB = 1 << 20

BLOCK = 65_536

FLOOD = """
import sys
def say(first, last):
    for number in range(first, last):
        sys.stdout.buffer.write(number.to_bytes(8, "big") * 8192)
    sys.stdout.buffer.flush()
say(0, {before})
sys.stdin.readline()
say({before}, {count})
"""
"""A program that says some blocks, waits, and says the others."""


def said(first: int, last: int) -> Iterator[bytes]:
    """The blocks of that program."""
    return (number.to_bytes(8, "big") * 8192 for number in range(first, last))


def tail_hash(count: int, size: int) -> str:
    """The hash of the last bytes of so many blocks."""
    whole, part = divmod(size, BLOCK)
    digest = hashlib.sha256()
    if part:
        (block,) = said(count - whole - 1, count - whole)
        digest.update(block[-part:])
    for block in said(count - whole, count):
        digest.update(block)
    return digest.hexdigest()


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


async def read_all(talking: Client, *, after: int = 0) -> tuple[list[Message], Message | None]:
    """Read until the end; gives all chunks, and the gap that was told, which must be told first."""
    chunks: list[Message] = []
    gap: Message | None = None
    page: Message = {"closed": False, "chunks": [None]}
    while page["chunks"] or not page["closed"]:
        page = await talking.read("p", afterSeq=after, waitMs=10_000, maxBytes=16 * MIB)
        if "gap" in page:
            assert not chunks, "nothing is lost while it is read"
            gap = page["gap"]
        chunks += page["chunks"]
        if page["chunks"]:
            after = page["chunks"][-1]["seq"]
    return chunks, gap


def size(chunks: list[Message]) -> int:
    return sum(len(base64.b64decode(chunk["chunk"])) for chunk in chunks)


async def flood(
    served: tuple[Program, str], folder: Path, *, before: int, count: int
) -> tuple[str, int, int]:
    """Let a program say much while nobody listens, as the server knows by then.

    Gives the session, and what its client has heard: how many bytes, and the last number.
    """
    server, url = served
    door = folder / "door"
    os.mkfifo(door)
    first = await Client.open(url)
    program = FLOOD.format(before=before, count=count).replace("sys.stdin.readline()", f"open({str(door)!r})")
    await first.start("p", "python3", "-I", "-S", "-c", program)
    tale = first.tale("p")
    await first.until(lambda: len(tale.data()) == before * BLOCK)
    (listed,) = (await first.call("process/list"))["processes"]
    files = open_files(server.pid)
    await first.abort()
    await eventually(lambda: open_files(server.pid) < files)
    with door.open("wb"):
        pass
    await eventually(lambda: not is_running(listed["pid"]), within=15)
    return first.session, len(tale.data()), len(tale.events)


@pytest.mark.slow
@pytest.mark.stress
async def test_the_tail_of_a_flood_that_nobody_heard_is_kept_and_the_rest_is_told_as_missing(
    served: tuple[Program, str], tmp_path: Path
) -> None:
    """A client that was away must be able to trust what it finds, and to know what it does not."""
    count, before = 1600, 4
    session, had, last = await flood(served, tmp_path, before=before, count=count)

    async with knowing(served[1], resume=session) as back:
        everything = await back.read("p", maxBytes=1)
        beyond = await back.read("p", afterSeq=last + 1, maxBytes=1)
        chunks, gap = await read_all(back, after=last)
        after_all = await back.read("p", afterSeq=chunks[-1]["seq"])

    tail = size(chunks)
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(base64.b64decode(chunk["chunk"]))
    first = chunks[0]["seq"]
    assert gap is not None
    assert gap["fromSeq"] == last + 1
    assert gap["toSeq"] == first - 1
    assert gap["bytes"] + had + tail == count * BLOCK
    assert 63 * MIB < tail <= 64 * MIB
    assert digest.hexdigest() == tail_hash(count, tail)
    assert [chunk["seq"] for chunk in chunks] == list(range(first, first + len(chunks)))
    assert everything["gap"] == {"fromSeq": 1, "toSeq": first - 1, "bytes": gap["bytes"] + had}
    assert beyond["gap"]["fromSeq"] == last + 2
    assert 0 < gap["bytes"] - beyond["gap"]["bytes"] <= BLOCK
    assert "gap" not in after_all
    assert after_all["closed"]


@pytest.mark.slow
async def test_a_flood_that_fits_has_no_gap(served: tuple[Program, str], tmp_path: Path) -> None:
    """Nothing is said of what is not missing."""
    session, had, last = await flood(served, tmp_path, before=2, count=400)

    async with knowing(served[1], resume=session) as back:
        chunks, gap = await read_all(back, after=last)

    data = b"".join(base64.b64decode(chunk["chunk"]) for chunk in chunks)
    assert gap is None
    assert chunks[0]["seq"] == last + 1
    assert len(data) + had == 400 * BLOCK
    assert sha256(data) == tail_hash(400, len(data))


@pytest.mark.slow
@pytest.mark.parametrize("holdfast", [False, True], ids=["plain", "knowing"])
async def test_an_attached_client_is_told_exactly_what_is_no_longer_kept(
    served: tuple[Program, str],
    holdfast: bool,  # noqa: FBT001
) -> None:
    """It has heard every chunk, so every number can be checked."""
    count = 64
    talking = await Client.connect(served[1])
    await talking.call("initialize", {"clientName": "test", **({"holdfast": 1} if holdfast else {})})
    talking.notify("initialized")
    program = FLOOD.format(before=0, count=count)
    await talking.start("p", "python3", "-I", "-S", "-c", program, pipeStdin=True)
    await talking.write("p", b"\n", "w")
    tale = await talking.closed("p")
    sizes = {
        params["seq"]: len(base64.b64decode(params["chunk"]))
        for kind, params in tale.events
        if kind == "output"
    }

    pages = {after: await talking.read("p", afterSeq=after) for after in range(len(sizes) + 1)}
    await talking.close()

    kept = pages[0]["chunks"]
    last = kept[0]["seq"] - 1
    assert sum(sizes.values()) == count * BLOCK
    assert MIB - BLOCK < size(kept) <= MIB
    assert sha256(page_bytes(pages[0])) == tail_hash(count, size(kept))
    assert last > 1
    for after, page in pages.items():
        missing = sum(length for seq, length in sizes.items() if after < seq <= last)
        expected = {"fromSeq": after + 1, "toSeq": last, "bytes": missing} if after < last else None
        assert page.get("gap") == expected
        assert page["chunks"] == [chunk for chunk in kept if chunk["seq"] > after]


@pytest.mark.slow
async def test_a_gap_grows_while_the_process_goes_on(served: tuple[Program, str]) -> None:
    """Two reads of one process are told of two gaps, each right at its time."""
    async with knowing(served[1]) as talking:
        program = FLOOD.format(before=40, count=100)
        await talking.start("p", "python3", "-I", "-S", "-c", program, pipeStdin=True)
        tale = talking.tale("p")
        await talking.until(lambda: len(tale.data()) == 40 * BLOCK)
        first = await talking.read("p")
        await talking.write("p", b"\n", "w")
        await talking.closed("p")
        second = await talking.read("p", afterSeq=first["chunks"][-1]["seq"])
        whole = await talking.read("p")

    middle = page_bytes(first)
    assert first["gap"]["bytes"] + len(middle) == 40 * BLOCK
    assert sha256(middle) == tail_hash(40, len(middle))
    assert second["gap"]["fromSeq"] == first["chunks"][-1]["seq"] + 1
    assert second["gap"]["bytes"] + len(page_bytes(second)) == 60 * BLOCK
    assert whole["gap"]["bytes"] == 40 * BLOCK + second["gap"]["bytes"]
