"""Which file a program name stands for: the table of a lookup in PATH."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.host.program import DEFAULT_PATH, find


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
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def lookup(place: Path, name: str, path: str) -> str:
    return os.path.relpath(os.fsdecode(find(name, path, str(place))), place)


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
    ],
)
def test_a_bare_name_is_found_in_path(place: Path, name: str, path: str, expected: str) -> None:
    """Parts of PATH that are not absolute are relative to the child's directory, not to ours."""
    assert lookup(place, name, path) == expected


def test_an_absolute_part_is_itself(place: Path) -> None:
    assert find("tool", str(place / "second"), "/") == bytes(place / "second" / "tool")


@pytest.mark.parametrize("name", ["/bin/sh", "./here", "second/tool", "../x", "nowhere/x"])
def test_a_name_with_a_slash_is_not_looked_up(place: Path, name: str) -> None:
    """The kernel takes it relative to the child's directory and says itself what is wrong with it."""
    assert find(name, str(place / "second"), str(place)) == name.encode()


def test_the_default_path_has_the_usual_programs() -> None:
    assert find("sh", DEFAULT_PATH, "/") == b"/bin/sh"


def test_names_and_directories_need_not_be_utf_8(tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"d\xff")
    os.mkdir(folder)
    executable(Path(os.fsdecode(os.path.join(folder, b"p\xfe"))))

    assert find("p\udcfe", "d\udcff", str(tmp_path)) == os.path.join(folder, b"p\xfe")


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
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        find(name, path, str(place))

    assert caught.value.errno == number
