"""``make serve``: the server that it starts gives programs an environment that knows nothing of make."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import sync
from holdfast.api.options import INHERIT
from tests.fakes.server import COMMAND

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working tree that was set up, with this installation in it."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "hatch_build.py").touch()
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    ours = programs / "holdfast"
    ours.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND[:-1])} "$@"\n')
    ours.chmod(0o755)
    for name in ("stamp-made", "stamp-compiler", "stamp-ready"):
        (tmp_path / ".venv" / name).touch()
    return tmp_path


@pytest.fixture
def url(tree: Path) -> Iterator[str]:
    """That of the server that make serves."""
    own = {**os.environ, "MAKEFLAGS": "k", "PYTHONPATH": str(ROOT / "src")}
    command = ["make", "--no-print-directory", "--jobs=2", "serve", "LISTEN=ws://127.0.0.1:0", "SEED=7"]
    with subprocess.Popen(command, cwd=tree, env=own, stdout=subprocess.PIPE, text=True) as making:
        assert making.stdout is not None
        try:
            yield making.stdout.readline().split()[-1]
        finally:
            making.terminate()


def test_programs_see_nothing_of_make(url: str) -> None:
    """A build that a client runs would think that it is a part of this make, and fail or hang."""
    with sync.connect(url) as host:
        tell = "import os; print(*os.environ)"
        done = host.run([sys.executable, "-c", tell], env_policy=INHERIT, capture_output=True, text=True)

    assert isinstance(done.stdout, str)
    names = set(done.stdout.split())
    assert "PATH" in names
    assert not {name for name in names if name.startswith(("MAKE", "MFLAGS", "GNUMAKE"))}
    assert not names & {"LISTEN", "SEED"}
