"""``holdfast wait``."""

from __future__ import annotations

import json

import pytest

from tests.fakes.terminal import Call

pytestmark = pytest.mark.slow


def test_the_code_is_the_processes(far: Call) -> None:
    far("run", "-d", "--name", "wait-one", "--", "sh", "-c", "exit 9")

    assert far("wait", "wait-one") == (9, "", "")


def test_of_several_it_is_the_first_that_is_not_0_and_all_are_printed(far: Call) -> None:
    for name, code in (("wait-a", 0), ("wait-b", 4), ("wait-c", 5)):
        far("run", "-d", "--name", name, "--", "sh", "-c", f"exit {code}")

    assert far("wait", "wait-a", "wait-b", "wait-c") == (4, "0\n4\n5\n", "")
    assert far("wait", "-q", "wait-a", "wait-b") == (4, "", "")


def test_json_has_the_outcome(far: Call) -> None:
    far("run", "-d", "--name", "wait-json", "--timeout", "100ms", "--", "sleep", "1000")

    said = far("wait", "-o", "json", "wait-json")
    words = far("wait", "wait-json")

    (one,) = json.loads(said.out)
    assert (said.code, one["name"], one["exitCode"], one["outcome"]["kind"]) == (
        124,
        "wait-json",
        124,
        "timeout",
    )
    assert "holdfast: wait-json: it was ended because its time was over" in words.err


def test_an_unknown_name_is_told(far: Call) -> None:
    assert far("wait", "nobody").code == 125
