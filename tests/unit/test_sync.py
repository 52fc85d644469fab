"""``holdfast.sync`` is a module like any other: however it is imported, it is the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

import holdfast
import holdfast.api.sync
import holdfast.sync


@pytest.mark.parametrize(
    "way",
    [
        "import holdfast.sync; module = holdfast.sync",
        "import holdfast; module = holdfast.sync",
        "from holdfast import sync as module",
        "import holdfast.sync as module",
        "import importlib; module = importlib.import_module('holdfast.sync')",
        "from holdfast.sync import run, local, connect, Host; import holdfast; module = holdfast.sync",
    ],
)
def test_it_can_be_imported_in_every_way_there_is(way: str) -> None:
    """It was an attribute that only looked like a module: ``import holdfast.sync`` failed."""
    source = f"{way}\nimport sys\nassert module is sys.modules['holdfast.sync']\nprint(module.run(['true']))"

    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert "returncode=0" in done.stdout


def test_it_has_all_names_of_the_library_and_they_are_the_same() -> None:
    assert holdfast.sync.__all__ == holdfast.api.sync.__all__
    for name in holdfast.sync.__all__:
        assert getattr(holdfast.sync, name) is getattr(holdfast.api.sync, name)
    assert holdfast.run is holdfast.sync.run
