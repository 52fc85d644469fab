"""What the tests of confiners have in common."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.process import has_children, open_files


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """No confiner leaves a descriptor or a child behind once it is closed and forgotten."""
    gc.collect()  # What an earlier test left to the collector must not go in between.
    before = open_files()
    yield
    gc.collect()
    assert open_files().items() <= before.items()
    assert not has_children()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path.resolve() / "work"
