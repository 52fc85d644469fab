"""The examples of the Python interface run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.server import PATIENCE, program_at

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


SAID = {
    "harness.py": "right: passed\nwrong: wrong answer\nbroken: failed\nendless: cpuLimit\n"
    "loud: outputLimit\n",
    "agent.py": "exit 0: '52\\n'\n"
    "exit 0: '1\\n2\\n3\\n4\\n5\\n\\n[... 3873 bytes omitted ...]\\n\\n999\\n1000\\n'\n"
    "timeout -9: 'waiting\\n'\n"
    "exit 3: ''\n",
}


@pytest.fixture(params=["near", "far"])
def where(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    if request.param == "near":
        yield []
    else:
        with program_at() as (_, url):
            yield [url]


def printed(name: str, where: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *where],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_an_example_does_the_same_near_and_far(name: str, where: list[str]) -> None:
    assert printed(name, where) == SAID[name]


@pytest.mark.slow
def test_a_supervisor_tries_again_and_gives_up_near_and_far(where: list[str]) -> None:
    """What the programs say comes as it comes; of each, in its order."""
    lines = [line.partition(": ")[::2] for line in printed("supervisor.py", where).splitlines()]

    said = {name: [text for who, text in lines if who == name] for name in ("steady", "shaky", "hopeless")}
    assert said == {
        "steady": ["ready", "working", "done", "succeeded"],
        "shaky": ["attempt 1", "attempt 2", "attempt 3", "succeeded"],
        "hopeless": ["no", "no", "no", "given up, exit 9"],
    }
