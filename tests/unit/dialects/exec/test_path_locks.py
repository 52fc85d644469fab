"""Locks on paths: which request about files waits for which."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from holdfast.dialects.exec.path_locks import LockStage, PathLock, PathLocks


class Line:
    """Requests by name, which run until they are ended."""

    def __init__(self, most: int = 9) -> None:
        self.locks = PathLocks(most)
        self.running: list[str] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._gates: dict[str, asyncio.Event] = {}

    async def ask(self, name: str, *keys: str, changes: bool = False) -> None:
        self._gates[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._run(name, keys, changes=changes))
        await settle()

    async def _run(self, name: str, keys: tuple[str, ...], *, changes: bool) -> None:
        async with self.locks.hold(*keys, changes=changes):
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


async def test_a_lock_ends_once() -> None:
    locks = PathLocks(1)
    lock = locks.join("/a", changes=True)
    await lock.acquire()

    lock.release()
    lock.release()

    async with asyncio.timeout(5), locks.hold("/a"):
        assert locks.running == 1
    assert locks.running == 0


# Many of them.

PATHS = ["/", "/a", "/a/b", "/a/b/c", "/a/bb", "/d", "/d/e", "\0h\0", "\0h/i\0"]


@dataclass(eq=False)
class Asked:
    """A request, as a model knows it that compares each with all before it."""

    lock: PathLock
    keys: tuple[str, ...]
    changes: bool

    def excludes(self, other: Asked) -> bool:
        return (self.changes or other.changes) and any(
            mine == its or is_below(mine, its) or is_below(its, mine)
            for mine in self.keys
            for its in other.keys
        )


def is_below(path: str, top: str) -> bool:
    return path[:1] == top[:1] == "/" and path.startswith(top.rstrip("/") + "/")


def ask(locks: PathLocks, chance: random.Random) -> Asked:
    keys = tuple(chance.choices(PATHS, k=chance.choice([1, 1, 1, 2])))
    changes = chance.random() < 0.5
    return Asked(locks.join(*keys, changes=changes), keys, changes)


@pytest.mark.parametrize("seed", range(50))
def test_all_run_that_exclude_nobody_before_them(seed: int) -> None:
    """Whatever is asked for, and in whatever order it ends."""
    chance = random.Random(seed)  # noqa: S311  (it need not be secret)
    locks, asked = PathLocks(10**6), list[Asked]()
    for _ in range(300):
        if chance.random() < 0.55:
            asked.append(ask(locks, chance))
        elif running := [each for each in asked if each.lock.stage is LockStage.RUNNING]:
            over = chance.choice(running)
            over.lock.release()
            asked.remove(over)

        expected = [
            each for at, each in enumerate(asked) if not any(other.excludes(each) for other in asked[:at])
        ]
        assert [each for each in asked if each.lock.stage is LockStage.RUNNING] == expected
        assert locks.running == len(expected)


@pytest.mark.parametrize("seed", range(50))
def test_those_that_give_up_let_nobody_pass_who_has_to_wait(seed: int) -> None:
    """And at the end nothing is left of anybody."""
    chance = random.Random(seed)  # noqa: S311  (it need not be secret)
    locks, asked = PathLocks(3), list[Asked]()
    for step in range(300):
        if step < 200 and chance.random() < 0.6:
            asked.append(ask(locks, chance))
        elif asked:
            over = chance.choice(asked)
            over.lock.release()
            asked.remove(over)

        running = [each for each in asked if each.lock.stage is LockStage.RUNNING]
        assert len(running) == locks.running <= 3
        for each in running:
            before = asked[: asked.index(each)]
            assert not any(other.excludes(each) for other in before)
    while asked:
        next(each for each in asked if each.lock.stage is LockStage.RUNNING).lock.release()
        asked = [each for each in asked if each.lock.stage is not LockStage.OVER]

    assert (locks.running, locks._root.children) == (0, {})


def test_what_is_very_deep_waits_for_its_neighbours() -> None:
    """So that no path costs more than others."""
    locks = PathLocks(9)
    deep = "/x" * 100
    first, same, beside, above = (
        locks.join(path, changes=True) for path in (deep, f"{deep}/y", f"{deep}/z", "/x/y")
    )

    assert [each.stage for each in (first, same, beside, above)] == [
        LockStage.RUNNING,
        LockStage.WAITING,
        LockStage.WAITING,
        LockStage.RUNNING,
    ]


@pytest.mark.parametrize(
    "keys",
    [
        lambda number: ("/a/b/c", True),
        lambda number: (f"/a/{number}", True),
        lambda number: ("/a", True) if number % 2 else (f"/a/{number}", False),
        lambda number: ("/a", False) if number % 2 else (f"/a/{number}", True),
        lambda number: (f"/{'x/' * (number % 60)}y", True),
        lambda number: (f"/{'x/' * (number % 60)}", bool(number % 3)),
        lambda number: ("/a/b", number == 0) if number < 500 else (f"/a/{number}", True),
    ],
    ids=range(7),
)
def test_what_a_lock_waits_for_does_not_grow_with_their_number(
    keys: Callable[[int], tuple[str, bool]],
) -> None:
    """A client may have thousands of requests under way: each must cost as much as the first."""
    locks = PathLocks(16)
    asked = []
    for number in range(2000):
        path, changes = keys(number)
        asked.append(locks.join(path, changes=changes))

    assert max(lock.before for lock in asked) <= 64
    assert max(len(lock.groups) for lock in asked) <= 66
