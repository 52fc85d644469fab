"""From a policy to rules, on a real disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import BadRequest
from holdfast.host.sandbox.rules import EVERYTHING, PROTECTED, enclosed, resolve
from holdfast.sandbox import Access, Named, Pattern, Rule, Rules, Sandbox, SandboxEntry, Where

READ, WRITE, DENY = Access.READ, Access.WRITE, Access.DENY
ROOT = SandboxEntry(Named(Where.ROOT), READ)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Without symbolic links above it."""
    (tmp_path / "desk").mkdir()
    return tmp_path.resolve()


def made(
    *entries: SandboxEntry,
    roots: tuple[Path, ...] = (),
    cwd: str = "/",
    tmpdir: str | None = None,
    depth: int | None = None,
) -> Rules:
    found = resolve(
        Sandbox(entries, network=True, cwd=cwd, roots=tuple(map(str, roots)), pattern_depth=depth), tmpdir
    )
    assert len({rule.path for rule in found.rules}) == len(found.rules)
    return found


def listed(*entries: SandboxEntry, roots: tuple[Path, ...] = (), tmpdir: str | None = None) -> list[Rule]:
    """The rules but for those about protected names."""
    found = made(*entries, roots=roots, tmpdir=tmpdir).rules
    return [rule for rule in found if os.path.basename(rule.path) not in PROTECTED]


# Entries.


def test_all_files_are_one_rule() -> None:
    assert resolve(Sandbox(None, network=False, cwd="/"), None) == EVERYTHING
    assert EVERYTHING.rules == (Rule("/", WRITE),)


@pytest.mark.parametrize("preset", [Sandbox.workspace(), Sandbox.read_only(deny=["a/*"])])
def test_what_is_relative_to_nothing_has_no_rules(preset: Sandbox) -> None:
    """Below the root it would mean another place."""
    with pytest.raises(BadRequest, match="needs a directory"):
        resolve(preset, None)


def test_nothing_listed_is_no_rule_at_all() -> None:
    """Not even the program can be seen."""
    assert made() == Rules([])


@pytest.mark.parametrize(
    ("entries", "access"),
    [
        ([READ, WRITE], WRITE),
        ([WRITE, READ], WRITE),
        ([DENY, WRITE], DENY),
        ([WRITE, DENY], DENY),
        ([READ, DENY], DENY),
        ([READ, READ], READ),
    ],
)
def test_of_two_entries_for_one_path_deny_counts_over_write_over_read(
    top: Path, entries: list[Access], access: Access
) -> None:
    assert listed(*(SandboxEntry(str(top), each) for each in entries)) == [Rule(str(top), access)]


def test_a_tree_a_part_of_it_and_a_part_of_that(top: Path) -> None:
    """Write, deny, write: each entry is a rule of its own."""
    (top / "desk/a/b").mkdir(parents=True)
    desk, inner, innermost = (str(top / path) for path in ("desk", "desk/a", "desk/a/b"))

    found = listed(SandboxEntry(innermost, WRITE), ROOT, SandboxEntry(inner, DENY), SandboxEntry(desk, WRITE))

    assert found == [Rule("/", READ), Rule(desk, WRITE), Rule(inner, DENY), Rule(innermost, WRITE)]


@pytest.mark.parametrize(
    "text", ["{}/desk", "{}/desk/", "{}/./desk", "{}/none/../desk", "{}//desk", "/{}/desk"]
)
def test_a_path_may_be_written_in_many_ways(top: Path, text: str) -> None:
    assert listed(SandboxEntry(text.format(top), READ)) == [Rule(str(top / "desk"), READ)]


def test_a_file_is_told_from_a_directory(top: Path) -> None:
    """It is covered and allowed in other ways, and has nothing below it to protect."""
    (top / "file").touch()

    assert made(SandboxEntry(str(top / "file"), WRITE)).rules == (Rule(str(top / "file"), WRITE, file=True),)


@pytest.mark.parametrize("access", [READ, WRITE])
def test_what_is_not_there_cannot_be_granted(top: Path, access: Access) -> None:
    """As the reference has it: such a root is skipped."""
    assert made(ROOT, SandboxEntry(str(top / "none"), access)) == Rules([Rule("/", READ)])


def test_what_is_not_there_can_be_denied_where_it_could_come_into_being(top: Path) -> None:
    """Elsewhere there is nothing to keep it from."""
    missing = str(top / "desk/none")
    writable, readable = SandboxEntry(str(top / "desk"), WRITE), SandboxEntry(str(top / "desk"), READ)

    assert Rule(missing, DENY, missing=True) in made(writable, SandboxEntry(missing, DENY)).rules
    assert made(readable, SandboxEntry(missing, DENY)) == Rules([Rule(str(top / "desk"), READ)])
    assert (
        Rule(missing, DENY, missing=True)
        not in made(writable, SandboxEntry(missing, DENY, if_there=True)).rules
    )


