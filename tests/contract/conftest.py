"""One suite for the interface, run against every backend: here, and far away in every way there is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.api.host import Host, connect, local
from holdfast.backend import Backend, HostedBackend
from tests.fakes.backends import KINDS, LONG, remote, serving
from tests.fakes.process import running_backend


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The real server, by the kinds of its addresses; made when first needed."""
    with serving(tmp_path_factory.mktemp("servers")) as urls:
        yield urls


_SHORT = ("local", "ws")
_EVERY_WAY = ("test_life", "test_write")
"""Modules that are run over every way to a server in any case.  The others differ only in what is asked."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in ("backend", "host"):
        if name in metafunc.fixturenames:
            every = LONG or (name == "backend" and metafunc.module.__name__.endswith(_EVERY_WAY))
            metafunc.parametrize(name, KINDS if every else _SHORT, indirect=True)


@pytest.fixture
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """Each backend in turn."""
    if request.param == "local":
        async with running_backend() as running:
            yield running
    else:
        async with remote(request.getfixturevalue("servers")[request.param]) as far:
            yield far


@pytest.fixture
async def kept() -> AsyncIterator[HostedBackend]:
    """The backend on this host, for what only that can do."""
    async with running_backend() as running:
        yield running


@pytest.fixture
async def host(request: pytest.FixtureRequest) -> AsyncIterator[Host]:
    """What a program uses: each host in turn."""
    if request.param == "local":
        async with local() as near:
            yield near
    else:
        async with connect(request.getfixturevalue("servers")[request.param]) as far:
            yield far
