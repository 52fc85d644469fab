"""SIGKILL before every bytecode of the modules that record; the next server goes on, and nothing is wrong.

``HOLDFAST_LONG=1`` takes every bytecode; without it, one in so many, another one in each run.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.killed_ledger import SCRIPTS

LONG = bool(os.environ.get("HOLDFAST_LONG"))
ROOT = Path(__file__).resolve().parents[4]

STEP = {"life": 50, "directory": 200, "segments": 1000, "old segments": 1000}
"""Bytecodes from one kill to the next; others have ``USUAL``."""

USUAL = 100

pytestmark = [pytest.mark.slow, pytest.mark.timeout(36_000 if LONG else 120)]


def kill(name: str, *, step: int, again: int | None = None) -> dict[str, Any]:
    """Kill servers all along a script; what came of it.  In a process of its own: its children are forked."""
    start = 1 if LONG else random.randrange(1, step + 1)  # noqa: S311
    argv = [sys.executable, "-m", "tests.fakes.killed", name, str(start), str(step)]
    if again is not None:
        argv.append(str(again))
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"from {start}:\n{done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_server_that_is_killed_before_any_bytecode_has_lost_and_doubled_nothing(name: str) -> None:
    """Streams, numbers, input, identifiers, exit, what is left: all are as if one server had done all."""
    step = 1 if LONG else STEP.get(name, USUAL)

    found = kill(name, step=step)

    assert found["wrong"] == []
    assert found["kills"] >= found["bytecodes"] // step - 1


@pytest.mark.parametrize("name", [name for name in SCRIPTS if "segments" not in name or LONG])
def test_nor_has_one_that_is_killed_again_while_it_recovers(name: str) -> None:
    """Whatever a recovery does, it may be done twice, and in part."""
    step = 5 if LONG else 3 * USUAL

    found = kill(name, step=step, again=random.randrange(1 << 30))  # noqa: S311

    assert found["wrong"] == []
    assert found["kills"] >= found["bytecodes"] // step
