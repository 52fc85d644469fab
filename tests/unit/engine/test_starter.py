"""Starts in threads: a slow one holds up nobody, a cancelled one leaves nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.engine import children
from holdfast.engine import starter as starter_module
from holdfast.engine.starter import Starter
from holdfast.engine.starter import _discard as discard
from holdfast.errors import Fault, SpawnFailed, StartCancelled
from holdfast.host.environ import Environment
from holdfast.host.spawn import Spawner
from holdfast.model import Size, Spec
from tests.fakes.gate import SlowProgram
from tests.fakes.process import (
    PATIENCE,
    TERMINAL,
    command,
    eventually,
    has_children,
    nothing_left,
    open_files,
    python,
)

Spawn = Callable[[Spec], children.Child]


@asynccontextmanager
async def starting(spawn: Spawn | None = None) -> AsyncIterator[Starter]:
    """A starter; afterwards there is no child, no thread and no descriptor of it."""
    before = open_files()
    starter = Starter(spawn or Spawner(Environment({})).start, asyncio.get_running_loop())
    try:
        yield starter
    finally:
        starter.close()
        await nothing_left(before)


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[SlowProgram]:
    program = SlowProgram("/bin/sleep", tmp_path)
    yield program
    program.close()


def begin(starter: Starter, spec: Spec) -> asyncio.Task[children.Child]:
    return asyncio.get_running_loop().create_task(starter.start(spec))


async def end(child: children.Child) -> None:
    """Do away with a child as the starter does with one that nobody waits for any more."""
    await asyncio.to_thread(discard, child)


async def test_a_start_gives_a_child() -> None:
    async with starting() as starter:
        child = await starter.start(command("sleep", "1000"))

        assert child.reap() is None
        await end(child)


async def test_a_start_that_fails_raises_what_the_host_says() -> None:
    async with starting() as starter:
        with pytest.raises(SpawnFailed) as caught:
            await starter.start(command("no-such-program"))

        assert (caught.value.fault, caught.value.subject) == (Fault.PROGRAM, "no-such-program")


async def test_a_spawn_that_fails_in_an_unforeseen_way_does_not_leave_its_caller_waiting() -> None:
    """Whatever it is, the caller has to learn of it, and the next start has to work."""

    def broken(spec: Spec) -> children.Child:
        raise ValueError("nobody thought of this")

    async with starting(broken) as starter:
        for _ in range(2):
            with pytest.raises(ValueError, match="nobody thought of this"):
                await asyncio.wait_for(starter.start(command("true")), PATIENCE / 5)


async def test_many_starts_at_once_are_all_answered() -> None:
    async with starting() as starter:
        started = await asyncio.gather(*(starter.start(command("true")) for _ in range(50)))

        assert len({child.pid for child in started}) == 50
        for child in started:
            await end(child)


# Slow starts.


@pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])
async def test_a_slow_start_does_not_delay_another(slow: SlowProgram, terminal: Size | None) -> None:
    """A file on a stalled disk is one client's trouble, not everybody's."""
    async with starting() as starter:
        first = begin(starter, command(slow.path, "1000", terminal=terminal))
        await slow.reached()

        second = await asyncio.wait_for(starter.start(command("true")), PATIENCE)

        assert not first.done()
        slow.release()
        await end(await asyncio.wait_for(first, PATIENCE))
        await end(second)


async def test_several_slow_starts_do_not_delay_another(slow: SlowProgram) -> None:
    async with starting() as starter:
        stuck = [begin(starter, command(slow.path, "1000")) for _ in range(5)]
        await slow.reached()

        child = await asyncio.wait_for(starter.start(command("true")), PATIENCE)

        assert not any(task.done() for task in stuck)
        await end(child)
        slow.release()
        for task in stuck:
            await end(await asyncio.wait_for(task, PATIENCE))


async def test_a_cancelled_slow_start_leaves_no_process(slow: SlowProgram) -> None:
    async with starting() as starter:
        task = begin(starter, command(slow.path, "1000", stdin=True))
        await slow.reached()

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert has_children()
        slow.release()

        await eventually(lambda: not has_children())


async def test_a_start_cancelled_before_a_close_leaves_no_process(slow: SlowProgram) -> None:
    """A server that stops cancels what its clients wait for, and then has no more use for threads."""
    async with starting() as starter:
        task = begin(starter, command(slow.path, "1000"))
        await slow.reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        starter.close()
        slow.release()

        await eventually(lambda: not has_children())


async def test_a_start_cancelled_in_the_moment_it_is_answered_leaves_no_process() -> None:
    """Between the answer and the waiter's turn there is a moment in which both can happen."""
    async with starting() as starter:
        for turns in range(8):
            task = begin(starter, command("sleep", "1000"))
            await eventually(has_children)
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            try:
                child = await task
            except asyncio.CancelledError:
                await eventually(lambda: not has_children())
            else:
                await end(child)


