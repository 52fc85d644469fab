"""The nursery in both its forms, for the tests of its messages and of its trees."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast.host
from holdfast.host.sandbox.cage import Cage
from holdfast.host.sandbox.ladder import Ladder
from holdfast.sandbox import Access, Backing, Entry, Named, Sandbox, Where
from tests.fakes.nursery import PYTHON, STARTED, Command, Nursery

HOST = Path(holdfast.host.__file__).parent
READ_ALL = Entry(Named(Where.ROOT), Access.READ)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler")
    built = str(tmp_path_factory.mktemp("nursery") / "nursery")
    parts = [str(HOST / f"{part}.c") for part in ("nursery", "confine", "witness")]
    build = [compiler, "-O2", "-o", built, *parts]
    if subprocess.run([*build, "-static"], check=False, capture_output=True).returncode:
        subprocess.run(build, check=True)
    return built


@pytest.fixture
def sandboxes(compiled: str) -> Iterator[Callable[..., Ladder]]:
    """Makes ladders of one rung, or skips the test where there is no such rung."""
    made: list[Ladder] = []

    def make(backing: Backing, *, witness: bool = True) -> Ladder:
        ladder = Ladder(compiled if witness or backing is Backing.BUBBLEWRAP else None, only=backing)
        made.append(ladder)
        if ladder.guarantees.backing is not backing:
            pytest.skip(f"there is no {backing.value} here: {ladder.guarantees.reason}")
        return ladder

    yield make
    for ladder in made:
        ladder.close()


@pytest.fixture(params=["compiled", "python"])
def program(request: pytest.FixtureRequest) -> tuple[str, ...]:
    if request.param == "python":
        return *PYTHON, str(HOST / "nursery.py")
    return (request.getfixturevalue("compiled"),)


@pytest.fixture
def native(compiled: str) -> Iterator[Nursery]:
    """A nursery that can keep every sandbox."""
    running = Nursery((compiled,))
    yield running
    running.close()


@pytest.fixture
def wrapped(sandboxes: Callable[..., Ladder]) -> Callable[..., Cage]:
    """Makes cages of bubblewrap: everything can be read, if nothing else is said."""
    ladder = sandboxes(Backing.BUBBLEWRAP)
    return lambda *entries: ladder.cage(Sandbox(entries or (READ_ALL,), network=False, cwd="/"), None)


@pytest.fixture
def locked(sandboxes: Callable[..., Ladder]) -> Callable[..., Cage]:
    """The same of Landlock, with a witness."""
    ladder = sandboxes(Backing.LANDLOCK)
    return lambda *entries: ladder.cage(Sandbox(entries or (READ_ALL,), network=False, cwd="/"), None)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory without links above it, and with nothing in it."""
    (tmp_path / "work").mkdir()
    return tmp_path.resolve() / "work"


@pytest.fixture
def nursery(program: tuple[str, ...]) -> Iterator[Nursery]:
    running = Nursery(program)
    yield running
    running.close()


@pytest.fixture
def command(nursery: Nursery) -> Command:
    return nursery.command()


@pytest.fixture
def other(nursery: Nursery) -> Command:
    """A command that nothing else may disturb; it answers."""
    bystander = nursery.command().start("/bin/cat")
    bystander.tells(STARTED)
    return bystander
