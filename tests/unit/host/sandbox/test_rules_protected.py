"""Names inside of writable places that stay as they are."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.host.sandbox.rules import PROTECTED, resolve
from holdfast.sandbox import Access, Named, Rule, Rules, Sandbox, SandboxEntry, Where

READ, WRITE, DENY = Access.READ, Access.WRITE, Access.DENY
ROOT = SandboxEntry(Named(Where.ROOT), READ)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Without symbolic links above it."""
    (tmp_path / "desk").mkdir()
    return tmp_path.resolve()


def made(*entries: SandboxEntry) -> Rules:
    return resolve(Sandbox(entries, network=True, cwd="/"), None)


def protected(root: Path, *entries: SandboxEntry) -> dict[str, Rule]:
    """What is ruled below a writable root, by its name."""
    found = made(ROOT, SandboxEntry(str(root), WRITE), *entries)
    return {
        os.path.relpath(rule.path, root): rule for rule in found.rules if rule.path.startswith(f"{root}/")
    }


def masks(root: Path) -> dict[str, Rule]:
    return {name: Rule(f"{root}/{name}", READ, missing=True) for name in PROTECTED}


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_where_nobody_can_make_a_name_there_is_none_to_protect(top: Path) -> None:
    """Nor could there be a mask."""
    (top / "desk").chmod(0o555)

    found = protected(top / "desk")

    (top / "desk").chmod(0o755)
    assert found == {}


def test_names_that_are_not_there_cannot_come_into_being(top: Path) -> None:
    assert protected(top / "desk") == masks(top / "desk")


def test_a_name_that_is_there_can_only_be_read(top: Path) -> None:
    (top / "desk/.git").mkdir()
    (top / "desk/.aws").touch()

    assert protected(top / "desk") == {
        **masks(top / "desk"),
        ".git": Rule(f"{top}/desk/.git", READ),
        ".aws": Rule(f"{top}/desk/.aws", READ, file=True),
    }


def test_only_what_is_directly_below_a_writable_place_is_protected(top: Path) -> None:
    (top / "desk/sub/.git").mkdir(parents=True)

    assert protected(top / "desk") == masks(top / "desk")


def test_every_writable_place_has_its_own(top: Path) -> None:
    (top / "desk/sub").mkdir()

    found = protected(top / "desk", SandboxEntry(str(top / "desk/sub"), WRITE))

    assert found.keys() == {*masks(top / "desk"), "sub", *(f"sub/{name}" for name in PROTECTED)}


@pytest.mark.parametrize("access", [WRITE, DENY, READ])
def test_an_entry_for_exactly_that_path_counts(top: Path, access: Access) -> None:
    """Whoever names it means it."""
    (top / "desk/.git").mkdir()

    found = protected(top / "desk", SandboxEntry(f"{top}/desk/.git", access))

    assert found[".git"] == Rule(f"{top}/desk/.git", access)
    assert found.keys() >= masks(top / "desk").keys()


def test_an_entry_for_that_path_counts_under_another_name_of_the_root(top: Path) -> None:
    """The client may know the workspace by a link to it."""
    (top / "desk/.git").mkdir()
    (top / "link").symlink_to("desk")

    found = protected(top / "desk", SandboxEntry(f"{top}/link/.git", WRITE))

    assert (found[".git"].path, found[".git"].access) == (f"{top}/desk/.git", WRITE)


def test_a_name_that_is_granted_has_protected_names_of_its_own(top: Path) -> None:
    (top / "desk/.git").mkdir()

    found = protected(top / "desk", SandboxEntry(f"{top}/desk/.git", WRITE))

    assert ".git/.git" in found


def test_a_mask_of_another_command_is_as_good_as_nothing(top: Path) -> None:
    """It goes away with that command, and then ours must be there."""
    (top / "desk/.git").mkdir()
    (top / "desk/.git").chmod(0o1555)
    (top / "desk/.aws").mkdir(mode=0o555)

    found = protected(top / "desk")

    assert found == {**masks(top / "desk"), ".aws": Rule(f"{top}/desk/.aws", READ)}


def test_a_link_must_stay_what_it_is_and_so_must_what_it_leads_to(top: Path) -> None:
    (top / "desk/real").mkdir()
    (top / "desk/.git").symlink_to("real")

    found = protected(top / "desk")

    assert found == {
        **masks(top / "desk"),
        ".git": Rule(f"{top}/desk/.git", READ, file=True, link=True),
        "real": Rule(f"{top}/desk/real", READ),
    }


