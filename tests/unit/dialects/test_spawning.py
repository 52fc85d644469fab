"""Starting a process under a name, and the words for a start that failed."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.dialects import spawning
from holdfast.dialects.scope import Scope, Starting
from holdfast.errors import Fault, LimitReached, ProgramSearch, SpawnFailed, StartCancelled
from holdfast.model import Spec
from tests.fakes.dialects import FakeBackend, FakeProcess

SPEC = Spec(argv=["x"], cwd="/", env={})


def reserved() -> tuple[Scope[str], Starting]:
    scope: Scope[str] = Scope(limit=9)
    return scope, scope.reserve("p")


async def test_a_started_process_keeps_its_name() -> None:
    scope, starting = reserved()
    process = FakeProcess()
    backend = FakeBackend(process)

    assert await spawning.start(backend, SPEC, scope, starting) is process
    assert (backend.specs, scope.find("p")) == ([SPEC], starting)


@pytest.mark.parametrize(
    "error", [SpawnFailed(Fault.PROGRAM, "x", "why"), LimitReached("x", 1), RuntimeError("a mistake")]
)
async def test_a_start_that_fails_frees_its_name(error: Exception) -> None:
    """Whatever it was that failed."""
    scope, starting = reserved()

    with pytest.raises(type(error)) as caught:
        await spawning.start(FakeBackend(error), SPEC, scope, starting)

    assert caught.value is error
    assert scope.find("p") is None


async def test_a_start_that_was_given_up_before_it_began_asks_nobody() -> None:
    scope, starting = reserved()
    backend = FakeBackend(FakeProcess())
    starting.cancel()

    with pytest.raises(StartCancelled) as caught:
        await spawning.start(backend, SPEC, scope, starting)

    assert (caught.value.name, backend.specs, scope.find("p")) == ("p", [], None)


async def test_a_start_under_way_can_be_given_up() -> None:
    scope, starting = reserved()
    backend = FakeBackend(asyncio.Event(), FakeProcess())
    task = asyncio.ensure_future(spawning.start(backend, SPEC, scope, starting))
    await backend.asked.wait()

    starting.cancel()

    with pytest.raises(StartCancelled):
        await task
    assert scope.find("p") is None


async def test_a_cancelled_task_is_cancelled_and_frees_its_name() -> None:
    """Cancellation is no error: whoever cancels the task waits for exactly that."""
    scope, starting = reserved()
    backend = FakeBackend(asyncio.Event(), FakeProcess())
    task = asyncio.ensure_future(spawning.start(backend, SPEC, scope, starting))
    await backend.asked.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert scope.find("p") is None


# Words.


def looked_up(subject: str, path: str | None, *, terminal: bool) -> SpawnFailed:
    return SpawnFailed(
        Fault.PROGRAM,
        subject,
        "No such file or directory",
        number=2,
        terminal=terminal,
        search=ProgramSearch(path),
    )


NO_CANDIDATES = "because:\nNo viable candidates found in PATH"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SpawnFailed(Fault.PROGRAM, "", "empty"), "missing program for pipe spawn"),
        (SpawnFailed(Fault.PROGRAM, "", "empty", terminal=True), "missing program for PTY spawn"),
        (looked_up("x", "/bin", terminal=False), "No such file or directory (os error 2)"),
        (looked_up("x", None, terminal=False), "No such file or directory (os error 2)"),
        (
            looked_up("true", None, terminal=True),
            "Unable to spawn true because:\nUnable to resolve the PATH",
        ),
        (looked_up("x", "/bin", terminal=True), f'Unable to spawn x {NO_CANDIDATES} "/bin"'),
        (looked_up("x", "", terminal=True), f'Unable to spawn x {NO_CANDIDATES} ""'),
        (looked_up("x", '/a"\n\udcff', terminal=True), f'Unable to spawn x {NO_CANDIDATES} "/a\\"\\n\ufffd"'),
        (SpawnFailed(Fault.ARGUMENT, "a\0b", "NUL"), "nul byte found in provided data"),
        (SpawnFailed(Fault.ARGUMENT, "env", "NUL"), "data provided contains a nul byte"),
        (SpawnFailed(Fault.ARGUMENT, "env", "NUL", terminal=True), "nul byte found in provided data"),
        (
            SpawnFailed(Fault.ARGUMENT, "argv", "Argument list too long", number=7),
            "Argument list too long (os error 7)",
        ),
        (SpawnFailed(Fault.DIRECTORY, "/f", "Not a directory", number=20), "Not a directory (os error 20)"),
        (SpawnFailed(Fault.SYSTEM, "fork server", "it is gone"), "fork server: it is gone"),
        (
            SpawnFailed(Fault.PROGRAM, "/x", "Permission denied", number=13, terminal=True),
            "Permission denied (os error 13)",
        ),
    ],
)
def test_a_failed_start_has_the_words_of_the_reference(error: SpawnFailed, text: str) -> None:
    assert spawning.failure_text(error) == text
