"""The command line: what it takes, what it refuses, and in which words."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast import __version__
from holdfast.cli import main as module
from holdfast.cli.main import COMMANDS, main, parse


@pytest.mark.parametrize(
    "before", [["-H", "ws://h:1"], ["--url", "ws://h:1"], ["-Hws://h:1"], ["--url=ws://h:1"]]
)
def test_the_server_may_stand_before_the_command(before: list[str]) -> None:
    arguments = parse([*before, "run", "-t", "ls"])

    assert (arguments.url, arguments.tty, arguments.argv) == ("ws://h:1", True, ["ls"])


ARGUMENTS = [
    ["version"],
    ["--version"],
    ["--help"],
    ["rnu"],
    ["completion", "bash"],
    *([command, "--help"] for command in COMMANDS),
]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
def test_what_needs_no_event_loop_loads_none(arguments: list[str]) -> None:
    """It is most of what a start takes."""
    script = (
        "import sys\n"
        "from holdfast.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = ('asyncio', 'msgspec', 'holdfast.model', 'holdfast.errors')\n"
        "print([name for name in heavy if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_a_failure_is_one_line_with_our_name_and_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ps"])

    shown = capsys.readouterr()
    assert (code, shown.out) == (125, "")
    assert shown.err.startswith("holdfast: no server given: ")


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_an_interrupt_and_a_reader_that_has_enough_are_no_failures(
    error: type[BaseException], code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(module, "parse", fail)
    monkeypatch.setattr(os, "dup2", lambda *_: None)

    assert main(["version"]) == code
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_the_package_can_be_run_as_a_module() -> None:
    """Where the script is not on the path, the interpreter is."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "version"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, f"holdfast {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["run", "--", "echo", "a\0b"], ["cp", "a\0b", ":x"], ["ps", "-H", "\0"]]
)
def test_a_nul_is_refused_wherever_it_stands(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 125
    assert capsys.readouterr().err.startswith("holdfast: an argument has a NUL in it")
