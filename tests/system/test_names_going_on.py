"""The server dies: names, restarts, and what is in no list go on with the next one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast
from tests.fakes.mortal import kill_server, mortal_at
from tests.fakes.server import Program

pytestmark = pytest.mark.slow


@pytest.fixture
def served() -> Iterator[tuple[Program, str]]:
    with mortal_at() as served:
        yield served


async def test_a_name_means_the_process_that_runs_and_not_one_of_before(served: tuple[Program, str]) -> None:
    program, url = served
    async with holdfast.connect(url) as host:
        first = await host.start(["sh", "-c", "exit 3"], name="web", keep=True)
        await first.wait()
        second = await host.start(["sleep", "1000"], name="web", keep=True)
        third = await host.start(["sh", "-c", "exit 4"], name="other", keep=True)
        await third.wait()

        kill_server(program)

        assert (await host.attach("web")).identifier == second.identifier
        assert (await (await host.attach(first.identifier)).wait()).exit_code == 3
        assert (await (await host.attach("other")).wait()).exit_code == 4
        with pytest.raises(holdfast.NameTaken):
            await host.start(["true"], name="web", keep=True)
        again = await host.start(["sh", "-c", "exit 5"], name="other", keep=True)
        assert (await (await host.attach("other")).wait()).exit_code == 5
        assert again.identifier != third.identifier


async def test_a_process_is_restarted_that_another_server_has_started(served: tuple[Program, str]) -> None:
    program, url = served
    async with holdfast.connect(url) as host:
        argv = ["sh", "-c", 'echo "$WORD"; exec sleep 1000']
        await host.start(argv, name="web", keep=True, env={"WORD": "said", "PATH": "/usr/bin:/bin"})

        kill_server(program)
        second = await host.restart("web", grace=0)

        async for chunk in second.chunks():
            assert chunk.data == b"said\n"
            break
        kill_server(program)
        third = await host.restart("web", grace=0)
        assert (await host.attach("web")).identifier == third.identifier


async def test_what_removes_itself_does_so_on_the_next_server(served: tuple[Program, str]) -> None:
    program, url = served
    async with holdfast.connect(url) as host:
        ended = await host.start(["sh", "-c", "exit 3"], name="ended", keep=True, auto_remove=True)
        await ended.wait()
        runs = await host.start(["cat"], name="runs", keep=True, auto_remove=True, stdin=holdfast.PIPE)
        assert [each.name for each in await host.processes()] == ["runs"]

        kill_server(program)

        assert [each.name for each in await host.processes()] == ["runs"]
        assert (await (await host.attach("ended")).wait()).exit_code == 3
        await runs.communicate()
        assert await host.processes() == []
