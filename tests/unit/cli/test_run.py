"""``holdfast run`` and ``exec``: from options to a start; the rest: ``tests/system/test_cli_run.py``."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from subprocess import DEVNULL, PIPE

import pytest

from holdfast.cli import run as module
from holdfast.cli.main import parse
from holdfast.model import Limits, Size
from tests.fakes.terminal import Call


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """A run freezes what there is, which is right for a program and not for a test."""
    yield
    gc.unfreeze()


def terms(*options: str) -> dict[str, object]:
    return module._terms(parse(["run", *options, "--", "true"]))


@pytest.fixture
def no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.run.is_given", lambda fd: False)


@pytest.mark.usefixtures("no_input")
def test_without_options_nothing_is_asked_for() -> None:
    assert terms() == {
        "name": None,
        "cwd": None,
        "stdin": DEVNULL,
        "terminal": None,
        "timeout": None,
        "idle_timeout": None,
        "grace": 0.0,
        "output_limit": None,
        "truncate_output": False,
        "retain": None,
        "idempotent": False,
        "auto_remove": False,
        "notify": None,
        "user": None,
    }


@pytest.mark.usefixtures("no_input")
def test_every_option_has_its_place() -> None:
    asked = terms(
        *("-i", "-t", "--name", "n", "-w", "d", "--timeout", "1m", "--idle-timeout", "5s", "--grace", "2s"),
        *(
            "--output-limit",
            "3m",
            "--truncate",
            "--memory",
            "1m",
            "--cpu",
            "10s",
            "--pids",
            "3",
            "--retain",
            "2k",
            "-e",
            "A=1",
            "--user",
            "bob",
        ),
    )

    assert isinstance(asked.pop("terminal"), Size)
    assert asked == {
        "name": "n",
        "cwd": "d",
        "stdin": PIPE,
        "timeout": 60.0,
        "idle_timeout": 5.0,
        "grace": 2.0,
        "output_limit": 3 << 20,
        "truncate_output": True,
        "retain": 2048,
        "idempotent": False,
        "auto_remove": False,
        "notify": None,
        "user": "bob",
        "limits": Limits(memory=1 << 20, cpu=10.0, processes=3),
        "extra_env": {"A": "1"},
    }


def test_a_pipe_is_input_and_detached_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.run.is_given", lambda fd: True)

    assert [terms(*options)["stdin"] for options in ((), ("-d",), ("-d", "-i"))] == [PIPE, DEVNULL, PIPE]


@pytest.mark.usefixtures("no_input")
def test_a_far_terminal_is_of_our_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-test")

    assert terms("-t", "-H", "ws://h:1")["extra_env"] == {"TERM": "xterm-test"}
    assert terms("-t", "-H", "ws://h:1", "-e", "TERM=mine")["extra_env"] == {"TERM": "mine"}
    assert "extra_env" not in terms("-t")


def test_nothing_to_run_is_told_with_an_example(call: Call) -> None:
    said = call("run")

    assert said.code == 125
    assert "'holdfast run -- ls -l'" in said.err


def test_it_runs_here(call: Call) -> None:
    assert call("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")
    assert call("exec", "--", "sh", "-c", "exit 4").code == 4


def test_what_we_say_can_be_silenced_but_not_what_went_wrong(call: Call) -> None:
    loud = call("run", "--timeout", "50ms", "--", "sleep", "1000")
    quiet = call("run", "-q", "--timeout", "50ms", "--", "sleep", "1000")
    failed = call("run", "-q", "--", "no-such-program")

    assert (loud.code, quiet.code, failed.code) == (124, 124, 127)
    assert "its time was over" in loud.err
    assert quiet.err == ""
    assert "no-such-program" in failed.err


@pytest.mark.slow
def test_detached_the_name_is_printed(far: Call) -> None:
    named = far("run", "-d", "--name", "run-named", "--", "sleep", "1000")
    document = json.loads(far("run", "-d", "-o", "json", "--", "true").out)
    taken = far("run", "-d", "--name", "run-named", "--", "sleep", "1")

    assert named == (0, "run-named\n", "")
    assert document.keys() == {"name", "id", "pid"}
    assert taken.code == 125
    assert "--replace" in taken.err


def test_the_collector_works_again_while_it_runs(call: Call) -> None:
    gc.disable()
    try:
        call("run", "--", "true")

        assert gc.isenabled()
    finally:
        gc.enable()


def test_our_variables_are_the_programs(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "1")

    assert call("run", "-e", "MORE=2", "--", "sh", "-c", 'echo "$OURS$MORE"').out == "12\n"
    assert os.environ["OURS"] == "1"
