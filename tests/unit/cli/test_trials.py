"""The programs that ``holdfast doctor`` starts; what they see on broken hosts is in the system tests."""

from __future__ import annotations

import pytest

from holdfast.cli.trials import try_out

pytestmark = pytest.mark.slow


def test_each_trial_works_and_says_what_was_seen() -> None:
    seen = try_out()

    trials = [seen.processes, seen.terminals, seen.trees, seen.memory, seen.resources]
    assert [(trial.works, trial.detail) for trial in trials] == [
        (True, "a program was started, and its output and its exit code came back"),
        (True, "a program saw its terminal, the size of it, and a change of the size"),
        (True, "a program that forked twice and left its session was ended with all its children"),
        (True, "a program with 64 MiB was ended when it took more"),
        (True, "processor time: the kernel per process, the sum by looking; open files: the kernel"),
    ]
    assert seen.controllers <= {"memory", "pids"}
