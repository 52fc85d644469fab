"""Talking to what runs: input, size, end; and which of several mistakes is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.dialects.app.explain import explain
from holdfast.dialects.app.order import COMMAND, PROCESS, Family
from holdfast.errors import HoldfastError
from holdfast.model import Leftovers, Size, WriteStatus
from tests.fakes.app_talk import AppTalk, Pipes, ready
from tests.fakes.dialects import FakeProcess

METHODS = {
    PROCESS: ("process/writeStdin", "process/resizePty", "process/kill"),
    COMMAND: ("command/exec/write", "command/exec/resize", "command/exec/terminate"),
}
FIELD = {PROCESS: "processHandle", COMMAND: "processId"}
BOTH = pytest.mark.parametrize("family", [PROCESS, COMMAND], ids=["process", "command"])
CLOSED = (-32600, "stdin is already closed")
SIZE = {"rows": 5, "cols": 7}


class Scene:
    """A process that runs, of one family."""

    def __init__(self, talk: AppTalk, family: Family, process: FakeProcess) -> None:
        self.talk = talk
        self.family = family
        self.process = process
        self.write_method, self.resize_method, self.kill_method = METHODS[family]

    async def write(self, name: str = "p", **params: Any) -> Any:
        return await self._call(self.write_method, name, **params)

    async def resize(self, name: str = "p", size: Any = SIZE) -> Any:
        return await self._call(self.resize_method, name, size=size)

    async def kill(self, name: str = "p") -> Any:
        return await self._call(self.kill_method, name)

    async def _call(self, method: str, name: str, **params: Any) -> Any:
        """The result, or code and text of the refusal."""
        try:
            return await self.talk.call(method, {FIELD[self.family]: name, **params})
        except HoldfastError as error:
            explained = explain(error, ())
            return explained.code, explained.message

    @property
    def calls(self) -> list[tuple[object, ...]]:
        """What was asked of the process since it runs."""
        return self.process.calls[1:]


async def running(family: Family, process: FakeProcess | None = None, **options: Any) -> Scene:
    talk = await ready()
    process = process or FakeProcess()
    talk.run(process, command=family is COMMAND, **{"stdin": True, **options})
    return Scene(talk, family, process)


# Input.


@BOTH
async def test_bytes_are_offered_to_stdin(family: Family) -> None:
    """Without an identifier: what is sent twice is written twice."""
    scene = await running(family)

    assert await scene.write(deltaBase64="aGk=") == {}
    assert await scene.write(deltaBase64="aGk=") == {}

    assert scene.calls == [("try_write", b"hi", None)] * 2


@BOTH
async def test_stdin_is_closed_after_the_bytes_that_came_with_it(family: Family) -> None:
    scene = await running(family)

    assert await scene.write(deltaBase64="aGk=", closeStdin=True) == {}

    assert scene.calls == [("try_write", b"hi", None), ("close_stdin",)]


@BOTH
async def test_once_closed_only_bytes_are_refused(family: Family) -> None:
    """To close twice, or to write nothing, harms nobody."""
    scene = await running(family)

    assert await scene.write(closeStdin=True) == {}
    answers = [
        await scene.write(closeStdin=True),
        await scene.write(deltaBase64=""),
        await scene.write(deltaBase64="", closeStdin=True),
        await scene.write(deltaBase64="YQ=="),
        await scene.write(deltaBase64="YQ==", closeStdin=True),
    ]

    assert answers == [{}, {}, {}, CLOSED, CLOSED]
    assert all(call == ("close_stdin",) for call in scene.calls)


@BOTH
async def test_an_empty_write_counts_as_one_and_writes_nothing(family: Family) -> None:
    scene = await running(family)

    assert await scene.write(deltaBase64="") == {}
    assert await scene.write(deltaBase64="", closeStdin=True) == {}

    assert scene.calls == [("close_stdin",)]


class Slow(FakeProcess):
    """Takes bytes when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.write_status = None
        self.outcome: asyncio.Future[WriteStatus] = asyncio.get_running_loop().create_future()

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        self.calls.append(("write", data, write_id))
        return await self.outcome


@BOTH
async def test_a_write_that_must_wait_closes_stdin_after_it_was_taken(family: Family) -> None:
    """And from the request on nothing more is taken."""
    process = Slow()
    scene = await running(family, process)

    waiting = asyncio.ensure_future(scene.write(deltaBase64="YQ==", closeStdin=True))
    await asyncio.sleep(0)
    refused = await scene.write(deltaBase64="Yg==")
    before = list(scene.calls)
    process.outcome.set_result(WriteStatus.ACCEPTED)

    assert await waiting == {}
    assert refused == CLOSED
    assert before == [("try_write", b"a", None), ("write", b"a", None)]
    assert scene.calls == [*before, ("close_stdin",)]


