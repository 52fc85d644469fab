"""A short form of the chaos: a server that is killed again and again, and nothing lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.backends import LONG

ROOT = Path(__file__).parents[2]
KILLS, PROCESSES = (100, 50) if LONG else (10, 12)


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(400)
def test_a_server_that_is_killed_again_and_again_loses_nothing() -> None:
    """So few kills need not find bytes without a number; that is what the long form is for."""
    options = ("--kills", str(KILLS), "--processes", str(PROCESSES), "--adopting", "0", "--retention", "5")
    done = subprocess.run(
        [sys.executable, "-m", "bench.chaos", *options], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