@pytest.mark.slow
def test_a_start_that_ends_after_the_loop_leaves_no_process(tmp_path: Path) -> None:
    """The thread is left behind with a child that nobody can be told of."""
    slow: list[SlowProgram] = []
    later = asyncio.new_event_loop()
    before = open_files()

    async def main() -> None:
        slow.append(SlowProgram("/bin/sleep", tmp_path))
        starter = Starter(Spawner(Environment({})).start, asyncio.get_running_loop())
        task = begin(starter, command(slow[0].path, "1000"))
        await slow[0].reached()
        task.cancel()
        starter.close()

    asyncio.run(main())
    assert has_children()
    slow[0].close()

    later.run_until_complete(nothing_left(before))
    later.close()


async def test_what_was_discarded_took_its_whole_group_with_it(tmp_path: Path) -> None:
    """A start that was cancelled late may have started others in turn."""
    async with starting() as starter:
        report = tmp_path / "grandchild"
        source = f"import os; p = os.fork(); p and open({str(report)!r}, 'w').write(str(p)); os.read(0, 1)"
        child = await starter.start(python(source, stdin=True))
        await eventually(lambda: report.exists() and report.read_text() != "")
        grandchild = int(report.read_text())

        await end(child)

        await eventually(lambda: not Path(f"/proc/{grandchild}/exe").exists())


async def test_a_start_that_is_given_up_before_its_turn_is_never_begun(
    slow: SlowProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starter_module, "MOST_THREADS", 1)
    begun: list[str] = []
    async with starting(noting(begun)) as starter:
        stuck = begin(starter, command(slow.path, "1000"))
        await eventually(lambda: begun == [slow.path])
        unwanted = begin(starter, command("unwanted"))
        await asyncio.sleep(0)
        unwanted.cancel()
        slow.release()
        await end(await stuck)
        await end(await starter.start(command("sleep", "1000")))

    assert unwanted.cancelled()
    assert begun == [slow.path, "sleep"]


async def test_no_start_is_begun_after_the_close(slow: SlowProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its child would come when nobody is left to end it."""
    monkeypatch.setattr(starter_module, "MOST_THREADS", 1)
    begun: list[str] = []
    async with starting(noting(begun)) as starter:
        stuck = begin(starter, command(slow.path, "1000"))
        await eventually(lambda: begun == [slow.path])
        queued = begin(starter, command("sleep", "1000"))
        await asyncio.sleep(0)
        starter.close()
        slow.release()
        await end(await stuck)
        with pytest.raises(StartCancelled):
            await queued

    assert begun == [slow.path]


def noting(begun: list[str]) -> Spawn:
    """The host's spawn, and a note of every program it is asked for."""
    spawn = Spawner(Environment({})).start

    def noted(spec: Spec) -> children.Child:
        begun.append(spec.argv[0])
        return spawn(spec)

    return noted
