"""Names inside of writable places that stay as they are."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.config import SandboxLimits
from holdfast.errors import LimitReached
from holdfast.host.sandbox.rules import PROTECTED, PolicySearch, resolve
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


def kept(top: Path, *names: str) -> dict[str, Rule]:
    """Rules for links below the desk."""
    return {name: Rule(f"{top}/desk/{name}", READ, file=True, link=True) for name in names}


def test_a_link_to_nowhere_must_stay_one(top: Path) -> None:
    (top / "desk/.git").symlink_to("none")

    assert protected(top / "desk") == {
        **masks(top / "desk"),
        **kept(top, ".git"),
        "none": Rule(f"{top}/desk/none", READ, missing=True),
    }


def test_every_link_on_the_way_must_stay_what_it_is(top: Path) -> None:
    """By its first link alone a name could be led anywhere."""
    (top / "desk/far/real").mkdir(parents=True)
    (top / "desk/.git").symlink_to("a/../mid/./real")
    (top / "desk/a").symlink_to(top / "desk/far")
    (top / "desk/far/mid").symlink_to("../mid")
    (top / "desk/mid").symlink_to("far")

    found = protected(top / "desk")

    # The first two dots are those of ``far``, because the kernel follows ``a`` before them.
    assert found == {
        **masks(top / "desk"),
        **kept(top, ".git", "a", "mid"),
        "far": Rule(f"{top}/desk/far", READ),
        "far/real": Rule(f"{top}/desk/far/real", READ),
    }


def test_of_a_way_that_ends_early_the_first_missing_name_stays_missing(top: Path) -> None:
    (top / "desk/.git").symlink_to("a/none/real")
    (top / "desk/a").symlink_to("sub")
    (top / "desk/sub").mkdir()

    assert protected(top / "desk") == {
        **masks(top / "desk"),
        **kept(top, ".git", "a"),
        "sub/none": Rule(f"{top}/desk/sub/none", READ, missing=True),
    }


def test_a_file_where_a_directory_should_be_stays_one(top: Path) -> None:
    """The command could make the directory in its place."""
    (top / "desk/.git").symlink_to("file/real")
    (top / "desk/file").touch()

    found = protected(top / "desk")

    assert found["file"] == Rule(f"{top}/desk/file", READ, file=True)
    assert "file/real" not in found


def test_links_that_lead_in_a_circle_all_stay(top: Path) -> None:
    (top / "desk/.git").symlink_to("a")
    (top / "desk/a").symlink_to(".git")

    assert protected(top / "desk") == {**masks(top / "desk"), **kept(top, ".git", "a")}


def test_the_way_of_a_link_is_looked_along_within_the_bounds_of_the_search(top: Path) -> None:
    (top / "desk/.git").symlink_to("sub/../" * 400)
    (top / "desk/sub").mkdir()
    search = PolicySearch(SandboxLimits(names=100))

    with pytest.raises(LimitReached, match="names"):
        resolve(Sandbox((SandboxEntry(str(top / "desk"), WRITE),), network=True, cwd="/"), None, search)


@pytest.mark.parametrize("text", ["gitdir: {}/desk/real\n", "gitdir:real", "gitdir: ../desk/./real \n"])
def test_a_file_that_points_to_the_directory_protects_it_too(top: Path, text: str) -> None:
    """So it is in worktrees and submodules."""
    (top / "desk/real").mkdir()
    (top / "desk/.git").write_text(text.format(top))

    found = protected(top / "desk")

    assert found[".git"] == Rule(f"{top}/desk/.git", READ, file=True)
    assert found["real"] == Rule(f"{top}/desk/real", READ)


@pytest.mark.parametrize("text", ["", "gitdir:", "gitdir: .", "other: real", "real", "\xff\0"])
def test_a_file_that_points_nowhere_is_just_a_file(top: Path, text: str) -> None:
    (top / "desk/real").mkdir()
    (top / "desk/file").touch()
    (top / "desk/.git").write_bytes(text.encode("latin-1"))

    assert protected(top / "desk") == {
        **masks(top / "desk"),
        ".git": Rule(f"{top}/desk/.git", READ, file=True),
    }


def test_what_a_file_points_to_stays_missing_or_a_file(top: Path) -> None:
    (top / "desk/.git").write_text("gitdir: a/none")
    (top / "desk/a").symlink_to(".")
    (top / "desk/.aws").symlink_to("file")
    (top / "desk/file").touch()

    assert protected(top / "desk") == {
        **masks(top / "desk"),
        **kept(top, "a", ".aws"),
        ".git": Rule(f"{top}/desk/.git", READ, file=True),
        "none": Rule(f"{top}/desk/none", READ, missing=True),
        "file": Rule(f"{top}/desk/file", READ, file=True),
    }


def test_a_file_behind_a_link_points_from_both_their_directories(top: Path) -> None:
    """Git begins at the link."""
    (top / "desk/sub/real").mkdir(parents=True)
    (top / "desk/real").mkdir()
    (top / "desk/.git").symlink_to("sub/file")
    (top / "desk/sub/file").write_text("gitdir: real")

    found = protected(top / "desk")

    assert found["real"] == Rule(f"{top}/desk/real", READ)
    assert found["sub/real"] == Rule(f"{top}/desk/sub/real", READ)


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
