"""The examples of the Python interface run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("stream.py", ["sh", "-c", "echo one; echo two"], "one\ntwo\n"),
        ("talk.py", [], "6 7 -> 42\n12 12 -> 144\n99 101 -> 9999\n"),
        ("script.py", [], "sorted: ['apple', 'pear']\n"),
    ],
)
def test_an_example_does_what_it_says(name: str, arguments: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )

    assert (done.returncode, done.stdout[-len(said) :]) == (0, said), done.stderr
