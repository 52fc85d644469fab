"""The fork server and the keeper, for the tests of their messages and of trees."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hatch_build
import holdfast.host
from holdfast.host.sandbox.confinement import Confinement, Confiner
from holdfast.host.shim import PROGRAM
from holdfast.sandbox import Access, Named, Sandbox, SandboxBackendName, SandboxEntry, Where
from tests.fakes.fork_server import STARTED, Command, ForkServer
from tests.fakes.keeper import FakeKeeper, FakeServer
from tests.fakes.process import nothing_left_open

Begin = Callable[..., FakeKeeper]
"""Starts a keeper."""

HOST = Path(holdfast.host.__file__).parent
READ_ALL = SandboxEntry(Named(Where.ROOT), Access.READ)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program, compiled from the source as it is now, if the host has a compiler; else the installed one.

    ``HOLDFAST_SANITIZED`` names another one, as ``tests.native.sanitized`` has made it.
    """
    if sanitized := os.environ.get("HOLDFAST_SANITIZED"):
        return sanitized
    if hatch_build.host_compiler() is None:
        return PROGRAM
    built = tmp_path_factory.mktemp("fork_server") / "fork_server"
    failure = hatch_build.compile_program(HOST / "native", built)
    assert failure is None, failure
    return str(built)


@pytest.fixture
def sandboxes(compiled: str) -> Iterator[Callable[..., Confiner]]:
    """Makes confiners with one sandbox backend, or skips the test where that does not work."""
    made: list[Confiner] = []

    def make(backend: SandboxBackendName, *, witness: bool = True) -> Confiner:
        confiner = Confiner(
            compiled if witness or backend is SandboxBackendName.BUBBLEWRAP else None, only=backend
        )
        made.append(confiner)
        if confiner.guarantees.backend != backend:
            pytest.skip(f"there is no {backend.value} here: {confiner.guarantees.reason}")
        return confiner

    yield make
    for confiner in made:
        confiner.close()


@pytest.fixture
def wrapped(sandboxes: Callable[..., Confiner]) -> Callable[..., Confinement]:
    """Makes confinements of bubblewrap: everything can be read, if nothing else is said."""
    confiner = sandboxes(SandboxBackendName.BUBBLEWRAP)
    return lambda *entries: confiner.confine(Sandbox(entries or (READ_ALL,), network=False, cwd="/"), None)


@pytest.fixture
def locked(sandboxes: Callable[..., Confiner]) -> Callable[..., Confinement]:
    """Makes confinements of Landlock, with a witness: everything can be read, if nothing else is said."""
    confiner = sandboxes(SandboxBackendName.LANDLOCK)
    return lambda *entries: confiner.confine(Sandbox(entries or (READ_ALL,), network=False, cwd="/"), None)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory without links above it, and with nothing in it."""
    (tmp_path / "work").mkdir()
    return tmp_path.resolve() / "work"


@pytest.fixture
def fork_server(compiled: str) -> Iterator[ForkServer]:
    running = ForkServer((compiled,))
    yield running
    running.close()


@pytest.fixture
def command(fork_server: ForkServer) -> Command:
    return fork_server.command()


@pytest.fixture
def other(fork_server: ForkServer) -> Command:
    """A command that nothing else may disturb; it answers."""
    bystander = fork_server.command().start("/bin/cat")
    bystander.tells(STARTED)
    return bystander


# The keeper.


@pytest.fixture
def begin(compiled: str, tmp_path: Path) -> Iterator[Begin]:
    """Starts a keeper; afterwards nobody is left of it."""
    made: list[FakeKeeper] = []

    def start(**options: object) -> FakeKeeper:
        made.append(FakeKeeper(compiled, tmp_path, **options))  # type: ignore[arg-type]
        return made[-1]

    with nothing_left_open():
        yield start
        for each in made:
            each.close()


@pytest.fixture
def kept(begin: Begin) -> FakeKeeper:
    """A keeper whose spare is there."""
    started = begin()
    started.spare()
    return started


@pytest.fixture
def server(kept: FakeKeeper) -> FakeServer:
    """Its first server, which serves."""
    first = kept.server()
    first.rise()
    return first
