"""What each way to keep a sandbox makes of a policy, and what is kept for the next command."""

from __future__ import annotations

import gc
import os
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.errors import BadRequest, SandboxUnavailable
from holdfast.host.sandbox import bubblewrap, landlock
from holdfast.host.sandbox.confinement import Confiner
from holdfast.sandbox import (
    Access,
    Named,
    Pattern,
    Protection,
    Sandbox,
    SandboxBackendName,
    SandboxEntry,
    Where,
)
from holdfast.value import replace
from tests.fakes.policies import ROOT, asked, told, workspace
from tests.fakes.process import nothing_left_open, open_files

READ, WRITE, DENY = Access.READ, Access.WRITE, Access.DENY
NO_COMPILER = "the fork server is not compiled: install a C compiler, then install holdfast again"
NO_BWRAP = "bwrap is not installed: install the package bubblewrap"

Sandboxes = Callable[..., Confiner]


pytestmark = pytest.mark.usefixtures("nothing_left")


# Confinements.


def test_a_confinement_of_bubblewrap(sandboxes: Sandboxes, work: Path) -> None:
    confiner = sandboxes(SandboxBackendName.BUBBLEWRAP)

    confinement = confiner.confine(workspace(work), None)

    assert confinement.wrapper == os.fsencode(os.path.realpath(shutil.which("bwrap") or ""))
    assert told(confinement)[-2:] == ["--cap-drop", "ALL"]
    assert "--unshare-net" in told(confinement)
    assert "--unshare-net" not in told(confiner.confine(asked(ROOT, network=True), None))
    assert confinement.masks == tuple(
        os.fsencode(work / name) for name in (".agents", ".aws", ".codex", ".git")
    )
    assert confinement.rules == (
        b"r/",
        b"w%b" % os.fsencode(work),
        *(b"m" + mask for mask in confinement.masks),
    )
    assert (confinement.ruleset, confinement.witness, confinement.guard, confinement.powerless) == (
        None,
        True,
        False,
        False,
    )
    assert confinement.handed is confinement.arguments


def test_a_confinement_of_landlock(sandboxes: Sandboxes, work: Path) -> None:
    confiner = sandboxes(SandboxBackendName.LANDLOCK)

    confinement = confiner.confine(workspace(work), None)
    plain = confiner.confine(asked(ROOT), None)

    assert confinement.rules[:2] == (b"r/", b"w%b" % os.fsencode(work))
    assert {b"w/dev/null", b"m%b/.git" % os.fsencode(work)} <= set(confinement.rules)
    assert (confinement.wrapper, confinement.arguments, confinement.masks) == (None, None, ())
    assert (confinement.witness, confinement.guard, plain.guard) == (True, True, False)
    assert (confinement.powerless, plain.powerless) == (True, True)
    assert confinement.handed is confinement.ruleset is not None


def test_without_a_witness_nobody_needs_the_rules(sandboxes: Sandboxes) -> None:
    confinement = sandboxes(SandboxBackendName.LANDLOCK, witness=False).confine(asked(ROOT), None)

    assert (confinement.rules, confinement.witness, confinement.guard) == ((), False, False)


@pytest.mark.parametrize("backend", SandboxBackendName)
def test_where_only_the_network_is_off_nothing_is_mounted(
    sandboxes: Sandboxes, backend: SandboxBackendName
) -> None:
    confinement = sandboxes(backend).confine(Sandbox(None, network=False, cwd="/"), None)

    assert (confinement.wrapper, confinement.masks, confinement.rules, confinement.guard) == (
        None,
        (),
        (),
        False,
    )
    assert (confinement.ruleset is not None) == (landlock.version() >= landlock.LEAST)
    assert confinement.witness


def test_a_protected_link_is_guarded_where_a_mount_cannot_cover_it(sandboxes: Sandboxes, work: Path) -> None:
    (work / "real").mkdir()
    (work / ".git").symlink_to("real")

    confinement = sandboxes(SandboxBackendName.BUBBLEWRAP).confine(workspace(work), None)

    assert confinement.guard
    assert b"l%b/.git" % os.fsencode(work) in confinement.rules


