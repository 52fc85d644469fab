"""``holdfast write`` and ``holdfast resize``."""

from __future__ import annotations

import json

import pytest

from tests.fakes.terminal import Call, holdfast

pytestmark = pytest.mark.slow


def test_data_is_written_as_it_is_and_the_end_after_it(far: Call) -> None:
    far("run", "-d", "-i", "--name", "write-data", "--", "cat")

    first = far("write", "write-data", "one ")
    second = far("write", "-o", "json", "write-data", "two", "--eof")

    assert (first, second.code, second.err) == ((0, "", ""), 0, "")
    assert json.loads(second.out) == {"name": "write-data", "bytes": 3, "eof": True}
    assert far("wait", "write-data").code == 0
    assert far("logs", "write-data").out == "one two"


def test_without_data_it_is_our_input(far: Call, url: str) -> None:
    far("run", "-d", "-i", "--name", "write-input", "--", "cat")
    done = holdfast("write", "-H", url, "write-input", "--eof", data=b"given\n" * 50_000)
    far("wait", "write-input")

    assert done.returncode == 0
    assert far("logs", "write-input").out == "given\n" * 50_000


def test_a_process_without_input_is_told_with_the_reason(far: Call) -> None:
    far("run", "-d", "--name", "write-none", "--", "sleep", "1000")

    said = far("write", "write-none", "x")
    far("kill", "--grace", "0", "write-none")

    assert said.code == 125
    assert "takes no input: it was started without -i" in said.err


def test_a_terminal_gets_another_size_and_a_pipe_has_none(far: Call) -> None:
    script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done"
    far("run", "-d", "-t", "--name", "resize-tty", "--", "sh", "-c", script)
    far("run", "-d", "--name", "resize-pipe", "--", "sleep", "1000")
    while "ready" not in far("logs", "resize-tty").out:
        pass

    done, refused = far("resize", "-o", "json", "resize-tty", "31x97"), far("resize", "resize-pipe", "31x97")
    far("wait", "resize-tty")
    far("kill", "--grace", "0", "resize-pipe")

    assert (done.code, refused.code) == (0, 125)
    assert json.loads(done.out) == {"name": "resize-tty", "rows": 31, "cols": 97}
    assert "start it with -t" in refused.err
    assert "31 97" in far("logs", "resize-tty").out
