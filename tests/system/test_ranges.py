"""The server dies: output is still found by its place, with the next one, and nothing is shifted."""

from __future__ import annotations

import random
from base64 import b64decode
from collections.abc import Iterator

import pytest

import holdfast
from holdfast.model import Stream
from tests.contract.test_ranges import INTERLEAVED, MUCH, argv, drained, interleaved
from tests.fakes.client import Client, Message, Refusal
from tests.fakes.mortal import kill_server, mortal_at
from tests.fakes.server import Program
from tests.fakes.trees import knowing

pytestmark = pytest.mark.slow


@pytest.fixture
def served() -> Iterator[tuple[Program, str]]:
    with mortal_at() as served:
        yield served


async def ranges(talking: Client, name: str, stream: str) -> tuple[bytes, Message]:
    """All that is kept of a stream, in ranges of many lengths, and the last answer."""
    chance = random.Random(name)  # noqa: S311  (no secret)
    params: Message = {"processId": name, "stream": stream, "length": 0}
    found = await talking.call("process/readRange", params)
    at, data = found["firstOffset"], b""
    while at < found["total"]:
        length = chance.choice([1, 100, 60_000, 1 << 40])
        found = await talking.call("process/readRange", {**params, "offset": at, "length": length})
        piece = b64decode(found["data"])
        assert found["next"] == at + len(piece)
        assert piece
        data, at = data + piece, found["next"]
    return data, found


async def test_places_are_the_same_with_the_next_server(served: tuple[Program, str]) -> None:
    """Also those of each stream for itself, of which most was dropped by a server that is dead."""
    program, url = served
    async with knowing(url) as talking:
        for name, retain in (("whole", 2 * MUCH), ("dropped", 1_000_000)):
            await talking.start(name, *argv(5, MUCH), retainBytes=retain)
            await talking.closed(name)
        before = {
            (name, stream): await ranges(talking, name, stream)
            for name in ("whole", "dropped")
            for stream in ("stdout", "stderr")
        }
        session = talking.session
    kill_server(program)
    async with knowing(url, resume=session) as again:
        after = {key: await ranges(again, *key) for key in before}

    assert after == before
    for stream, said in interleaved(5, MUCH).items():
        assert before["whole", stream.value][0] == said
        kept, last = before["dropped", stream.value]
        assert last["firstOffset"] > 0
        assert said[last["firstOffset"] :] == kept
        assert (last["total"], last["ended"]) == (len(said), True)


async def test_a_process_that_goes_on_is_counted_on(served: tuple[Program, str]) -> None:
    program, url = served
    script = f"import sys; sys.stdin.readline()\n{INTERLEAVED}\nsys.stdin.readline()\n{INTERLEAVED}"
    command = [*argv(6, MUCH)[:4], script, "6", str(MUCH)]
    async with knowing(url) as talking:
        await talking.start("p", *command, pipeStdin=True, retainBytes=700_000)
        await talking.write("p", b"\n", "w1")
        half = 0
        while half < MUCH:
            found = [await talking.call("process/readRange", {"processId": "p", "stream": one, "length": 0})
                     for one in ("stdout", "stderr")]  # fmt: skip
            half = sum(one["total"] for one in found)
        session = talking.session
    kill_server(program)
    async with knowing(url, resume=session) as again:
        await again.write("p", b"\n", "w2")
        await again.closed("p")

        for stream, said in interleaved(6, MUCH).items():
            kept, last = await ranges(again, "p", stream.value)
            assert last["total"] == 2 * len(said)
            assert kept == (said + said)[last["firstOffset"] :]


async def test_a_terminal_is_one_stream(served: tuple[Program, str]) -> None:
    program, url = served
    async with knowing(url) as talking:
        await talking.start("t", "seq", "1", "300000", tty=True, retainBytes=100_000)
        await talking.closed("t")
        before = await ranges(talking, "t", "pty")
        with pytest.raises(Refusal, match="pty"):
            await ranges(talking, "t", "stdout")
        session = talking.session
    kill_server(program)
    async with knowing(url, resume=session) as again:
        after = await ranges(again, "t", "pty")

    said = b"".join(b"%d\r\n" % number for number in range(1, 300_001))
    assert after == before
    assert after[1]["firstOffset"] > 0
    assert said[after[1]["firstOffset"] :] == after[0]


async def test_whoever_has_archived_it_still_knows_the_places(served: tuple[Program, str]) -> None:
    """Thousands of ended processes are put away as plain values."""
    _, url = served
    async with knowing(url) as talking:
        for number in range(40):
            await talking.start(f"p{number}", "sh", "-c", f"printf out{number}; printf err >&2")
        for number in range(40):
            await talking.closed(f"p{number}")

        assert [(await ranges(talking, f"p{n}", "stdout"))[0] for n in range(40)] == [
            b"out%d" % n for n in range(40)
        ]


async def test_the_library_reads_on_where_it_was(served: tuple[Program, str]) -> None:
    program, url = served
    async with holdfast.connect(url) as host:
        handle = await host.start(argv(8, 500_000), name="kept", keep=True)
        await drained(handle)
        said = interleaved(8, 500_000)[Stream.STDOUT]
        first = await handle.read_range("stdout", length=1000)

        kill_server(program)
        rest = await (await host.attach("kept")).read_range("stdout", offset=first.next)

    assert first.data + rest.data == said
