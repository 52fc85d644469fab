"""The examples of the Python interface run."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
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
    "harness.py": "right    passed\n"
    "wrong    wrong answer\n"
    "broken   exit 1\n"
    "endless  cpuLimit: more than 2 seconds of processor time\n"
    "greedy   oom\n"
    "loud     outputLimit: more than 1048576 bytes of output\n"
    "passed 1 of 6\n",
    "agent.py": "exit 0: '52\\n'\n"
    "exit 0: '1\\n2\\n3\\n4\\n5\\n\\n[... 3873 bytes omitted ...]\\n\\n999\\n1000\\n'\n"
    "timeout: more than 2 seconds: 'waiting\\n'\n"
    "exit 127: '...not found\\n'\n",
}

HOST_SAYS = re.compile(r"(?<=oom): .*|(?<=127: ')\S.*(?=not found)")
"""What depends on the host: how it measures memory, and its shell."""


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
    told = HOST_SAYS.sub(lambda match: "" if match[0].startswith(":") else "...", printed(name, where))

    assert told == SAID[name]


@pytest.mark.slow
def test_a_supervisor_tries_again_and_gives_up_near_and_far(where: list[str]) -> None:
    """What the programs say comes as it comes; of each, in its order."""
    lines = [line.partition(": ")[::2] for line in printed("supervisor.py", where).splitlines()]

    said = {name: [text for who, text in lines if who == name] for name in ("steady", "shaky", "hopeless")}
    assert said == {
        "steady": ["ready", "working", "done", "exit 0"],
        "shaky": ["attempt 1", "exit 1", "attempt 2", "exit 1", "attempt 3", "exit 0"],
        "hopeless": ["no", "exit 9", "no", "exit 9", "no", "exit 9"],
    }


BEFORE = {"harness.py": (46, 0.6), "agent.py": (32, 0.6), "supervisor.py": (27, 0.82)}
"""Lines that each program needed before the library had today's verbs, and the share that it may need now.

Most lines of the supervisor are a loop of its own, which no verb should hide: when to try again, and how
often, is what its author decides.
"""

NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def code_lines(source: str) -> int:
    """Count the lines with code: neither empty ones, nor comments, nor docstrings."""
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    docstrings = [text for text in texts if isinstance(text, ast.Constant)]
    no_code = {line for text in docstrings for line in range(text.lineno, (text.end_lineno or 0) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    code = [token for token in tokens if token.type not in NO_CODE]
    return len({line for token in code for line in range(token.start[0], token.end[0] + 1)} - no_code)


def test_code_is_counted_without_what_explains_it() -> None:
    assert code_lines('"""Text\nof two lines."""\n\n# Why.\nx = """a\nb"""\ny = [\n    1\n]  # One.\n') == 5


@pytest.mark.parametrize("name", BEFORE)
def test_an_example_needs_few_lines(name: str) -> None:
    """What a program of this kind writes by hand is a verb that the library lacks."""
    before, share = BEFORE[name]

    assert code_lines((EXAMPLES / name).read_text(encoding="utf-8")) <= share * before
