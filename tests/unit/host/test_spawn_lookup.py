"""Which file a program's name stands for: the table of a lookup in PATH."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.errors import Fault, ProgramSearch, SpawnFailed
from holdfast.host.environ import Environment
from holdfast.host.spawn import DEFAULT_PATH, Spawner
from holdfast.model import Size
from tests.fakes.process import (
    PATH,
    TERMINAL,
    command,
    descriptors,
    nothing_left_open,
    read_to_end,
    run,
    started,
)

BOTH = pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two directories with programs, one of which may not be executed."""
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    executable(tmp_path / "second" / "tool")
    executable(tmp_path / "here")
    (tmp_path / "first" / "tool").write_text("not executable")
    (tmp_path / "first" / "text").write_text("not executable")
    (tmp_path / "first" / "folder").mkdir()
    (tmp_path / "first" / "dangling").symlink_to(tmp_path / "nowhere")
    return tmp_path


def executable(path: Path) -> None:
    """A program that says where it is, as the kernel was told."""
    path.write_text('#!/bin/sh\necho "$0"\n')
    path.chmod(0o755)


def found(place: Path, name: str, path: str, terminal: Size | None = None) -> str:
    """The file that ran, as seen from ``place``, which is the child's directory."""
    ran = run(command(name, cwd=str(place), env={"PATH": path}, terminal=terminal))
    assert ran.code == 0
    return os.path.relpath(os.fsdecode((ran.stdout + ran.terminal).rstrip()), place)


@BOTH
@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("tool", "second", "second/tool"),
        ("tool", "first:second", "second/tool"),  # What may not be executed is passed over.
        ("tool", "nowhere:second", "second/tool"),
        ("tool", "here:second", "second/tool"),  # A part that is a file is passed over.
        ("here", "", "here"),  # An empty part is the working directory, wherever it stands.
        ("here", ":first", "here"),
        ("here", "first:", "here"),
        ("here", "first::second", "here"),
        ("here", ".", "here"),
        ("here", "first/..", "here"),
        ("tool", "second/", "second/tool"),
    ],
)
def test_a_bare_name_is_found_in_path(
    place: Path, name: str, path: str, expected: str, terminal: Size | None
) -> None:
    """Parts of PATH that are not absolute are relative to the child's directory, not to ours."""
    assert found(place, name, path, terminal) == expected


def test_an_absolute_part_is_itself(place: Path) -> None:
    ran = run(command("tool", env={"PATH": str(place / "second")}))

    assert ran.stdout == bytes(place / "second" / "tool") + b"\n"


@pytest.mark.parametrize(("name", "expected"), [("./here", "here"), ("second/tool", "second/tool")])
def test_a_name_with_a_slash_is_not_looked_up(place: Path, name: str, expected: str) -> None:
    """The kernel takes it relative to the child's directory."""
    (place / "first" / "second").mkdir()
    executable(place / "first" / "second" / "tool")
    executable(place / "first" / "here")

    ran = run(command(name, cwd=str(place), env={"PATH": str(place / "first")}))

    assert os.path.relpath(os.fsdecode(place / os.fsdecode(ran.stdout.rstrip())), place) == expected


def test_a_program_is_looked_up_in_the_path_of_the_child_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours is of no interest: the client does not know it."""
    executable(place / "first" / "sleep")
    executable(place / "second" / "sleep")
    monkeypatch.setenv("PATH", str(place / "second"))

    assert found(place, "sleep", f"first:{PATH}") == "first/sleep"


def test_names_and_directories_need_not_be_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / "d\udcff"
    folder.mkdir()
    executable(folder / "p\udcfe")

    with nothing_left_open():
        spawner = Spawner(Environment({}))
        child = spawner.start(command("p\udcfe", cwd=str(tmp_path), env={"PATH": "d\udcff"}))
        said = read_to_end(child.outputs[0][1])
        child.close()
        spawner.close()
        for fd in descriptors(child):
            os.close(fd)

    assert said == bytes(tmp_path) + b"/d\xff/p\xfe\n"


def test_without_a_path_a_standard_one_is_used_over_pipes() -> None:
    ran = run(command("sh", "-c", "readlink /proc/$$/exe", env={}))

    assert ran.stdout.strip() == os.fsencode(os.path.realpath("/bin/sh"))
    assert DEFAULT_PATH == b"/usr/local/bin:/bin:/usr/bin"


# What is not found.


def failure(place: Path, name: str, path: str) -> SpawnFailed:
    spec = command(name, cwd=str(place), env={"PATH": path})
    with pytest.raises(SpawnFailed) as caught, started(spec):
        pytest.fail("it was started")
    return caught.value


@pytest.mark.parametrize(
    ("name", "path", "number"),
    [
        ("nowhere", "first:second", errno.ENOENT),
        ("tool", "", errno.ENOENT),
        ("tool", "nowhere", errno.ENOENT),
        ("text", "first", errno.EACCES),
        ("text", "first:second", errno.EACCES),  # Told when nothing better comes.
        ("dangling", "first", errno.ENOENT),
        ("folder", "first", errno.EACCES),
        (".", "first", errno.EACCES),
        ("..", "first", errno.EACCES),
        ("x" * 300, "first", errno.ENAMETOOLONG),
    ],
)
def test_what_cannot_be_executed_is_told_as_execvp_tells_it(
    place: Path, name: str, path: str, number: int
) -> None:
    """A client that knows the system's errors knows what to do about them."""
    error = failure(place, name, path)

    told = error.fault, error.subject, error.number, error.search
    assert told == (Fault.PROGRAM, name, number, ProgramSearch(path))


@pytest.mark.parametrize("name", ["../x", "nowhere/x", "./nowhere"])
def test_a_name_with_a_slash_that_is_not_there_was_not_looked_for(place: Path, name: str) -> None:
    """The kernel says itself what is wrong with it."""
    error = failure(place, name, str(place / "second"))

    told = error.fault, error.subject, error.number, error.search
    assert told == (Fault.PROGRAM, name, errno.ENOENT, None)
