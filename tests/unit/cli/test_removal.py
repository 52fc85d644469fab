"""``holdfast rm`` and ``prune``."""

from __future__ import annotations

import json

import pytest

from holdfast import sync
from tests.fakes.server import program_at
from tests.fakes.terminal import Call, holdfast

pytestmark = pytest.mark.slow


def test_ended_processes_are_forgotten_and_those_that_run_are_not(far: Call) -> None:
    far("run", "-d", "--name", "rm-ended", "--", "true")
    far("run", "-d", "--name", "rm-runs", "--", "sleep", "1000")
    far("wait", "-q", "rm-ended")

    said = far("rm", "rm-ended", "rm-runs", "rm-nobody")
    forced = far("rm", "-f", "--grace", "0", "rm-runs")

    assert (said.code, said.out) == (125, "rm-ended\n")
    assert "'rm-runs' still runs" in said.err
    assert "no process named 'rm-nobody'" in said.err
    assert forced == (0, "rm-runs\n", "")
    assert not {"rm-ended", "rm-runs"} & {
        one["name"] for one in json.loads(far("ps", "-a", "-o", "json").out)
    }


def test_prune_forgets_everything_that_has_ended() -> None:
    with program_at() as (_, url):

        def call(*words: str) -> str:
            return holdfast(words[0], "-H", url, *words[1:]).stdout.decode()

        with sync.connect(url) as host:
            host.start(["sleep", "1000"], name="runs", keep=True)
            ended = [host.start(["true"], name=f"p{number}", keep=True) for number in range(40)]
            for process in ended:
                process.wait()

        pruned = call("prune").splitlines()

        assert sorted(pruned) == sorted(f"p{number}" for number in range(40))
        assert call("ps", "-a", "-q") == "runs\n"
        assert call("prune") == ""


def names(far: Call) -> set[str]:
    """Of all processes that the server knows."""
    return {one["name"] for one in json.loads(far("ps", "-a", "-o", "json").out)}


def test_processes_are_started_again_under_their_names(far: Call) -> None:
    far("run", "-d", "--name", "restart-runs", "--", "sleep", "1000")
    far("run", "-d", "--name", "restart-ended", "--", "sh", "-c", "echo said; exit 3")
    far("wait", "-q", "restart-ended")

    said = far("restart", "--grace", "0", "restart-runs", "restart-ended", "restart-nobody")

    assert (said.code, said.out) == (125, "restart-runs\nrestart-ended\n")
    assert "no process named 'restart-nobody'" in said.err
    assert far("wait", "restart-ended").code == 3
    assert far("logs", "restart-ended").out == "said\n"
    assert "restart-runs" in far("ps", "-q").out.splitlines()
    far("rm", "-f", "--grace", "0", "restart-runs", "restart-ended")
