"""Landlock: what a ruleset really allows a process that has entered it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.host.sandbox import landlock
from holdfast.host.sandbox.backends import HARD_LINKS
from holdfast.host.sandbox.landlock import COMMANDS, DEVICES, LEAST, SCOPES, ruleset, shortfalls, weaknesses
from holdfast.host.sandbox.rules import EVERYTHING
from holdfast.sandbox import Access, Rule, Rules
from tests.fakes.confined import confined
from tests.fakes.process import nothing_left_open

READ, WRITE, DENY = Access.READ, Access.WRITE, Access.DENY

KNOWN = landlock.version()
has_landlock = pytest.mark.skipif(KNOWN < LEAST, reason=f"Landlock of version {KNOWN} is not enough")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Path]:
    """A place to write and one to read, with a file each."""
    for name in ("work", "other"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "file").write_text("old")
        (tmp_path / name / "run").write_text("#!/bin/sh\nexit 0\n")
        (tmp_path / name / "run").chmod(0o755)
    with nothing_left_open():
        yield tmp_path.resolve()


TRY = """if True:
    import shutil
    os.chdir(sys.argv[3])
    def write(path, text="new"):
        with open(path, "w") as file:
            file.write(text)
    tried("read", open, "file")
    tried("list", os.listdir, ".")
    tried("append", os.open, "file", os.O_WRONLY)
    tried("truncate", os.truncate, "file", 1)
    tried("make", write, "made")
    tried("mkdir", os.mkdir, "directory")
    tried("symlink", os.symlink, "x", "link")
    tried("fifo", os.mkfifo, "fifo")
    tried("rename", os.rename, "file", "renamed")
    tried("move", os.rename, "run", "sub/run")
    tried("unlink", os.unlink, "made")
    tried("rmdir", os.rmdir, "directory")
    tried("stat", os.stat, ".")
