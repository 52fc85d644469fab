"""The ways to keep a sandbox: which of them work here, and what each makes of a policy."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import SandboxUnavailable
from holdfast.host.sandbox import landlock
from holdfast.host.sandbox.backends import SandboxProbe
from holdfast.host.sandbox.confinement import Confiner
from holdfast.sandbox import Access, Guarantees, Protection, SandboxBackendName, SandboxEntry
from tests.fakes.policies import ROOT, asked

READ, WRITE, DENY = Access.READ, Access.WRITE, Access.DENY
NO_COMPILER = "the fork server is not compiled: install a C compiler, then install holdfast again"
NO_BWRAP = "bwrap is not installed: install the package bubblewrap"

Sandboxes = Callable[..., Confiner]


pytestmark = pytest.mark.usefixtures("nothing_left")


def reasons(confiner: Confiner) -> dict[str, str]:
    """Why each that was tried does not work."""
    return {name: probe.reason for name, probe in confiner.findings.items()}


# What works.


@pytest.mark.slow
def test_the_best_that_works_is_taken(sandboxes: Sandboxes, compiled: str) -> None:
    best = sandboxes(SandboxBackendName.BUBBLEWRAP).guarantees
    confiner = Confiner(compiled)

    assert confiner.guarantees == best
    assert (best.backend, best.protection, best.exact) == (
        SandboxBackendName.BUBBLEWRAP,
        Protection.HARD,
        True,
    )
    pipes = "below writable ones" if landlock.version() >= landlock.LEAST else "named pipes of the host"
    expected = ["symbolic link", pipes, "hard links", "locks", "set-gid"]
    assert len(best.weaknesses) == len(expected)
    assert [word for word, each in zip(expected, best.weaknesses, strict=True) if word in each] == expected
    assert confiner.findings[SandboxBackendName.BUBBLEWRAP] == SandboxProbe()
    confiner.close()


def test_what_was_found_is_found_once(sandboxes: Sandboxes) -> None:
    """The same object each time: who asks often compares by identity."""
    confiner = sandboxes(SandboxBackendName.LANDLOCK)

    assert confiner.guarantees is confiner.guarantees


def test_without_bubblewrap_landlock_is_next(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/none")
    confiner = Confiner(compiled)
    found = confiner.guarantees
    confiner.close()

    assert confiner.findings[SandboxBackendName.BUBBLEWRAP].reason == NO_BWRAP
    if found.backend is None:
        pytest.skip(found.reason)
    assert (found.backend, found.protection, found.exact) == (
        SandboxBackendName.LANDLOCK,
        Protection.SOFT,
        True,
    )
    assert found.reason == f"bubblewrap: {NO_BWRAP}"
    assert found.weaknesses == tuple(landlock.weaknesses(landlock.version()))


def test_without_a_helper_there_is_neither_bubblewrap_nor_a_witness() -> None:
    confiner = Confiner(None)
    found = confiner.guarantees
    confiner.close()

    assert confiner.findings[SandboxBackendName.BUBBLEWRAP].reason == NO_COMPILER
    if found.backend is None:
        pytest.skip(found.reason)
    assert (found.backend, found.protection, found.exact) == (
        SandboxBackendName.LANDLOCK,
        Protection.NONE,
        False,
    )


@pytest.mark.parametrize("known", [0, landlock.LEAST - 1])
def test_without_either_there_is_none_and_both_reasons_are_told(
    known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: known)
    confiner = Confiner(None)
    found = confiner.guarantees

    needed = f"the kernel has version {known} of Landlock, needed is {landlock.LEAST}"
    assert found == Guarantees(None, reason=f"bubblewrap: {NO_COMPILER}; landlock: {needed}")
    with pytest.raises(SandboxUnavailable, match="needed is") as caught:
        confiner.confine(asked(ROOT), None)
    told, _, cures = caught.value.reason.partition("; what may help: ")
    assert told == found.reason
    assert cures == "; ".join(f"{name}: {probe.cure}" for name, probe in confiner.findings.items())
    confiner.close()


def test_whoever_is_refused_is_told_what_keeps_sandboxes_here_and_what_would_keep_more() -> None:
    """Who asked has never seen the host, and whoever runs it has not seen the request."""
    if landlock.version() < landlock.LEAST:
        pytest.skip("there is no Landlock here")
    confiner = Confiner(None)  # Bubblewrap needs the program that is missing then.
    denied = SandboxEntry("/etc/passwd", Access.DENY)

    with pytest.raises(SandboxUnavailable) as caught:
        confiner.confine(asked(ROOT, denied), None)

    cure = confiner.findings[SandboxBackendName.BUBBLEWRAP].cure
    assert caught.value.reason == (
        "Landlock cannot deny '/etc/passwd' inside of a place that can be read;"
        f" sandboxes are kept by landlock here; what may help: bubblewrap: {cure}"
    )
    confiner.close()


def test_a_machine_whose_calls_are_not_known_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter with wrong numbers would keep nothing."""
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    confiner = Confiner(None)

    assert reasons(confiner) == dict.fromkeys(SandboxBackendName, "system calls of pdp11 are not known")
    with pytest.raises(SandboxUnavailable):
        confiner.confine(asked(ROOT), None)
    confiner.close()


