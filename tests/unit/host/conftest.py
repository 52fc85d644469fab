"""The nursery in both its forms, for the tests of its messages and of its trees."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast.host
from tests.fakes.nursery import PYTHON, STARTED, Command, Nursery

HOST = Path(holdfast.host.__file__).parent


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler")
    built = str(tmp_path_factory.mktemp("nursery") / "nursery")
    build = [compiler, "-O2", "-o", built, str(HOST / "nursery.c")]
    if subprocess.run([*build, "-static"], check=False, capture_output=True).returncode:
        subprocess.run(build, check=True)
    return built


@pytest.fixture(params=["compiled", "python"])
def program(request: pytest.FixtureRequest) -> tuple[str, ...]:
    if request.param == "python":
        return *PYTHON, str(HOST / "nursery.py")
    return (request.getfixturevalue("compiled"),)


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