"""


def attempts(rules: Rules, cwd: Path, source: str = TRY) -> dict[str, str]:
    fd = ruleset(rules)
    try:
        return confined(source, str(cwd), ruleset=fd)
    finally:
        os.close(fd)


@pytest.mark.slow
@has_landlock
def test_what_can_be_written_can_be_changed_in_every_way(scene: Path) -> None:
    told = attempts(Rules([Rule("/", READ), Rule(str(scene / "work"), WRITE)]), scene / "work")

    assert set(told.values()) == {"done"}


@pytest.mark.slow
@has_landlock
def test_what_can_be_read_cannot_be_changed_in_any_way(scene: Path) -> None:
    told = attempts(Rules([Rule("/", READ), Rule(str(scene / "work"), WRITE)]), scene / "other")

    allowed = {name for name, result in told.items() if result == "done"}
    assert allowed == {"read", "list", "stat"}
    assert {result for result in told.values() if result != "done"} <= {"EACCES", "ENOENT"}
    assert sorted(os.listdir(scene / "other")) == ["file", "run", "sub"]
    assert (scene / "other/file").read_text() == "old"


@pytest.mark.slow
@has_landlock
def test_what_is_not_listed_cannot_even_be_read(scene: Path) -> None:
    """But it can be gone to, and looked at from outside: that is one of the weaknesses."""
    rules = Rules([Rule("/usr", READ), Rule(str(scene / "work"), WRITE), Rule("/root", DENY)])

    told = attempts(
        rules,
        scene / "other",
        'os.chdir(sys.argv[3])\ntried("read", open, "file")\n'
        'tried("list", os.listdir, ".")\ntried("stat", os.stat, ".")\n',
    )

    assert told == {"read": "EACCES", "list": "EACCES", "stat": "done"}


@pytest.mark.slow
@has_landlock
def test_a_single_file_can_be_written_and_nothing_beside_it(scene: Path) -> None:
    rules = Rules([Rule("/", READ), Rule(str(scene / "work/file"), WRITE, file=True)])

    told = attempts(rules, scene / "work")

    allowed = {name for name, result in told.items() if result == "done"}
    assert allowed == {"read", "list", "stat", "append", "truncate"}


@pytest.mark.slow
@has_landlock
def test_a_file_can_be_moved_between_two_writable_places_and_no_others(scene: Path) -> None:
    (scene / "third").mkdir()
    rules = Rules([Rule("/", READ), Rule(str(scene / "work"), WRITE), Rule(str(scene / "third"), WRITE)])
    source = """if True:
        os.chdir(sys.argv[3])
        tried("out", os.link, "work/file", "other/linked")
        tried("in", os.link, "other/file", "work/linked")
        tried("across", os.rename, "work/file", "third/file")
        tried("away", os.rename, "third/file", "other/file")
    """

    told = attempts(rules, scene, source)

    assert told == {"out": "EACCES", "in": "EXDEV", "across": "done", "away": "EACCES"}


@pytest.mark.slow
@has_landlock
def test_devices_that_programs_need_can_be_written_and_none_can_be_made(scene: Path) -> None:
    source = """if True:
        import stat
        os.chdir(sys.argv[3])
        for path in sys.argv[4:]:
            tried(path, os.open, path, os.O_RDWR)
        tried("process", os.listdir, "/proc/self")
        tried("device", os.mknod, "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    """
    devices = [path for path in DEVICES if path != "/dev/tty"]
    fd = ruleset(Rules([Rule(str(scene / "work"), WRITE)]))
    try:
        told = confined(source, str(scene / "work"), *devices, ruleset=fd)
    finally:
        os.close(fd)

    assert told.pop("device") in ("EACCES", "EPERM")
    assert told == dict.fromkeys([*devices, "process"], "done")


@pytest.mark.slow
@has_landlock
def test_where_all_files_are_free_only_other_processes_are_out_of_reach(scene: Path) -> None:
    source = """if True:
        os.chdir(sys.argv[3])
        tried("write", open, "file", "w")
        tried("signal", os.kill, os.getppid(), 0)
        tried("itself", os.kill, os.getpid(), 0)
        tried("abstract", socket.socket(socket.AF_UNIX).connect, "\\0" + sys.argv[4])
    """

    with socket.socket(socket.AF_UNIX) as listener:
        name = f"holdfast-{os.getpid()}"
        listener.bind(f"\0{name}")
        listener.listen()
        fd = ruleset(EVERYTHING)
        try:
            told = confined(source, str(scene / "work"), name, ruleset=fd)
        finally:
            os.close(fd)

    reached = "EPERM" if KNOWN >= SCOPES else "done"
    assert told == {"write": "done", "signal": reached, "itself": "done", "abstract": reached}


@has_landlock
def test_a_place_that_has_gone_is_passed_over(scene: Path) -> None:
    """It was there when the rules were made; there is nothing to allow now."""
    os.close(
        ruleset(Rules([Rule(str(scene / "none"), WRITE), Rule(str(scene / "work/none"), READ, missing=True)]))
    )


@has_landlock
def test_a_ruleset_is_about_what_was_there_and_not_about_the_name(scene: Path) -> None:
    """Whoever keeps one must make another when the directory is another."""
    fd = ruleset(Rules([Rule("/", READ), Rule(str(scene / "work"), WRITE)]))
    (scene / "work").rename(scene / "gone")
    (scene / "work").mkdir()
    try:
        told = confined(
            'os.chdir(sys.argv[3])\ntried("new", os.mkdir, "work/x")\ntried("old", os.mkdir, "gone/x")\n',
            str(scene),
            ruleset=fd,
        )
    finally:
        os.close(fd)

    assert told == {"new": "EACCES", "old": "done"}


@has_landlock
def test_a_ruleset_that_cannot_be_made_leaves_nothing_open(
    scene: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many descriptors as there were: the fixture looks."""
    monkeypatch.setattr(landlock, "_BENEATH", 99)

    with pytest.raises(OSError, match="Invalid argument"):
        ruleset(Rules([Rule(str(scene), READ)]))


# What it cannot do.


@pytest.mark.parametrize(
    ("rules", "readable", "writable"),
    [
        ([Rule("/", READ)], [], []),
        ([Rule("/", READ), Rule("/w", WRITE)], [], []),
        ([Rule("/", READ), Rule("/d", DENY)], ["/d"], []),
        ([Rule("/", WRITE), Rule("/d", DENY)], ["/d"], []),
        ([Rule("/", WRITE), Rule("/r", READ)], [], ["/r"]),
        ([Rule("/w", WRITE), Rule("/w/.git", READ, missing=True)], [], ["/w/.git"]),
        ([Rule("/w", WRITE), Rule("/w/d", DENY, missing=True)], [], ["/w/d"]),
        ([Rule("/w", READ), Rule("/w/d", DENY, missing=True)], [], []),
        ([Rule("/u", READ), Rule("/d", DENY)], [], []),
        ([Rule("/", READ), Rule("/d", DENY), Rule("/d/w", WRITE)], ["/d"], []),
        ([Rule("/w", WRITE), Rule("/w/r", READ), Rule("/w/r/w", WRITE)], [], ["/w/r"]),
    ],
)
def test_rights_only_grow_further_down(rules: list[Rule], readable: list[str], writable: list[str]) -> None:
    """What must be taken away below a place is refused, or guarded by a witness."""
    assert shortfalls(Rules(rules)) == (readable, writable)


def test_weaknesses_are_told_and_older_kernels_have_more() -> None:
    """Devices until version 5, signals and abstract sockets until version 6.

    Whoever trusts a sandbox has nothing but these sentences to go by.  A number of them says nothing.
    """
    newest = [
        "attributes of files (mode, owner, times, extended attributes) can be changed everywhere",
        "names and attributes of files can be seen everywhere, and directories be watched",
        "processes of the host can be seen, and priority and processors of those of the same user be changed",
        "System V shared memory, semaphores and message queues of the same user can be used",
        HARD_LINKS,
        "locks and leases can be held on whatever can be read",
        "programs can be left in writable places that run with the group of the server (set-gid)",
    ]
    outside = [
        "processes outside can be sent signals",
        "abstract sockets of the host can be reached if the network is on",
    ]

    assert weaknesses(SCOPES) == newest
    assert weaknesses(COMMANDS) == [*newest, *outside]
    assert weaknesses(LEAST) == [*newest, "devices that can be read can be given commands (ioctl)", *outside]