@pytest.mark.parametrize("mask", [False, True])
def test_of_what_is_denied_and_not_there_the_first_missing_part_is_covered(top: Path, *, mask: bool) -> None:
    """There is no other place for a mask; what another sandbox has put there is as good as nothing."""
    if mask:
        (top / "desk/a").mkdir()
        (top / "desk/a").chmod(0o1555)
    writable = SandboxEntry(str(top / "desk"), WRITE)

    found = listed(writable, SandboxEntry(f"{top}/desk/a/b/c", DENY), SandboxEntry(f"{top}/desk/a/d", DENY))

    assert found == [Rule(f"{top}/desk", WRITE), Rule(f"{top}/desk/a", READ, missing=True)]
    assert listed(SandboxEntry(str(top), READ), SandboxEntry(f"{top}/desk/a/b/c", DENY)) == [
        Rule(str(top), READ)
    ]
    assert listed(SandboxEntry(f"{top}/desk/a/b", DENY)) == []


def test_what_is_covered_by_name_stays_denied(top: Path) -> None:
    writable = SandboxEntry(str(top / "desk"), WRITE)
    entries = (SandboxEntry(f"{top}/desk/a/b", DENY), SandboxEntry(f"{top}/desk/a", DENY))

    expected = [Rule(f"{top}/desk", WRITE), Rule(f"{top}/desk/a", DENY, missing=True)]
    assert listed(writable, *entries) == listed(writable, *reversed(entries)) == expected


def test_a_file_stays_in_the_way_of_what_is_denied_below_it(top: Path) -> None:
    """Or the command could put a directory in its place; but it does not become readable by that."""
    (top / "desk/file").touch()
    (top / "desk/link").symlink_to("link")
    writable = SandboxEntry(str(top / "desk"), WRITE)
    below = (SandboxEntry(f"{top}/desk/file/x", DENY), SandboxEntry(f"{top}/desk/link/x", DENY))

    assert listed(writable, *below)[1:] == [
        Rule(f"{top}/desk/file", READ, file=True),
        Rule(f"{top}/desk/link", READ, file=True, link=True),
    ]
    assert listed(*below) == []


@pytest.mark.parametrize("access", [READ, WRITE])
def test_what_only_a_sandbox_has_put_there_is_not_there(top: Path, access: Access) -> None:
    (top / "desk/a").mkdir()
    (top / "desk/a").chmod(0o1555)

    assert listed(SandboxEntry(str(top / "desk/a"), access)) == []


def test_what_is_denied_if_it_is_there_is_denied_when_it_is(top: Path) -> None:
    assert listed(SandboxEntry(str(top / "desk"), DENY, if_there=True)) == [Rule(str(top / "desk"), DENY)]


def test_a_link_stands_for_what_it_leads_to(top: Path) -> None:
    """Rules are about places; the other name is kept for where only some places can be seen."""
    (top / "link").symlink_to("desk")
    (top / "desk/file").touch()

    assert listed(SandboxEntry(str(top / "link"), READ)) == [
        Rule(str(top / "desk"), READ, aliases=(str(top / "link"),))
    ]
    assert listed(SandboxEntry(f"{top}/link/file", READ)) == [
        Rule(str(top / "desk/file"), READ, file=True, aliases=(f"{top}/link/file",))
    ]


def test_a_link_to_nowhere_is_what_is_not_there(top: Path) -> None:
    (top / "link").symlink_to("none")

    assert made(SandboxEntry(str(top / "link"), WRITE)) == Rules([])


@pytest.mark.parametrize("first", ["place", "link"])
def test_a_place_that_is_listed_under_both_its_names_has_both(top: Path, first: str) -> None:
    """``/bin`` is a link to ``/usr/bin`` on most hosts: whoever lists both wants ``/bin/sh`` to desk."""
    (top / "link").symlink_to("desk")
    entries = [SandboxEntry(str(top / "desk"), READ), SandboxEntry(str(top / "link"), READ)]
    if first == "link":
        entries.reverse()

    assert listed(*entries) == [Rule(str(top / "desk"), READ, aliases=(str(top / "link"),))]


def test_a_place_may_have_several_other_names(top: Path) -> None:
    """Whichever of the entries counts."""
    for name in ("first", "second"):
        (top / name).symlink_to("desk")
    names = [str(top / name) for name in ("first", "second")]

    (found,) = listed(
        SandboxEntry(names[0], READ), SandboxEntry(names[1], WRITE), SandboxEntry(str(top / "desk"), READ)
    )

    assert (found.access, set(found.aliases)) == (WRITE, set(names))


def test_a_path_with_a_nul_byte_is_refused() -> None:
    for place in ("/a\0b", Pattern("/tmp/a\0b"), Pattern("/tmp/\0/*"), Pattern("/tmp/*\0")):
        with pytest.raises(BadRequest):
            made(ROOT, SandboxEntry(place, DENY))


# Places that have a name.


