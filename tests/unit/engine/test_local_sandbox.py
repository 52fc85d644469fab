"""Sandboxed processes of the backend on this host."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.config import EngineLimits, SandboxLimits
from holdfast.engine.local import LocalBackend
from holdfast.errors import BadRequest, LimitReached, SandboxUnavailable
from holdfast.host.environ import Environment
from holdfast.host.info import host_info
from holdfast.host.sandbox.confinement import Confinement, Confiner
from holdfast.host.sandbox.rules import PolicySearch
from holdfast.host.shim import compiled
from holdfast.host.spawn import Spawner
from holdfast.model import Denied, Kind, Spec
from holdfast.sandbox import (
    NO_SANDBOXES,
    Access,
    Denial,
    Guarantees,
    Named,
    Pattern,
    Sandbox,
    SandboxEntry,
    Where,
)
from holdfast.value import replace
from tests.fakes.process import PATIENCE, command, nothing_left, open_files, sh
from tests.fakes.recorder import finished
from tests.fakes.server import eventually

ROOT = SandboxEntry(Named(Where.ROOT), Access.READ)


@pytest.fixture(params=["witness", "no witness"])
async def confining(request: pytest.FixtureRequest) -> AsyncIterator[LocalBackend]:
    """A backend with the best sandbox there is, and one without a witness."""
    before = open_files()
    confiner = Confiner(compiled() if request.param == "witness" else None)
    guarantees = confiner.guarantees
    if guarantees.backend is None or (request.param == "witness" and not guarantees.exact):
        confiner.close()
        pytest.skip(guarantees.reason or "there is no witness")
    loop = asyncio.get_running_loop()
    backend = LocalBackend(Spawner(Environment({}), confiner=confiner), host_info, loop)
    yield backend
    await backend.aclose()
    await nothing_left(before)


def confined(spec: Spec, *entries: SandboxEntry) -> Spec:
    return replace(spec, sandbox=Sandbox((ROOT, *entries), network=False, cwd="/"))


async def test_what_sandboxes_are_worth_is_told_of_the_host(confining: LocalBackend) -> None:
    """The same object each time: it is asked for by every client."""
    assert confining.info.sandboxes.backend is not None
    assert confining.info is confining.info
    assert replace(confining.info, sandboxes=host_info().sandboxes) == host_info()


async def test_a_process_that_fails_of_its_sandbox_says_so(confining: LocalBackend, tmp_path: Path) -> None:
    exact = confining.info.sandboxes.exact
    process = await confining.start(confined(sh(f"mkdir {tmp_path}/new")))
    await finished(process)

    end = process.exit
    assert end is not None
    denials = (Denial("mkdir", f"{tmp_path.resolve()}/new"),) if exact else ()
    assert end.denied == Denied(failed=True, exact=exact, denials=denials)
    assert end.outcome.kind is Kind.SANDBOX_DENIED
    assert os.listdir(tmp_path) == []


async def test_a_process_that_does_what_it_may_ends_like_any_other(confining: LocalBackend) -> None:
    process = await confining.start(confined(sh("echo out; exit 3")))
    await finished(process)

    assert process.exit is not None
    assert (process.exit.code, process.exit.outcome.kind) == (3, Kind.EXIT)
    assert process.exit.denied == Denied(failed=False, exact=confining.info.sandboxes.exact)


async def test_a_policy_that_makes_no_sense_is_refused(confining: LocalBackend) -> None:
    with pytest.raises(BadRequest):
        await confining.start(confined(command("true"), SandboxEntry(Pattern("/**"), Access.DENY)))


async def test_without_sandboxes_one_is_refused_and_nothing_runs(
    backend: LocalBackend, tmp_path: Path
) -> None:
    with pytest.raises(SandboxUnavailable):
        await backend.start(confined(command("touch", f"{tmp_path}/ran")))

    assert os.listdir(tmp_path) == []


async def test_many_start_at_once(confining: LocalBackend) -> None:
    """Their confinements are made in threads."""
    started = await asyncio.gather(*(confining.start(confined(sh(f"exit {number}"))) for number in range(10)))
    ends = [await process.wait(PATIENCE) for process in started]

    assert [end and end.code for end in ends] == list(range(10))


class Hesitant(Spawner):
    """Does not know yet what sandboxes are worth."""

    def __init__(self) -> None:
        super().__init__(Environment({}))
        self.known = threading.Event()

    @property
    def tried_out(self) -> bool:
        return self.known.is_set()

    @property
    def guarantees(self) -> Guarantees:
        assert self.known.wait(PATIENCE)
        return NO_SANDBOXES


async def test_others_go_on_while_sandboxes_are_tried_out() -> None:
    spawner = Hesitant()
    backend = LocalBackend(spawner, host_info, asyncio.get_running_loop())
    waiting = asyncio.ensure_future(backend.ready())
    await eventually(lambda: backend.files.workers.busy == 1)

    process = await backend.start(sh("exit 3"))
    await finished(process)
    assert not waiting.done()

    spawner.known.set()
    await waiting
    await backend.ready()
    assert backend.info.sandboxes is NO_SANDBOXES
    await backend.aclose()


class Endless(Spawner):
    """Looks for the paths of a sandbox for ever."""

    def __init__(self) -> None:
        super().__init__(Environment({}))
        self.looks = threading.Semaphore(0)

    def confine(self, spec: Spec, search: PolicySearch | None = None) -> Confinement | None:
        assert search is not None
        while True:
            self.looks.release()
            search.look()


async def test_a_start_that_is_given_up_gives_its_thread_back() -> None:
    """64 of them once kept every thread of the server for ever."""
    spawner = Endless()
    backend = LocalBackend(spawner, host_info, asyncio.get_running_loop())
    starting = asyncio.ensure_future(backend.start(confined(command("true"))))
    await eventually(lambda: spawner.looks.acquire(blocking=False))

    starting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await starting
    await eventually(lambda: backend.files.workers.busy == 0)
    await backend.aclose()


async def test_a_start_that_takes_too_long_is_refused() -> None:
    spawner = Endless()
    limits = SandboxLimits(names=1000)
    backend = LocalBackend(spawner, host_info, asyncio.get_running_loop(), sandbox_limits=limits)

    with pytest.raises(LimitReached, match="names looked at for a sandbox"):
        await backend.start(confined(command("true")))

    await backend.aclose()


async def test_no_more_start_than_may_however_long_their_sandboxes_take() -> None:
    """Both find room before either has its sandbox."""
    spawner = Spawner(Environment({}), confiner=Confiner(compiled()))
    if spawner.guarantees.backend is None:
        spawner.close()
        pytest.skip(spawner.guarantees.reason)
    limits = EngineLimits(processes=1)
    backend = LocalBackend(spawner, host_info, asyncio.get_running_loop(), limits=limits)
    spec = confined(command("/bin/sleep", "1000"))

    found = await asyncio.gather(*(backend.start(spec) for _ in range(3)), return_exceptions=True)

    assert sorted(type(one) is LimitReached for one in found) == [False, True, True]
    await backend.aclose()


class Searching(Spawner):
    """Looks for the paths of a sandbox until the test lets it go on."""

    def __init__(self) -> None:
        super().__init__(Environment({}))
        self.gate = threading.Event()
        self.begun: list[str] = []

    def confine(self, spec: Spec, search: PolicySearch | None = None) -> Confinement | None:
        self.begun.append(spec.argv[0])
        self.gate.wait()
        raise LimitReached("names looked at for a sandbox", 1)


async def test_searches_leave_the_processor_and_the_threads_for_files_to_others(tmp_path: Path) -> None:
    """A search takes all the processor it can get; the loop waits behind each of them, and so would files."""
    spawner = Searching()
    backend = LocalBackend(spawner, host_info, asyncio.get_running_loop())
    (tmp_path / "file").write_bytes(b"x")
    patterned = SandboxEntry(Pattern("/**/x"), Access.DENY)
    sandbox = Sandbox((patterned,), network=True, cwd="/")
    greedy = Spec(["greedy"], cwd="/", env={}, sandbox=sandbox)
    starts = [asyncio.ensure_future(backend.start_for(greedy, backend, backend._budget)) for _ in range(100)]
    await eventually(lambda: len(spawner.begun) == 2)
    other = asyncio.ensure_future(
        backend.start_for(replace(greedy, argv=["other"]), Account(backend), backend._budget)
    )
    data = await backend.files.read(str(tmp_path / "file"), at_once=9)
    meanwhile = list(spawner.begun)

    spawner.gate.set()
    await asyncio.wait([*starts, other])

    assert (data, meanwhile) == (b"x", ["greedy"] * 2)
    assert "other" in spawner.begun[:5], "or whoever asks for much is served first"
    assert all(isinstance(each.exception(), LimitReached) for each in [*starts, other])
    await backend.aclose()


class Account:
    """Whoever keeps account of the processes of another client."""

    def __init__(self, backend: LocalBackend) -> None:
        self.adopted, self.exited = backend.adopted, backend.exited
        self.closed, self.gone = backend.closed, backend.gone