@pytest.mark.parametrize("slow", [False, True])
@BOTH
async def test_a_child_that_closed_its_stdin_is_told_of(family: Family, *, slow: bool) -> None:
    """Bytes that nobody will read are not answered as if somebody would."""
    process: FakeProcess
    if slow:
        process = Slow()
        process.outcome.set_result(WriteStatus.STDIN_CLOSED)
    else:
        process = FakeProcess()
        process.write_status = WriteStatus.STDIN_CLOSED
    scene = await running(family, process)

    assert await scene.write(deltaBase64="YQ==") == CLOSED


@BOTH
async def test_the_first_mistake_of_a_write_is_told(family: Family) -> None:
    """All mistakes at once, and then one less each time."""
    scene = await running(family, stdin=False)
    needs = (-32602, family.nothing_to_write())

    told = [
        await scene.write("x"),
        await scene.write("x", deltaBase64=None, closeStdin=False),
        await scene.write("x", deltaBase64="!", closeStdin=True),
        await scene.write("x", deltaBase64="YQ=="),
        await scene.write("p", deltaBase64="YQ=="),
        await scene.write("p", deltaBase64=""),
        await scene.write("p", closeStdin=True),
    ]

    assert told == [
        needs,
        needs,
        (-32602, "invalid deltaBase64: Invalid symbol 33, offset 0."),
        (-32600, family.unknown("x")),
        *[(-32600, family.no_stdin())] * 3,
    ]
    assert scene.calls == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", "Invalid input length: 1"),
        ("ab", "Invalid padding"),
        ("YQ=", "Invalid padding"),
        ("abcd=", "Invalid symbol 61, offset 4."),
        ("YR==", "Invalid last symbol 82, offset 1."),
        ("====", "Invalid symbol 61, offset 0."),
        ("Y===", "Invalid symbol 61, offset 1."),
        ("YQ==YQ==", "Invalid symbol 61, offset 2."),
        ("-_-_", "Invalid symbol 45, offset 0."),
        ("é", "Invalid symbol 195, offset 0."),
        ("YQ==\n", "Invalid symbol 10, offset 4."),
    ],
)
async def test_what_is_no_base64_is_refused_and_closes_nothing(text: str, words: str) -> None:
    scene = await running(PROCESS)

    refused = await scene.write(deltaBase64=text, closeStdin=True)

    assert refused == (-32602, f"invalid deltaBase64: {words}")
    assert await scene.write(deltaBase64="YQ==") == {}


# Size.


@BOTH
async def test_a_terminal_is_resized(family: Family) -> None:
    scene = await running(family)

    assert await scene.resize() == {}

    assert scene.calls == [("resize", Size(5, 7))]


@BOTH
async def test_the_first_mistake_of_a_resize_is_told(family: Family) -> None:
    scene = await running(family, Pipes())

    told = [
        await scene.resize("x", {"rows": 0, "cols": 7}),
        await scene.resize("x", {"rows": 5, "cols": 0}),
        await scene.resize("x"),
        await scene.resize("p"),
    ]

    assert told == [
        *[(-32602, family.no_size())] * 2,
        (-32600, family.unknown("x")),
        (-32600, "failed to resize PTY: process is not attached to a PTY"),
    ]


# The end.


@BOTH
async def test_a_kill_takes_the_whole_tree_and_may_be_repeated(family: Family) -> None:
    scene = await running(family)

    assert await scene.kill() == {}
    assert await scene.kill() == {}

    assert scene.calls == [("end",)] * 2


@BOTH
async def test_from_the_exit_on_nothing_reaches_the_process(family: Family) -> None:
    """Also while the rest of its output is awaited; then its name is unknown."""
    scene = await running(family)
    scene.process.exit_with(0)

    draining = [await scene.write(deltaBase64="YQ=="), await scene.resize(), await scene.kill()]
    scene.process.close()
    over = [await scene.write(deltaBase64="YQ=="), await scene.resize(), await scene.kill()]

    assert draining == [(-32600, family.over("p"))] * 3
    assert over == [(-32600, family.unknown("p"))] * 3
    assert scene.calls == [("forget", Leftovers.END_GROUP)]


@BOTH
async def test_a_name_whose_process_is_still_starting_is_unknown(family: Family) -> None:
    """Requests about it wait for the start; one that comes here found that it failed."""
    scene = await running(family)
    scene.talk.talk.scope(family).reserve("starting")

    assert await scene.kill("starting") == (-32600, family.unknown("starting"))


async def test_the_names_of_the_two_families_are_apart() -> None:
    scene = await running(PROCESS)
    other = Scene(scene.talk, COMMAND, scene.process)

    assert await other.kill() == (-32600, 'no active command/exec for process id "p"')
    assert scene.calls == []
