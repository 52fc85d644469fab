"""Bubblewrap: which program is trusted, and the file that is put over those that are denied."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from holdfast.host.sandbox.bubblewrap import Placeholder, _outside, places

# The file.


def test_it_is_an_empty_file_that_nobody_may_read(tmp_path: Path) -> None:
    placeholder = Placeholder(str(tmp_path))

    facts = os.lstat(placeholder.path)
    assert (stat.S_IFMT(facts.st_mode), stat.S_IMODE(facts.st_mode), facts.st_size) == (stat.S_IFREG, 0, 0)
    assert stat.S_IMODE(os.stat(os.path.dirname(placeholder.path)).st_mode) == 0o700
    assert placeholder.is_good()


def test_each_is_in_a_directory_of_its_own_which_goes_with_it(tmp_path: Path) -> None:
    first, second = Placeholder(str(tmp_path)), Placeholder(str(tmp_path))

    first.remove()
    first.remove()

    assert (first.is_good(), second.is_good()) == (False, True)
    assert os.listdir(tmp_path) == [os.path.basename(os.path.dirname(second.path))]


def test_its_path_has_no_links(tmp_path: Path) -> None:
    """Rules are compared with it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    assert Placeholder(str(tmp_path / "link")).path.startswith(f"{tmp_path.resolve()}/real/")


@pytest.mark.parametrize("change", ["mode", "size", "gone", "link", "directory"])
def test_one_that_was_changed_is_no_longer_good(tmp_path: Path, change: str) -> None:
    """Somebody may have made it readable, or put a secret of another's there."""
    placeholder = Placeholder(str(tmp_path))
    path = Path(placeholder.path)
    match change:
        case "mode":
            path.chmod(0o444)
        case "size":
            path.chmod(0o600)
            path.write_text("words")
            path.chmod(0)
        case "gone":
            path.unlink()
        case "link":
            path.unlink()
            path.symlink_to("/etc/passwd")
        case "directory":
            path.unlink()
            path.mkdir(mode=0)

    assert not placeholder.is_good()


def test_a_directory_that_is_not_there_takes_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Placeholder(str(tmp_path / "none"))


@pytest.mark.parametrize("runtime", [None, "/run/user/7"])
def test_where_sandboxes_do_not_look_is_tried_first(
    monkeypatch: pytest.MonkeyPatch, runtime: str | None
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if runtime is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("HOME", "/home/x")

    found = places()

    assert found == ["/dev/shm", *([runtime] if runtime else []), tempfile.gettempdir(), "/home/x"]


# The program.


@pytest.mark.parametrize(
    ("cwd", "program", "found"),
    [
        ("/", "/bin/sh", True),
        ("/none", "/bin/sh", True),
        ("/none", None, False),
        (os.path.dirname(os.path.realpath("/bin/sh")), "/bin/sh", False),
        ("/usr", "/usr/bin/env", False),
        ("/us", "/usr/bin/env", True),
    ],
)
def test_outside_is_what_is_not_below(cwd: str, program: str | None, *, found: bool) -> None:
    expected = os.path.realpath(program) if program is not None and found else None

    assert _outside(cwd, program) == expected
