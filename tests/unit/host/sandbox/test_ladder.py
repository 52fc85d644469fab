"""The ways to keep a sandbox: which of them work here, and what each makes of a policy."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import SandboxUnavailable
from holdfast.host.sandbox import landlock
from holdfast.host.sandbox.backends import SandboxProbe
from holdfast.host.sandbox.ladder import Ladder
from holdfast.sandbox import Access, Backing, Guarantees, Protection
from tests.fakes.policies import ROOT, asked

READ, WRITE, DENY = Access.READ, Access.WRITE, Access.DENY
NO_COMPILER = "the fork server is not compiled: install a C compiler, then install holdfast again"
NO_BWRAP = "bwrap is not installed: install the package bubblewrap"

Sandboxes = Callable[..., Ladder]


pytestmark = pytest.mark.usefixtures("nothing_left")


def reasons(ladder: Ladder) -> dict[str, str]:
    """Why each that was tried does not work."""
    return {name: probe.reason for name, probe in ladder.findings.items()}


# What works.


@pytest.mark.slow
def test_the_best_that_works_is_taken(sandboxes: Sandboxes, compiled: str) -> None:
    best = sandboxes(Backing.BUBBLEWRAP).guarantees
    ladder = Ladder(compiled)

    assert ladder.guarantees == best
    assert (best.backing, best.protection, best.exact) == (Backing.BUBBLEWRAP, Protection.HARD, True)
    pipes = "below writable ones" if landlock.version() >= landlock.LEAST else "named pipes of the host"
    expected = ["symbolic link", pipes, "locks", "set-gid"]
    assert len(best.weaknesses) == len(expected)
    assert [word for word, each in zip(expected, best.weaknesses, strict=True) if word in each] == expected
    assert ladder.findings[Backing.BUBBLEWRAP] == SandboxProbe()
    ladder.close()


def test_what_was_found_is_found_once(sandboxes: Sandboxes) -> None:
    """The same object each time: who asks often compares by identity."""
    ladder = sandboxes(Backing.LANDLOCK)

    assert ladder.guarantees is ladder.guarantees


def test_without_bubblewrap_landlock_is_next(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/none")
    ladder = Ladder(compiled)
    found = ladder.guarantees
    ladder.close()

    assert ladder.findings[Backing.BUBBLEWRAP].reason == NO_BWRAP
    if found.backing is None:
        pytest.skip(found.reason)
    assert (found.backing, found.protection, found.exact) == (Backing.LANDLOCK, Protection.SOFT, True)
    assert found.reason == f"bubblewrap: {NO_BWRAP}"
    assert found.weaknesses == tuple(landlock.weaknesses(landlock.version()))


def test_without_a_helper_there_is_neither_bubblewrap_nor_a_witness() -> None:
    ladder = Ladder(None)
    found = ladder.guarantees
    ladder.close()

    assert ladder.findings[Backing.BUBBLEWRAP].reason == NO_COMPILER
    if found.backing is None:
        pytest.skip(found.reason)
    assert (found.backing, found.protection, found.exact) == (Backing.LANDLOCK, Protection.NONE, False)


@pytest.mark.parametrize("known", [0, landlock.LEAST - 1])
def test_without_either_there_is_none_and_both_reasons_are_told(
    known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: known)
    ladder = Ladder(None)
    found = ladder.guarantees

    needed = f"the kernel has version {known} of Landlock, needed is {landlock.LEAST}"
    assert found == Guarantees(None, reason=f"bubblewrap: {NO_COMPILER}; landlock: {needed}")
    with pytest.raises(SandboxUnavailable, match="needed is") as caught:
        ladder.make(asked(ROOT), None)
    assert caught.value.reason == found.reason
    ladder.close()


def test_a_machine_whose_calls_are_not_known_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter with wrong numbers would keep nothing."""
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    ladder = Ladder(None)

    assert reasons(ladder) == dict.fromkeys(Backing, "system calls of pdp11 are not known")
    with pytest.raises(SandboxUnavailable):
        ladder.make(asked(ROOT), None)
    ladder.close()


def test_a_kernel_that_refuses_rulesets_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some containers forbid the call though the kernel has it."""
    monkeypatch.setattr(landlock, "_BENEATH", 99)
    if landlock.version() < landlock.LEAST:
        pytest.skip("there is no Landlock here")
    ladder = Ladder(None, only=Backing.LANDLOCK)

    assert reasons(ladder) == {Backing.LANDLOCK: "the kernel refuses a ruleset: Invalid argument"}
    ladder.close()


@pytest.mark.parametrize("only", Backing)
def test_only_the_way_that_was_chosen_is_tried(compiled: str, only: Backing) -> None:
    ladder = Ladder(compiled, only=only)

    assert ladder.findings.keys() == {only}
    assert ladder.guarantees.backing in (only, None)
    ladder.close()


def test_what_is_switched_off_is_not_tried(compiled: str) -> None:
    ladder = Ladder(compiled, off=True)

    assert (ladder.guarantees, ladder.findings) == (Guarantees(None, reason="sandboxes are switched off"), {})
    with pytest.raises(SandboxUnavailable, match="switched off"):
        ladder.make(asked(ROOT), None)
    ladder.close()
    ladder.close()


def test_a_ladder_that_nobody_asked_leaves_nothing(compiled: str) -> None:
    """What it has tried out must be reaped; the fixture looks."""
    Ladder(compiled).close()


def fake_bwrap(folder: Path, script: str) -> None:
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'no user namespaces for you' >&2; exit 1", "no user namespaces for you"),
        ("exit 3", "{} ended with 3"),
        ("kill -9 $$", "{} ended with -9"),
    ],
)
def test_a_bubblewrap_that_does_not_work_says_why(
    compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    """It is really run: being installed is not enough."""
    fake_bwrap(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path))
    ladder = Ladder(compiled, only=Backing.BUBBLEWRAP)
    found = ladder.guarantees
    ladder.close()

    assert found == Guarantees(None, reason=f"bubblewrap: {reason.format(tmp_path.resolve() / 'bwrap')}")


def test_a_bubblewrap_that_hangs_does_not_work(
    compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It visits every mount, and one of a dead server holds it up for as long as that is dead."""
    fake_bwrap(tmp_path, "exec /bin/sleep 1000")
    monkeypatch.setenv("PATH", str(tmp_path))
    ladder = Ladder(compiled, only=Backing.BUBBLEWRAP, patience=0.3)
    before = ladder.tried_out

    found = ladder.guarantees

    program = tmp_path.resolve() / "bwrap"
    assert found == Guarantees(None, reason=f"bubblewrap: {program} hangs: it did not end within 0.3 s")
    assert (before, ladder.tried_out) == (False, True)
    ladder.close()


def test_a_ladder_does_not_wait_for_what_hangs_when_it_is_closed(
    compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_bwrap(tmp_path, "exec /bin/sleep 1000")
    monkeypatch.setenv("PATH", str(tmp_path))

    Ladder(compiled, patience=1000.0).close()


def test_a_program_in_the_servers_own_directory_is_not_trusted(
    compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may have put it there."""
    fake_bwrap(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    ladder = Ladder(compiled, only=Backing.BUBBLEWRAP)

    assert reasons(ladder) == {Backing.BUBBLEWRAP: NO_BWRAP}
    ladder.close()
