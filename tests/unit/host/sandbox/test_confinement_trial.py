"""Programs that are run to see whether they can be."""

from __future__ import annotations

import errno
import os
import signal as signals
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

from holdfast.host.sandbox.confinement import Trial
from tests.fakes.process import has_children, nothing_left_open
from tests.fakes.server import eventually_sync


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    with nothing_left_open():
        yield


@pytest.mark.parametrize(
    ("argv", "failure"),
    [
        (["/bin/true"], ""),
        (["/bin/sh", "-c", "echo ' why '>&2; echo no"], ""),
        (["/bin/sh", "-c", "echo ' why '>&2; echo no; exit 1"], "why"),
        (["/bin/sh", "-c", "printf '\\377' >&2; exit 1"], "\ufffd"),
        (["/bin/false"], "/bin/false ended with 1"),
        (["/bin/sh", "-c", "kill -9 $$"], "/bin/sh ended with -9"),
        (["/none/such"], "/none/such: No such file or directory"),
        (["/etc/passwd"], "/etc/passwd: Permission denied"),
    ],
)
def test_a_trial_runs_at_once_and_is_asked_later(argv: list[str], failure: str) -> None:
    """As often as one likes: what was found stays."""
    trial = Trial(argv)

    assert [trial.failure(), trial.failure()] == [failure, failure]


def test_a_program_that_hangs_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    """Whoever asked could otherwise wait for as long as a dead disk takes."""
    said = tmp_path / "pids"
    trial = Trial(
        ["/bin/sh", "-c", f"sleep 1000 & echo $! $$ > {said}.new; mv {said}.new {said}; wait"], within=0.5
    )
    eventually_sync(said.exists)

    assert trial.failure() == "/bin/sh hangs: it did not end within 0.5 s"

    eventually_sync(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in said.read_text().split()))
    assert trial.over


def test_whether_it_is_over_can_be_asked_without_waiting(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    trial = Trial(["/bin/sh", "-c", f"echo why >&2; read line < {fifo}; exit 2"])
    assert not trial.over

    fifo.write_text("on\n")

    eventually_sync(lambda: trial.over)
    assert trial.failure() == "why"


def test_a_program_need_not_be_waited_for() -> None:
    trial = Trial(["/bin/sleep", "1000"])

    trial.stop()
    trial.stop()

    assert trial.over
    assert trial.failure() == "/bin/sleep was stopped while it was tried out"


def test_whoever_waits_goes_on_when_the_trial_is_stopped() -> None:
    """A server is stopped while one of its threads waits for a program that hangs."""
    trial, said = Trial(["/bin/sleep", "1000"], within=1000.0), Queue[str]()
    waiting = Thread(target=lambda: said.put(trial.failure()))
    waiting.start()

    trial.stop()

    assert said.get() == "/bin/sleep was stopped while it was tried out"
    waiting.join()


def test_an_end_that_nobody_can_tell_is_a_failure() -> None:
    """Where SIGCHLD is ignored the kernel keeps no exit codes."""
    before = signals.signal(signals.SIGCHLD, signals.SIG_IGN)
    try:
        assert Trial(["/bin/true"]).failure() == "/bin/true ended with an unknown code"
    finally:
        signals.signal(signals.SIGCHLD, before)


def test_a_program_hears_of_the_end_of_its_children_though_we_do_not(tmp_path: Path) -> None:
    """Bubblewrap waits for the command in it."""
    before = signals.signal(signals.SIGCHLD, signals.SIG_IGN)
    try:
        Trial(["/bin/sh", "-c", f"/bin/grep SigIgn /proc/$$/status >{tmp_path}/said"]).failure()
    finally:
        signals.signal(signals.SIGCHLD, before)

    ignored = int((tmp_path / "said").read_text(encoding="ascii").split()[1], 16)
    assert not ignored & 1 << signals.SIGCHLD - 1


@pytest.mark.parametrize("kind", ["killed", "in a thread"])
def test_a_program_that_cannot_be_watched_is_not_left(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Nor is one waited for that not even a signal ends."""
    if kind == "killed":
        monkeypatch.setattr(os, "pidfd_open", _refuse)
        trial = Trial(["/bin/sleep", "1000"])
        assert trial.failure() == "/bin/sleep: Function not implemented"
    else:
        monkeypatch.setattr("holdfast.host.sandbox.confinement._END", 0.0)
        trial = Trial(["/bin/sleep", "1000"], within=0.0)
        assert "hangs" in trial.failure()

    eventually_sync(lambda: not has_children())


def _refuse(*_: object) -> int:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def test_a_long_story_is_cut_short() -> None:
    assert Trial(["/bin/sh", "-c", "head -c 9999 /dev/zero | tr '\\0' x >&2; exit 1"]).failure() == "x" * 500


def test_it_has_no_variables_and_nothing_to_read() -> None:
    assert Trial(["/bin/sh", "-c", 'test -z "$HOME" && ! read line']).failure() == ""
