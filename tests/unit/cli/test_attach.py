"""``holdfast attach``, away from a terminal; at one it is in ``tests/system/test_cli_terminal.py``."""

from __future__ import annotations

import pytest

from tests.fakes.terminal import Call, holdfast

pytestmark = pytest.mark.slow


def test_what_was_said_is_shown_and_the_code_is_the_processes(far: Call) -> None:
    far("run", "--name", "attach-done", "--", "sh", "-c", "echo a; echo b; exit 3")

    assert far("attach", "--no-stdin", "attach-done") == (3, "a\nb\n", "")
    assert far("attach", "--no-stdin", "--tail", "1", "attach-done") == (3, "b\n", "")


def test_what_is_given_is_passed_on(far: Call, url: str) -> None:
    far("run", "-d", "-i", "--name", "attach-input", "--", "cat")

    done = holdfast("attach", "-H", url, "attach-input", data=b"given")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"given", b"")


def test_old_output_that_is_gone_is_told_and_is_no_failure(forgetful: Call) -> None:
    forgetful("run", "-d", "--name", "p", "--", "head", "-c", "30000000", "/dev/zero")
    forgetful("wait", "p")

    said = forgetful("attach", "--no-stdin", "p")

    assert said.code == 0
    assert "no longer kept" in said.err


def test_an_unknown_name_is_told(far: Call) -> None:
    assert far("attach", "nobody").code == 125
