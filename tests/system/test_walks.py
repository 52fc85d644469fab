"""The walks of ARCHITECTURE.md, followed with a real server: what is called, and in which order."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import holdfast
from tests.fakes.client import Client
from tests.fakes.server import inside

SOURCE = f"{Path(holdfast.__file__).resolve().parent}/"
PAGE = (Path(__file__).resolve().parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \|", re.MULTILINE)

Hop = tuple[str, str]


def walk(title: str) -> list[Hop]:
    """The rows of the table below a heading."""
    section = re.search(rf"^### {title}$(.*?)^##", PAGE, re.DOTALL | re.MULTILINE)
    assert section is not None
    return ROW.findall(section[1])


class Steps:
    """What was called of our own, in order, and from where."""

    def __init__(self) -> None:
        self.calls: list[Hop] = []
        self.crossings: list[tuple[Hop, Hop]] = []
        self.depths: dict[Hop, int] = {}

    def note(self, frame: FrameType, event: str, arg: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(SOURCE):
            return
        hop, above = name(frame), list(ours(frame.f_back))
        self.calls.append(hop)
        self.depths.setdefault(hop, 1 + len(above))
        if above:
            self.crossings.append((above[0], hop))

    @property
    def functions(self) -> set[Hop]:
        """All of them, but for those that only a busy host calls."""
        return {hop for hop in self.calls if "<" not in hop[1] and hop[0] != "stalls.py"}

    def between(self, one: str, other: str) -> int:
        """How often one of two modules has called the other."""
        return sum({caller[0], called[0]} == {one, other} for caller, called in self.crossings)


def name(frame: FrameType) -> Hop:
    return frame.f_code.co_filename.removeprefix(SOURCE), frame.f_code.co_qualname


def ours(frame: FrameType | None) -> Iterator[Hop]:
    while frame is not None:
        if frame.f_code.co_filename.startswith(SOURCE):
            yield name(frame)
        frame = frame.f_back


@contextmanager
def followed() -> Iterator[Steps]:
    steps, before = Steps(), sys.getprofile()
    sys.setprofile(steps.note)
    try:
        yield steps
    finally:
        sys.setprofile(before)


async def start(talking: Client) -> Steps:
    with followed() as steps:
        await talking.start("p", "cat", pipeStdin=True)
    return steps


async def byte(talking: Client) -> Steps:
    """Somebody says a word, and hears it."""
    await talking.start("p", "cat", pipeStdin=True)
    with followed() as steps:
        await talking.write("p", b"hi", "w")
        await talking.until(lambda: talking.tale("p").data() == b"hi")
    return steps


async def leave(talking: Client) -> Steps:
    await talking.start("p", "sh", "-c", "read _; exit 3", pipeStdin=True)
    with followed() as steps:
        await talking.write("p", b"\n", "w")
        await talking.closed("p")
        await asyncio.sleep(0)
    return steps


async def terminate(talking: Client) -> Steps:
    await talking.start("p", "sleep", "1000")
    with followed() as steps:
        await talking.call("process/terminate", {"processId": "p"})
    return steps


WALKS: dict[str, Any] = {
    "A start": start,
    "A byte in": byte,
    "A byte out": byte,
    "An exit": leave,
    "A terminate": terminate,
}


async def follow(title: str) -> Steps:
    async with inside() as server:
        talking = await Client.connect(server.url)
        await talking.initialize()
        # What is done once, by the first process, is not on the way of the others.
        await talking.start("first", "true")
        await talking.closed("first")
        await talking.call("environment/status")
        steps: Steps = await WALKS[title](talking)
        await talking.close()
        return steps


@pytest.mark.parametrize("title", WALKS)
async def test_a_walk_is_as_the_page_shows_it(title: str) -> None:
    """A map that is wrong is worse than none."""
    rows = walk(title)
    steps = await follow(title)

    calls = iter(steps.calls)
    missed = [row for row in rows if not any(call == row for call in calls)]
    assert len(rows) >= 8
    assert missed == []


def test_every_walk_of_the_page_is_followed() -> None:
    assert re.findall(r"^### (.*)$", PAGE, re.MULTILINE) == list(WALKS)


async def test_no_walk_has_become_longer() -> None:
    """The figures are those of the day on which this was written; the first version had the ones behind them.

    A step more is an invitation to look for one that is no longer needed.
    """
    begun, through = await follow("A start"), await follow("A byte in")
    # Where the system is busy, an exit may be told in two pieces; the way is the shortest that is seen.
    ends = [await follow("An exit") for _ in range(3)]

    assert len(begun.functions) <= 121  # 123
    assert through.depths["engine/stdin.py", "Stdin.try_write"] <= 12  # 13
    assert min(left.between("engine/process.py", "engine/tree.py") for left in ends) <= 4  # 6