def test_a_link_to_nowhere_must_stay_one(top: Path) -> None:
    (top / "desk/.git").symlink_to("none")

    assert protected(top / "desk")[".git"] == Rule(f"{top}/desk/.git", READ, file=True, link=True)


@pytest.mark.parametrize("text", ["gitdir: {}/desk/real\n", "gitdir:real", "gitdir: ../desk/./real \n"])
def test_a_file_that_points_to_the_directory_protects_it_too(top: Path, text: str) -> None:
    """So it is in worktrees and submodules."""
    (top / "desk/real").mkdir()
    (top / "desk/.git").write_text(text.format(top))

    found = protected(top / "desk")

    assert found[".git"] == Rule(f"{top}/desk/.git", READ, file=True)
    assert found["real"] == Rule(f"{top}/desk/real", READ)


@pytest.mark.parametrize(
    "text", ["", "gitdir:", "gitdir: none", "gitdir: file", "other: real", "real", "\xff\0"]
)
def test_a_file_that_points_nowhere_is_just_a_file(top: Path, text: str) -> None:
    (top / "desk/real").mkdir()
    (top / "desk/file").touch()
    (top / "desk/.git").write_bytes(text.encode("latin-1"))

    assert protected(top / "desk") == {
        **masks(top / "desk"),
        ".git": Rule(f"{top}/desk/.git", READ, file=True),
    }


def test_a_pointer_with_a_nul_byte_points_nowhere(top: Path) -> None:
    """Any command may have written it: no start may fail of it."""
    (top / "desk/.git").write_bytes(b"gitdir: a\0b\n")

    assert protected(top / "desk") == {
        **masks(top / "desk"),
        ".git": Rule(f"{top}/desk/.git", READ, file=True),
    }


@pytest.mark.timeout(5)
def test_a_pipe_in_place_of_the_file_holds_nobody_up(top: Path) -> None:
    os.mkfifo(top / "desk/.git")

    assert protected(top / "desk")[".git"] == Rule(f"{top}/desk/.git", READ, file=True)


@pytest.mark.parametrize("kind", ["link", "pointer"])
def test_what_is_pointed_at_does_not_become_readable_by_that(top: Path, kind: str) -> None:
    """Protection takes away.  A command could have written the pointer, in a place that was no root then."""
    (top / "secret").mkdir()
    if kind == "link":
        (top / "desk/.git").symlink_to("../secret")
    else:
        (top / "desk/.git").write_text("gitdir: ../secret")

    found = made(SandboxEntry(str(top / "desk"), WRITE))

    assert found.access(f"{top}/secret") is DENY


def test_what_is_pointed_at_and_denied_stays_denied(top: Path) -> None:
    (top / "desk/secret").mkdir()
    (top / "desk/.git").write_text("gitdir: secret")

    found = made(ROOT, SandboxEntry(str(top / "desk"), WRITE), SandboxEntry(f"{top}/desk/secret", DENY))

    assert found.access(f"{top}/desk/secret") is DENY


def test_what_is_pointed_at_and_granted_by_name_stays_granted(top: Path) -> None:
    """As for the names themselves."""
    (top / "git").mkdir()
    (top / "desk/.git").write_text("gitdir: ../git")

    found = made(ROOT, SandboxEntry(str(top / "desk"), WRITE), SandboxEntry(f"{top}/git", WRITE))

    assert found.access(f"{top}/git") is WRITE


def test_a_writable_root_of_everything_is_protected_at_its_top() -> None:
    found = made(SandboxEntry(Named(Where.ROOT), WRITE))

    makes = PROTECTED if os.access("/", os.W_OK) else ()
    there = [name for name in PROTECTED if os.path.lexists(f"/{name}")]
    assert {rule.path for rule in found.rules} == {"/", *(f"/{name}" for name in [*makes, *there])}


def test_a_directory_that_looks_like_a_mask_but_can_be_written_is_none(top: Path) -> None:
    """``/tmp`` has the same bit."""
    (top / "desk/.git").mkdir()
    (top / "desk/.git").chmod(0o1777)

    assert stat.S_IMODE(os.stat(top / "desk/.git").st_mode) == 0o1777
    assert protected(top / "desk")[".git"] == Rule(f"{top}/desk/.git", READ)
