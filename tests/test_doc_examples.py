"""The examples of the documents do what their pages show: each page is run from top to bottom.

A page is read as a person reads it.  A block of ``sh`` that begins with ``holdfast serve`` is a
server in another terminal.  A line of ``console`` that begins with ``$`` is typed, and the lines
below it are what it prints; three dots stand for the rest of a line.  An example prints the block
of ``text`` that follows it; one without such a block runs on beside what comes next.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"

PORTS = ("8765", "8766")
"""Of the server and of the relay, in the pages; here others are used, that are free."""

BLOCK = re.compile(
    r"^<!-- From here to the next mark: examples/(?P<example>\w+)\.py, .*?^<!-- End .*?-->$"
    r"|^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)

MARK = "-- the next one --"

UNTIL_IT_LISTENS = "until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do :; done"
"""No test sleeps, and neither does a script of one."""


@dataclass
class Step:
    """Something to run, and what it prints; None if it runs beside the next one."""

    command: str
    printed: str | None = None


@dataclass
class Reading:
    """What one page asks its reader to do."""

    server: str | None = None
    steps: list[Step] = field(default_factory=list)


def read(text: str) -> Reading:
    found = Reading()
    waiting: Step | None = None  # An example whose output may follow.
    for block in BLOCK.finditer(text):
        if block["example"]:
            waiting = Step(f"python -W error examples/{block['example']}.py")
            found.steps.append(waiting)
        elif block["language"] == "text" and waiting is not None:
            waiting.printed, waiting = block["text"], None
        elif block["language"] == "console":
            found.steps += typed(block["text"])
            waiting = None
        elif block["language"] == "sh" and block["text"].startswith("holdfast serve"):
            found.server = block["text"].strip()
    return found


def typed(text: str) -> Iterator[Step]:
    """The commands of a console."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield Step(command, printed)


def pattern(printed: str) -> str:
    """What a step may print; three dots at the end of a line stand for the rest of it."""
    lines = printed.splitlines()
    return "".join(re.sub(r"\\\.\\\.\\\.$", ".*", re.escape(line)) + "\n" for line in lines)


PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
RUN = [name for name, text in PAGES.items() if read(text).steps]


def free_ports() -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in PORTS]
    ports = [str(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def serving(command: str, folder: Path, env: dict[str, str]) -> Iterator[None]:
    with subprocess.Popen(shlex.split(command), cwd=folder, env=env, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline()
            yield
        finally:
            server.terminate()


def script(steps: list[Step], relay: str) -> str:
    """All steps in one shell: what one exports the next one has, and ``$?`` is that of the step before."""
    lines = []
    for step in steps:
        if step.printed is None:
            lines += [f"{step.command} >/dev/null 2>&1 &", UNTIL_IT_LISTENS.format(port=relay)]
        else:
            lines += [step.command, f"code=$?; echo '{MARK}'; (exit $code)"]
    return "\n".join([*lines, "kill $(jobs -p) 2>/dev/null; true"])


STALLED = re.compile(r"^WARNING holdfast\.stalls: .*\n", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", RUN)
def test_a_page_does_what_it_shows(name: str, tmp_path: Path) -> None:
    """An example that fails costs more trust than ten pages gain."""
    ports = free_ports()

    def here(text: str) -> str:
        for shown, free in zip(PORTS, ports, strict=True):
            text = text.replace(f":{shown}", f":{free}").replace(f", {shown})", f", {free})")
        return text

    (tmp_path / "examples").mkdir()
    for example in EXAMPLES.glob("*.py"):
        (tmp_path / "examples" / example.name).write_text(here(example.read_text(encoding="utf-8")))
    reading = read(here(PAGES[name]))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "no_proxy": "*"}

    with serving(reading.server or here("holdfast serve --listen ws://127.0.0.1:8765"), tmp_path, env):
        done = subprocess.run(
            ["bash", "-c", script(reading.steps, ports[1])],
            cwd=tmp_path,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=55,
            check=False,
        )

    shown = [step for step in reading.steps if step.printed is not None]
    # On a busy host a server may say that it had to wait for a processor.
    printed = STALLED.sub("", done.stdout).split(f"{MARK}\n")
    assert len(printed) == len(shown) + 1, done.stdout
    for step, text in zip(shown, printed, strict=False):
        assert re.fullmatch(pattern(step.printed or ""), text), f"{step.command}\nprinted\n{text}"


def test_every_example_is_in_a_page_and_most_pages_are_run() -> None:
    """If the form of the pages changed, the test above would look at nothing."""
    shown = {match["example"] for text in PAGES.values() for match in BLOCK.finditer(text)} - {None}

    assert shown == {path.stem for path in EXAMPLES.glob("*.py")}
    assert len(RUN) > 12


def test_the_rest_of_a_line_may_be_left_out_and_nothing_else() -> None:
    assert re.fullmatch(pattern("ended because...\n"), "ended because of it\n")
    assert not re.fullmatch(pattern("ended...\nb\n"), "ended\nx\nb\n")
    assert not re.fullmatch(pattern("a.b\n"), "acb\n")
