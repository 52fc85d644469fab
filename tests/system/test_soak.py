"""A short form of the soak: everything at once, and nothing left of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.backends import LONG

ROOT = Path(__file__).parents[2]
SECONDS, RATE = (300, 12) if LONG else (60, 4)


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(400)
def test_after_a_hundred_clients_did_everything_the_server_is_as_it_was() -> None:
    """Whatever a verb leaves behind adds up in a server that runs for months.

    Mostly waiting: for the half minute after which the server forgets the sessions that were left.
    """
    options = ("--seconds", str(SECONDS), "--rate", str(RATE), "--seed", "1")
    done = subprocess.run(
        [sys.executable, "-m", "bench.soak", *options], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
