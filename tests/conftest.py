"""Fixtures that every part of the tests may use."""

from __future__ import annotations

import gc
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from holdfast.engine.local import LocalBackend
from tests.fakes.gate import Gate
from tests.fakes.process import running_backend


def pytest_configure() -> None:
    """Let interrupts through: a shell that runs us in the background has them ignored, for children too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The one test that mostly waits comes first: the others are done meanwhile, and nobody waits for it."""
    items.sort(key=lambda item: item.path.name != "test_soak.py")


def pytest_collection_finish() -> None:
    """Spare the collector the tests themselves: there are so many that each look at them takes long."""
    gc.collect()
    gc.freeze()


@pytest.fixture
async def backend() -> AsyncIterator[LocalBackend]:
    """The backend on this host; it is checked that nothing of it is left afterwards."""
    async with running_backend() as running:
        yield running


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A door in a child program."""
    door = Gate(tmp_path)
    yield door
    door.close()