def test_on_an_old_kernel_a_protected_link_is_refused_or_let_go(
    sandboxes: Sandboxes, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guard without the means to hand descriptors over would refuse every write."""
    (work / "real").mkdir()
    (work / ".git").symlink_to("real")
    confiner = sandboxes(SandboxBackendName.BUBBLEWRAP)
    monkeypatch.setattr("platform.release", lambda: "5.8.0-generic")

    with pytest.raises(SandboxUnavailable, match="symbolic link"):
        confiner.confine(workspace(work), None)
    assert not confiner.confine(replace(workspace(work), least=Protection.NONE), None).guard


def test_the_directory_for_temporary_files_is_the_commands_own(sandboxes: Sandboxes, work: Path) -> None:
    sandbox = asked(ROOT, SandboxEntry(Named(Where.TMPDIR), WRITE))

    confinement = sandboxes(SandboxBackendName.LANDLOCK).confine(sandbox, str(work))

    assert b"w%b" % os.fsencode(work) in confinement.rules


@pytest.mark.parametrize("backend", SandboxBackendName)
def test_a_policy_that_makes_no_sense_is_refused(sandboxes: Sandboxes, backend: SandboxBackendName) -> None:
    with pytest.raises(BadRequest):
        sandboxes(backend).confine(asked(ROOT, SandboxEntry(Pattern("/**"), DENY)), None)


# What Landlock cannot keep.


def test_what_landlock_cannot_deny_is_refused(sandboxes: Sandboxes, work: Path) -> None:
    """And never run without."""
    for least in Protection:
        with pytest.raises(SandboxUnavailable) as caught:
            sandboxes(SandboxBackendName.LANDLOCK).confine(
                asked(ROOT, SandboxEntry(str(work), DENY), least=least), None
            )
        assert caught.value.reason == (
            f"Landlock cannot deny '{work}' inside of a place that can be read;"
            " sandboxes are kept by landlock here"
        )


@pytest.mark.parametrize(
    ("witness", "least", "kept"),
    [
        (True, Protection.HARD, False),
        (True, Protection.SOFT, True),
        (True, Protection.NONE, True),
        (False, Protection.HARD, False),
        (False, Protection.SOFT, False),
        (False, Protection.NONE, True),
    ],
)
def test_names_inside_a_writable_place_are_protected_as_well_as_asked_or_it_is_refused(
    sandboxes: Sandboxes, work: Path, least: Protection, *, witness: bool, kept: bool
) -> None:
    confiner = sandboxes(SandboxBackendName.LANDLOCK, witness=witness)
    sandbox = workspace(work, least=least)

    if kept:
        assert confiner.confine(sandbox, None).guard == witness
    else:
        with pytest.raises(SandboxUnavailable, match="from being written") as caught:
            confiner.confine(sandbox, None)
        most = "soft" if witness else "none"
        assert f"; `{most}` is all it can do; sandboxes are kept by" in caught.value.reason


def test_bubblewrap_keeps_what_landlock_cannot(sandboxes: Sandboxes, work: Path) -> None:
    (work / "secret").mkdir()
    sandbox = workspace(work, SandboxEntry(str(work / "secret"), DENY), least=Protection.HARD)

    assert f"{work}/secret" in told(sandboxes(SandboxBackendName.BUBBLEWRAP).confine(sandbox, None))


# What is kept for the next command.


@pytest.mark.parametrize("backend", SandboxBackendName)
def test_the_same_policy_has_the_same_descriptor(
    sandboxes: Sandboxes, backend: SandboxBackendName, work: Path
) -> None:
    """To make one anew takes longer than to start the command."""
    confiner = sandboxes(backend)

    first, second = confiner.confine(workspace(work), None), confiner.confine(workspace(work), None)
    other = confiner.confine(asked(ROOT), None)

    assert first.handed is second.handed is not other.handed


def test_a_directory_that_is_another_gets_another_ruleset(sandboxes: Sandboxes, work: Path) -> None:
    """A ruleset is about what was there when it was made."""
    confiner = sandboxes(SandboxBackendName.LANDLOCK)
    before = confiner.confine(workspace(work), None)
    work.rename(work.with_name("old"))
    work.mkdir()

    assert confiner.confine(workspace(work), None).handed is not before.handed


def test_no_more_are_kept_than_are_needed(sandboxes: Sandboxes, tmp_path: Path) -> None:
    """The oldest goes; who still has it keeps it."""
    confiner = sandboxes(SandboxBackendName.LANDLOCK)
    places = [tmp_path / str(number) for number in range(80)]
    for place in places:
        place.mkdir()
    before = len(open_files())
    first = confiner.confine(asked(SandboxEntry(str(places[0]), READ)), None)
    number = first.handed.fileno() if first.handed else -1
    for place in places:
        confiner.confine(asked(SandboxEntry(str(place), READ)), None)

    kept = len(open_files()) - before
    assert kept == 64 + 1
    assert "ruleset" in open_files()[number]
    again = confiner.confine(asked(SandboxEntry(str(places[0]), READ)), None)
    assert again.handed is not first.handed


@pytest.mark.parametrize("backend", SandboxBackendName)
def test_what_is_large_is_not_kept(sandboxes: Sandboxes, backend: SandboxBackendName, tmp_path: Path) -> None:
    """A client says how large it is, and 64 of them are kept for as long as the server runs."""
    confiner = sandboxes(backend)
    entries = []
    for number in range(400):
        (tmp_path / f"{number}-{'x' * 200}").touch()
        entries.append(SandboxEntry(f"{tmp_path}/{number}-{'x' * 200}", Access.WRITE))

    with nothing_left_open():
        confinement = confiner.confine(asked(ROOT, *entries), None)
        assert confinement.handed is not None
        del confinement
        gc.collect()


@pytest.mark.parametrize("backend", SandboxBackendName)
def test_nothing_is_left_when_it_is_closed(
    sandboxes: Sandboxes, backend: SandboxBackendName, work: Path
) -> None:
    confiner = sandboxes(backend)
    with nothing_left_open():
        for _ in range(3):
            confiner.confine(workspace(work), None)
        confiner.confine(Sandbox(None, network=False, cwd="/"), None)
        confiner.close()
        gc.collect()


# The file that is put over those that are denied.


def test_a_denied_file_is_covered_by_one_that_nobody_can_read(sandboxes: Sandboxes, work: Path) -> None:
    (work / "secret").touch()
    confiner = sandboxes(SandboxBackendName.BUBBLEWRAP)
    sandbox = workspace(work, SandboxEntry(str(work / "secret"), DENY))

    words = told(confiner.confine(sandbox, None))
    hidden = Path(words[words.index(f"{work}/secret") - 1])

    assert stat.S_IMODE(hidden.stat().st_mode) == 0
    assert hidden.stat().st_size == 0
    assert stat.S_IMODE(hidden.parent.stat().st_mode) == 0o700
    assert told(confiner.confine(sandbox, None)) == words
    confiner.close()
    assert not hidden.parent.exists()


def test_if_somebody_takes_it_away_another_one_is_made(sandboxes: Sandboxes, work: Path) -> None:
    """Some hosts clean their directories for temporary files."""
    (work / "secret").touch()
    confiner = sandboxes(SandboxBackendName.BUBBLEWRAP)
    sandbox = workspace(work, SandboxEntry(str(work / "secret"), DENY))
    words = told(confiner.confine(sandbox, None))
    first = Path(words[words.index(f"{work}/secret") - 1])
    shutil.rmtree(first.parent)

    words = told(confiner.confine(sandbox, None))

    assert Path(words[words.index(f"{work}/secret") - 1]).exists()


def test_it_is_where_the_command_cannot_write(
    sandboxes: Sandboxes, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who can write to it could make it readable, for everybody else too."""
    (work / "secret").touch()
    other = work.with_name("other")
    other.mkdir()
    monkeypatch.setattr(bubblewrap, "places", lambda: [str(work), "/none", str(other)])
    confiner = sandboxes(SandboxBackendName.BUBBLEWRAP)

    words = told(confiner.confine(workspace(work, SandboxEntry(str(work / "secret"), DENY)), None))

    assert Path(words[words.index(f"{work}/secret") - 1]).is_relative_to(other)


def test_where_everything_can_be_written_there_is_no_place_for_it(sandboxes: Sandboxes, work: Path) -> None:
    """And the command is refused."""
    (work / "secret").touch()
    sandbox = asked(SandboxEntry(Named(Where.ROOT), WRITE), SandboxEntry(str(work / "secret"), DENY))

    with pytest.raises(SandboxUnavailable, match="every place"):
        sandboxes(SandboxBackendName.BUBBLEWRAP).confine(sandbox, None)


def test_where_no_file_is_denied_there_is_none(
    sandboxes: Sandboxes, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = work.with_name("place")
    place.mkdir()
    monkeypatch.setattr(bubblewrap, "places", lambda: [str(place)])

    sandboxes(SandboxBackendName.BUBBLEWRAP).confine(workspace(work), None)

    assert list(place.iterdir()) == []


def test_many_threads_may_ask_for_confinements(sandboxes: Sandboxes, tmp_path: Path) -> None:
    """Each request is answered in a thread of its own."""
    confiner = sandboxes(SandboxBackendName.LANDLOCK)
    places = [tmp_path / str(number) for number in range(70)]
    for place in places:
        place.mkdir()

    with ThreadPoolExecutor(8) as pool:
        made = pool.map(
            lambda place: confiner.confine(asked(SandboxEntry(str(place), READ)), None), places * 4
        )

    assert all(confinement.ruleset is not None for confinement in made)