def test_a_kernel_that_refuses_rulesets_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some containers forbid the call though the kernel has it."""
    monkeypatch.setattr(landlock, "_BENEATH", 99)
    if landlock.version() < landlock.LEAST:
        pytest.skip("there is no Landlock here")
    confiner = Confiner(None, only=SandboxBackendName.LANDLOCK)

    assert reasons(confiner) == {
        SandboxBackendName.LANDLOCK: "the kernel refuses a ruleset: Invalid argument"
    }
    confiner.close()


@pytest.mark.parametrize("only", SandboxBackendName)
def test_only_the_way_that_was_chosen_is_tried(compiled: str, only: SandboxBackendName) -> None:
    confiner = Confiner(compiled, only=only)

    assert confiner.findings.keys() == {only}
    assert confiner.guarantees.backend in (only, None)
    confiner.close()


def test_what_is_switched_off_is_not_tried(compiled: str) -> None:
    confiner = Confiner(compiled, off=True)

    assert (confiner.guarantees, confiner.findings) == (
        Guarantees(None, reason="sandboxes are switched off"),
        {},
    )
    with pytest.raises(SandboxUnavailable, match="switched off"):
        confiner.confine(asked(ROOT), None)
    confiner.close()
    confiner.close()


def test_what_nobody_asked_leaves_nothing(compiled: str) -> None:
    """What it has tried out must be reaped; the fixture looks."""
    Confiner(compiled).close()


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
    confiner = Confiner(compiled, only=SandboxBackendName.BUBBLEWRAP)
    found = confiner.guarantees
    confiner.close()

    assert found == Guarantees(None, reason=f"bubblewrap: {reason.format(tmp_path.resolve() / 'bwrap')}")


def test_a_bubblewrap_that_hangs_does_not_work(
    compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It visits every mount, and one of a dead server holds it up for as long as that is dead."""
    fake_bwrap(tmp_path, "exec /bin/sleep 1000")
    monkeypatch.setenv("PATH", str(tmp_path))
    confiner = Confiner(compiled, only=SandboxBackendName.BUBBLEWRAP, patience=0.3)
    before = confiner.tried_out

    found = confiner.guarantees

    program = tmp_path.resolve() / "bwrap"
    assert found == Guarantees(None, reason=f"bubblewrap: {program} hangs: it did not end within 0.3 s")
    assert (before, confiner.tried_out) == (False, True)
    confiner.close()


def test_what_hangs_is_not_waited_for_at_the_end(
    compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_bwrap(tmp_path, "exec /bin/sleep 1000")
    monkeypatch.setenv("PATH", str(tmp_path))

    Confiner(compiled, patience=1000.0).close()


def test_a_program_in_the_servers_own_directory_is_not_trusted(
    compiled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may have put it there."""
    fake_bwrap(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    confiner = Confiner(compiled, only=SandboxBackendName.BUBBLEWRAP)

    assert reasons(confiner) == {SandboxBackendName.BUBBLEWRAP: NO_BWRAP}
    confiner.close()
