"""``wait --for``, as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.terminal import Call


def test_a_text_of_a_process_is_waited_for(far: Call) -> None:
    far("run", "-d", "--name", "for-text", "--", "sh", "-c", "echo listening on 8080; exec sleep 1000")

    assert far("wait", "for-text", "--for", r"output:listening on \d+") == (0, "listening on 8080\n", "")
    said = far("wait", "for-text", "--for", "output:8080", "-o", "json")
    assert json.loads(said.out) == {
        "name": "for-text",
        "end": "met",
        "line": "listening on 8080",
        "seq": 1,
        "status": None,
    }
    far("kill", "--grace", "0", "for-text")


def test_what_is_not_so_in_time_ends_with_the_code_of_a_timeout(far: Call, tmp_path: Path) -> None:
    far("run", "-d", "--name", "for-file", "--", "sleep", "1000")

    late = far("wait", "for-file", "--for", f"file:{tmp_path}/never", "--timeout", "10ms")
    far("kill", "--grace", "0", "for-file")

    assert late.code == 124
    assert "was not there after 0.01 seconds: No such file" in late.err
    assert "the process runs on" in late.err


@pytest.mark.parametrize(("script", "code"), [("exit 6", 6), ("exit 0", 125)])
def test_a_process_that_ends_before_is_a_failure(far: Call, script: str, code: int) -> None:
    """Also if it ends with 0: it is not ready, and whoever relies on that must not go on."""
    far("run", "-d", "--name", f"for-end-{code}", "--", "sh", "-c", script)

    ended = far("wait", f"for-end-{code}", "--for", "output:never")

    assert ended.code == code
    assert "before output 'never' was there" in ended.err


def test_one_process_is_waited_for_with_a_time_for_something(far: Call) -> None:
    assert "name one" in far("wait", "a", "b", "--for", "port:1").err
    assert "add --for" in far("wait", "a", "--timeout", "1s").err


@pytest.mark.parametrize("what", ["8080", "port:", "port:0", "port:x", "port:65536", "socket:1"])
def test_what_nobody_can_wait_for_is_refused(far: Call, what: str) -> None:
    refused = far("wait", "a", "--for", what)

    assert refused.code == 125
    assert "argument --for: " in refused.err
