"""Which request about files waits for which."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.dialects.exec.turns import Turns


class Line:
    """Requests by name, which run until they are ended."""

    def __init__(self, most: int = 9) -> None:
        self.turns = Turns(most)
        self.running: list[str] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._gates: dict[str, asyncio.Event] = {}

    async def ask(self, name: str, *keys: str, changes: bool = False) -> None:
        self._gates[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._run(name, keys, changes=changes))
        await settle()

    async def _run(self, name: str, keys: tuple[str, ...], *, changes: bool) -> None:
        async with self.turns.take(*keys, changes=changes):
            self.running.append(name)
            await self._gates[name].wait()

    async def end(self, name: str) -> None:
        self._gates[name].set()
        await self._tasks[name]
        self.running.remove(name)
        await settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (("/a", False), ("/a", False), False),
        (("/a", True), ("/a", False), True),
        (("/a", False), ("/a", True), True),
        (("/a", True), ("/a/b", False), True),
        (("/a/b", True), ("/a", False), True),
        (("/", True), ("/a", False), True),
        (("/a", True), ("/ab", True), False),
        (("/a/b", True), ("/a/c", True), False),
        (("\0h\0", True), ("/h", True), False),
    ],
)
async def test_those_about_the_same_files_keep_their_order_if_one_changes_them(
    first: tuple[str, bool], second: tuple[str, bool], *, waits: bool
) -> None:
    line = Line()
    await line.ask("first", first[0], changes=first[1])
    await line.ask("second", second[0], changes=second[1])

    assert line.running == (["first"] if waits else ["first", "second"])
    await line.end("first")
    assert line.running == ["second"]
    await line.end("second")


async def test_the_order_is_that_of_the_requests() -> None:
    line = Line()
    for name, changes in (("w1", True), ("r1", False), ("r2", False), ("w2", True), ("r3", False)):
        await line.ask(name, "/a", changes=changes)

    order = [list(line.running)]
    for name in ("w1", "r1", "r2", "w2"):
        await line.end(name)
        order.append(list(line.running))

    assert order == [["w1"], ["r1", "r2"], ["r2"], ["w2"], ["r3"]]
    await line.end("r3")


async def test_a_request_about_two_files_waits_for_both() -> None:
    line = Line()
    await line.ask("a", "/a", changes=True)
    await line.ask("b", "/b", changes=True)
    await line.ask("both", "/a", "/b")

    await line.end("a")
    assert line.running == ["b"]
    await line.end("b")
    assert line.running == ["both"]
    await line.end("both")


async def test_so_many_run_at_once() -> None:
    line = Line(most=2)
    for name in "abc":
        await line.ask(name, f"/{name}")

    assert line.running == ["a", "b"]
    await line.end("a")
    assert line.running == ["b", "c"]
    for name in "bc":
        await line.end(name)


async def test_one_that_gives_up_lets_the_next_one_pass() -> None:
    line = Line(most=1)
    await line.ask("a", "/a", changes=True)
    await line.ask("b", "/a", changes=True)
    await line.ask("c", "/c")
    await line.ask("d", "/a")
    await line.cancel("b")
    await line.cancel("c")

    assert line.running == ["a"]
    await line.end("a")
    assert line.running == ["d"]
    await line.end("d")


async def test_a_turn_ends_once() -> None:
    turns = Turns(1)
    turn = turns.join("/a", changes=True)
    await turn.reached()

    turn.end()
    turn.end()

    async with asyncio.timeout(5), turns.take("/a"):
        assert turns.places.locked()
    assert not turns.places.locked()
