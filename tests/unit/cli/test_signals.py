"""``holdfast kill`` and ``holdfast signal``."""

from __future__ import annotations

import argparse
import json
import signal

import pytest

from holdfast.cli.signals import signal_number
from tests.fakes.terminal import Call


@pytest.mark.parametrize("text", ["TERM", "term", "SIGTERM", "sigterm", "15"])
def test_a_signal_has_many_names(text: str) -> None:
    assert signal_number(text) == signal.SIGTERM


@pytest.mark.parametrize(
    ("text", "words"), [("TREM", "did you mean SIGTERM"), ("0", "kill -l"), ("99", "kill -l")]
)
def test_what_is_no_signal_is_refused_with_what_is_close(text: str, words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=words):
        signal_number(text)


@pytest.mark.slow
def test_a_signal_is_sent_to_the_process(far: Call) -> None:
    script = "trap 'exit 6' USR1; echo ready; while :; do sleep 0.05; done"
    far("run", "-d", "--name", "signal-one", "--", "sh", "-c", script)
    while "ready" not in far("logs", "signal-one").out:
        pass

    sent = far("signal", "-o", "json", "signal-one", "usr1")
    assert (sent.code, sent.err) == (0, "")
    assert json.loads(sent.out) == {"name": "signal-one", "signal": "SIGUSR1", "tree": False}
    assert far("wait", "signal-one").code == 6


@pytest.mark.slow
def test_a_signal_to_the_tree_reaches_who_has_left_the_group(far: Call) -> None:
    script = "setsid sh -c \"trap 'echo caught; exit' USR1; echo ready; while :; do sleep 0.05; done\"; true"
    far("run", "-d", "--name", "signal-tree", "--", "sh", "-c", f"trap : USR1; {script}")
    while "ready" not in far("logs", "signal-tree").out:
        pass

    assert far("signal", "--tree", "signal-tree", "USR1") == (0, "", "")
    assert far("wait", "signal-tree").code == 0


@pytest.mark.slow
def test_all_are_ended_and_one_that_cannot_be_found_is_told(far: Call) -> None:
    for name in ("kill-a", "kill-b"):
        far("run", "-d", "--name", name, "--", "sleep", "1000")

    said = far("kill", "kill-a", "nobody", "kill-b")
    codes = [far("wait", name).code for name in ("kill-a", "kill-b")]

    assert (said.code, said.out) == (125, "kill-a\nkill-b\n")
    assert said.err == "holdfast: no process named 'nobody'; 'holdfast ps -a' shows those that there are\n"
    assert codes == [143, 143]


@pytest.mark.slow
def test_without_a_grace_nobody_is_asked_and_json_says_who_ran(far: Call) -> None:
    far("run", "-d", "--name", "kill-now", "--", "sh", "-c", "trap '' TERM; sleep 1000")

    said = far("kill", "--grace", "0", "-o", "json", "kill-now")
    again = far("kill", "-q", "kill-now")

    assert json.loads(said.out) == [{"name": "kill-now", "running": True, "survivors": []}]
    assert again == (0, "", "")
    assert far("wait", "kill-now").code == 137