def test_the_root_is_everything() -> None:
    assert made(ROOT) == Rules([Rule("/", READ)])


@pytest.mark.parametrize("access", [READ, WRITE])
def test_what_programs_need_can_only_be_read(access: Access) -> None:
    """Whatever the entry says: nobody means to have a command write to /usr."""
    found = made(SandboxEntry(Named(Where.MINIMAL), access)).rules

    paths = {rule.path: rule for rule in found}
    assert paths["/usr"] == Rule("/usr", READ)
    assert paths["/etc"] == Rule("/etc", READ)
    assert {rule.access for rule in found} == {READ}
    names = {name for rule in found for name in (*rule.aliases, rule.path)}
    assert {"/bin", "/usr", "/etc"} <= names
    assert {name for name in names if not name.startswith("/usr/")} <= {
        "/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw"
    }  # fmt: skip


def test_what_programs_need_can_be_denied() -> None:
    found = made(ROOT, SandboxEntry(Named(Where.MINIMAL), DENY))

    assert found.access("/usr/bin/env") is DENY


def test_project_roots_are_all_workspace_roots(top: Path) -> None:
    (top / "other").mkdir()
    everywhere = SandboxEntry(Named(Where.PROJECT_ROOTS), WRITE)

    found = listed(everywhere, roots=(top / "desk", top / "other"))

    assert found == [Rule(str(top / "desk"), WRITE), Rule(str(top / "other"), WRITE)]
    assert made(everywhere) == Rules([])


@pytest.mark.parametrize("below", ["sub", "/sub", "sub/"])
def test_something_below_every_project_root(top: Path, below: str) -> None:
    (top / "desk/sub").mkdir()
    (top / "other").mkdir()

    found = listed(SandboxEntry(Named(Where.PROJECT_ROOTS, below), READ), roots=(top / "desk", top / "other"))

    assert found == [Rule(str(top / "desk/sub"), READ)]


@pytest.mark.parametrize("tmpdir", [None, "", "desk", "./desk"])
def test_a_directory_for_temporary_files_that_is_none_grants_nothing(top: Path, tmpdir: str | None) -> None:
    """The command's own variable counts, and only if it says where that is."""
    entry = SandboxEntry(Named(Where.TMPDIR), WRITE)

    assert made(entry, tmpdir=tmpdir) == Rules([])
    assert listed(entry, tmpdir=str(top / "desk")) == [Rule(str(top / "desk"), WRITE)]


def test_slash_tmp_is_slash_tmp() -> None:
    assert listed(SandboxEntry(Named(Where.SLASH_TMP), WRITE)) == [Rule(os.path.realpath("/tmp"), WRITE)]


def test_a_pattern_denies_what_matches_now(top: Path) -> None:
    (top / "desk/a.env").touch()
    (top / "desk/b.env").mkdir()

    found = listed(ROOT, SandboxEntry(Pattern(f"{top}/desk/*.env"), DENY))

    assert found == [
        Rule("/", READ),
        Rule(str(top / "desk/a.env"), DENY, file=True),
        Rule(str(top / "desk/b.env"), DENY),
    ]


@pytest.mark.parametrize("access", [READ, WRITE])
def test_a_pattern_grants_nothing(top: Path, access: Access) -> None:
    """What matches next time may be something else."""
    assert made(SandboxEntry(Pattern(f"{top}/*"), access)) == Rules([])


def test_a_pattern_is_relative_to_the_directory_and_no_deeper_than_asked(top: Path) -> None:
    (top / "desk/sub/sub").mkdir(parents=True)
    everywhere = SandboxEntry(Pattern("**/sub"), DENY)

    shallow = made(ROOT, everywhere, cwd=str(top / "desk"), depth=1)
    deep = made(ROOT, everywhere, cwd=str(top / "desk"))

    assert [rule.path for rule in shallow.rules] == ["/", f"{top}/desk/sub"]
    assert [rule.path for rule in deep.rules] == ["/", f"{top}/desk/sub", f"{top}/desk/sub/sub"]


# Walls.


def test_inside_of_walls_everything_is_allowed_and_outside_nothing(top: Path) -> None:
    found = enclosed((f"{top}/desk", f"{top}/missing"))

    assert found == Rules([Rule(f"{top}/desk", WRITE)])
    assert found.access(f"{top}/desk/x/y") is WRITE
    assert found.access(f"{top}/missing") is DENY
    assert found.access(str(top)) is DENY


def test_a_wall_that_is_a_link_is_where_the_link_leads(top: Path) -> None:
    (top / "link").symlink_to("desk")

    assert enclosed((f"{top}/link",)) == Rules([Rule(f"{top}/desk", WRITE, aliases=(f"{top}/link",))])


def test_without_walls_that_are_there_nothing_is_allowed(top: Path) -> None:
    assert enclosed(()) == enclosed((f"{top}/missing",)) == Rules([])
    assert enclosed(("/",)).access("/x") is WRITE
